"""Losses of a value function on held-out episodes, computed without the truth.

Kernel Bellman loss (Feng, Li and Liu 2019, as a U-statistic over pairs of different episodes):
`mean_ij rho_i delta_i K(s_i, s_j) rho_j delta_j`, zero for the true values and, if the kernel is
universal, for no others.

Returns error: `sum_t w_t (G_t - V(s_t))^2 / sum_t w_t` with `G_t` the weighted per-decision return
and `w_t` its weight, as `o2td.solvers.MonteCarlo` defines them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from o2td.arrays import Floats, Ints
from o2td.evaluation.candidates import median_distance
from o2td.evaluation.episodes import Episodes
from o2td.evaluation.histories import effective
from o2td.solvers.row_loops import returns

PAIRS = 2000  # rows whose pairs make the kernel loss
_NEGLIGIBLE = 0.05  # share of a return that may lie beyond a truncation


@dataclass(frozen=True, eq=False)
class Yardstick:
    """What both losses need from a block, computed once for all candidates."""

    at: Ints  # rows that the kernel loss uses
    kernel: Floats
    squared: Floats
    pairs: float
    weight: Floats  # of every row's return
    target: Floats
    effective: float  # effective number of episodes behind the returns

    @classmethod
    def of(cls, block: Episodes, seed: int) -> Yardstick:
        """Draw the rows and compute kernel and returns."""
        rows = block.rows
        rng = np.random.default_rng(seed)
        at = np.sort(rng.permutation(len(rows))[:PAIRS])
        inputs = np.asarray(rows.input[at], dtype=np.float64).reshape(len(at), -1)
        kernel = _gaussian(inputs)
        unit = block.unit()[at]
        kernel[unit[:, None] == unit] = 0.0
        weight, target = _returns(block)
        each = block.sums(weight)
        pairs = float(np.count_nonzero(kernel)) or 1.0
        size = float(effective(each.sum(), (each**2).sum()))
        return cls(at, kernel, kernel**2, pairs, weight, target, size)

    def bellman(self, corrected: Floats) -> tuple[Floats, Floats]:
        """The kernel loss of columns of `rho delta` at the rows `at`, and its standard error at 0.

        The loss may be a little below 0. With mean-zero errors, the variance of the sum over pairs
        is `2 sum_ij (c_i K_ij c_j)^2`.
        """
        loss = (corrected * (self.kernel @ corrected)).sum(axis=0) / self.pairs
        square = corrected**2
        total = (square * (self.squared @ square)).sum(axis=0)
        return loss, np.sqrt(2.0 * np.maximum(total, 0.0)) / self.pairs

    def returns_error(self, block: Episodes, values: Floats) -> Floats:
        """Weighted squared errors per episode, scaled so that their sum is the mean."""
        total = float(self.weight.sum())
        return block.sums(self.weight * (self.target - values) ** 2) / (total or 1.0)


def _gaussian(inputs: Floats) -> Floats:
    spread = inputs.std(axis=0)
    z = inputs / np.where(spread > 0.0, spread, 1.0)
    width = median_distance(z)
    square = (z**2).sum(axis=1)
    between = np.maximum(square[:, None] + square - 2.0 * z @ z.T, 0.0)
    return np.asarray(np.exp(-between / (2.0 * width**2)))


def _returns(block: Episodes) -> tuple[Floats, Floats]:
    rows = block.rows
    n = len(rows)
    y, w, kind = np.zeros((n, 3)), np.zeros((n, 2)), np.zeros(n, dtype=np.int64)
    begin = block.begin
    returns(rows.reward, rows.discount, rows.rho, begin, False, y, w, kind)
    weight, total = w[:, 0].copy(), y[:, 0]
    # A return that is truncated early says nothing about the whole return.
    last = np.repeat(block.first[1:] - 1, np.diff(block.first))
    decay = np.cumsum(np.log(np.maximum(rows.discount, 1e-12)))
    rest = np.exp(np.minimum(decay[last] - decay, 0.0))
    weight[(rest > _NEGLIGIBLE) & (rows.discount[last] > 0.0)] = 0.0
    target = np.divide(total, w[:, 0], out=np.zeros(n), where=w[:, 0] > 0.0)
    return weight, target

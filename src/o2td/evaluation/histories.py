"""Weights of histories, `w_t = rho_0 ... rho_t`, and their sums from one pass over a log.

An episode that has ended keeps its last weight at all later steps, as if it stayed in an absorbing
state: then every step averages over all episodes, which weighted estimators need.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from o2td.arguments import instance
from o2td.arrays import Floats, Ints
from o2td.compiled import njit
from o2td.evaluation.episodes import Episodes

HORIZON = 16_384  # steps kept apart; later ones count as the last
_TOP = 1e150  # weights stop growing here: their squares must stay finite


@njit(cache=True, nogil=True)
def _histories(rho: Any, discount: Any, first: Any, top: float, weight: Any, gone: Any) -> None:
    for e in range(len(first) - 1):
        w, g = 1.0, 1.0
        for t in range(first[e], first[e + 1]):
            w = min(w * rho[t], top)
            weight[t], gone[t] = w, g
            g *= discount[t]


def histories(block: Episodes) -> tuple[Floats, Floats, Ints]:
    """`w_t` (this row's ratio included), the discount `g_t` of this row's reward, and the step."""
    rows = instance("block", block, Episodes, "a block of whole episodes").rows
    weight, gone = np.empty(len(rows)), np.empty(len(rows))
    _histories(rows.rho, rows.discount, block.first, _TOP, weight, gone)
    step = np.arange(len(rows)) - np.repeat(block.first[:-1], np.diff(block.first))
    return weight, gone, np.minimum(step, HORIZON - 1)


def effective(total: Floats | float, squares: Floats | float) -> Any:
    """`(sum w)^2 / sum w^2`, Kish's effective number; 0 where all weights are 0."""
    squares = np.asarray(squares)
    return np.divide(np.square(total), squares, out=np.zeros(squares.shape), where=squares > 0.0)


def padded_sum(one: Floats, two: Floats) -> Floats:
    """Sum of two arrays, the shorter one padded with zeros."""
    if len(one) < len(two):
        one, two = two, one
    total = one.copy()
    total[: len(two)] += two
    return total


@dataclass(eq=False)
class Horizon:
    """Sums over episodes by step: of weights, their squares, and weighted discounted numbers."""

    weight: Floats = field(default_factory=lambda: np.zeros(0))
    square: Floats = field(default_factory=lambda: np.zeros(0))
    number: Floats = field(default_factory=lambda: np.zeros(0))
    ended: Floats = field(default_factory=lambda: np.zeros(0))
    ended_square: Floats = field(default_factory=lambda: np.zeros(0))

    def add(self, block: Episodes, weight: Floats, step: Ints, number: Floats) -> None:
        """Take in a block; `number` is the row's discounted reward (or error), weighted."""
        last = block.first[1:] - 1
        parts = {
            "weight": (step, weight),
            "square": (step, weight**2),
            "number": (step, number),
            "ended": (step[last], weight[last]),
            "ended_square": (step[last], weight[last] ** 2),
        }
        for name, (at, values) in parts.items():
            setattr(
                self,
                name,
                padded_sum(getattr(self, name), np.bincount(at, values).astype(np.float64)),
            )

    def merge(self, other: Horizon) -> None:
        """Add another one's sums."""
        for name, held in vars(self).items():
            setattr(self, name, padded_sum(held, getattr(other, name)))

    @property
    def total(self) -> Floats:
        """Sum of the weights of all episodes at each step, ended ones included."""
        return self._carried(self.weight, self.ended)

    @property
    def inverse(self) -> Floats:
        """One over `total`, 0 where all weights are 0."""
        total = self.total
        return np.divide(1.0, total, out=np.zeros(len(total)), where=total > 0.0)

    @property
    def effective_size(self) -> Floats:
        """Effective number of episodes at each step."""
        squares = self._carried(self.square, self.ended_square)
        return np.asarray(effective(self.total, squares))

    def _carried(self, alive: Floats, ended: Floats) -> Floats:
        before = np.zeros(len(alive))
        before[1:] = np.cumsum(ended)[: len(alive) - 1]
        return alive + before

    def weighted(self) -> Floats:
        """The weighted mean of the numbers at each step (0 where all weights are 0)."""
        total = self.total
        return np.divide(self.number, total, out=np.zeros(len(total)), where=total > 0.0)

    def centered(self, block: Episodes, weight: Floats, step: Ints, number: Floats) -> Floats:
        """`sum_t (number_t - w_t m_t) / W_t` of each episode: influence of the weighted sum."""
        mean, inverse = self.weighted(), self.inverse
        each = block.sums((number - weight * mean[step]) * inverse[step])
        later = np.append(np.cumsum((mean * inverse)[::-1])[::-1], 0.0)
        last = block.first[1:] - 1
        return np.asarray(each - weight[last] * later[step[last] + 1])

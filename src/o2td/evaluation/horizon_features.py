"""Values over a number of steps from features of observations that do not recur.

`V_0 = 0`, `V_{k+1}(s) = phi(s)·theta_{k+1}` with `theta_{k+1} = g + M theta_k`: `g` is the regression
of rewards on features and `M` that of the successors' discounted features, both weighted by ratios.
Neither depends on time, so all rows serve every step, as in the model of states that recur
(`horizon`). A row at which a time limit ended the episode gives its reward, but no successor.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from o2td.arrays import Bools, Floats, Ints
from o2td.evaluation.basis import FeatureRows, States
from o2td.evaluation.episodes import Episodes
from o2td.evaluation.systems import FOLDS, FeatureSystem, runs
from o2td.linear_algebra import Solution, conclude, solve
from o2td.sources.log_rows import LoneStarts

_LEAST_RIDGE = 1e-9
_NEGLIGIBLE = 1e-10  # of the largest singular value


def unclocked(block: Episodes, steps: int) -> Episodes:
    """Episodes as if no time limit had ended them, to choose features by.

    Last rows are left out, and the discount is at most `1 - 1 / steps`, so that a value exists.
    """
    if steps < 2:
        return block
    short = block.shortened(steps - 1)
    most = 1.0 - 1.0 / steps
    return replace(short, rows=replace(short.rows, discount=np.minimum(short.rows.discount, most)))


class StepsSystem(FeatureSystem):
    """Sums of `rho phi [phi, gamma phi', r]^T` by fold."""

    def __init__(self, basis: States, steps: int, gamma: float, ridge: float = 0.0) -> None:
        super().__init__(basis, ridge=max(ridge, _LEAST_RIDGE))
        self.steps, self.gamma = steps, gamma

    def part(self, basis: States, index: Ints, ridge: float) -> StepsSystem:
        """A system on some of the features that shares the sums of this one."""
        made = StepsSystem(basis, self.steps, self.gamma, ridge)
        made._whole, made.index, made.d = self, index, len(index)
        return made

    @property
    def label(self) -> str:
        """Basis and number of steps in words."""
        return f"{self.basis.name}, {self.steps} steps"

    def lift(self, theta: Floats) -> Floats:
        """Weights of these features, as they are: `influence` takes its own features."""
        return theta

    def light(self) -> StepsSystem:
        """The same without sums, for computing with rows."""
        made = copy(self)
        made.basis, made._whole = self.whole.basis, None
        made.folds, made.cut, made.starts = np.zeros((0, 0, 0)), np.zeros((0, 0)), np.zeros((0, 0))
        return made

    # -- accumulating ------------------------------------------------------------------------------

    def _allocate(self, d: int) -> None:
        self.d = d
        self.folds = np.zeros((FOLDS, d, 2 * d + 1))
        self.cut = np.zeros((FOLDS, d, d))  # of rows whose successor is not known
        self.starts = np.zeros((FOLDS, d))

    def _onward(self, block: Episodes, rows: FeatureRows) -> tuple[Floats, Bools]:
        """`gamma phi(s')`, 0 at ends, and whether the successor is known."""
        own = block.rows
        ahead = np.zeros_like(rows.here)
        ahead[:-1] = rows.here[1:]
        ahead[own.terminated] = 0.0
        if len(rows.other):
            ahead[rows.other] = rows.after
        ahead *= own.discount[:, None]
        clock = own.terminated & (own.step == self.steps - 1)
        known = ~clock
        if clock.any():
            # A requested horizon cuts episodes short of their ends: there, successors are known.
            moved = (own.next_input != own.input).reshape(len(own), -1).any(axis=1)
            there = np.flatnonzero(clock & moved)
            known[there] = True
            if len(there):
                assert isinstance(self.basis, States)  # noqa: S101
                ahead[there] = self.gamma * self.basis.phi(own.next_input[there])
        return ahead, known

    def add(self, block: Episodes, rows: FeatureRows, fold: Any, counts: Floats | None) -> None:
        """Take in a block; `fold` belongs to its episodes."""
        if not self.d:
            self._allocate(rows.here.shape[1])
        z = rows.here * block.rows.rho[:, None]
        ahead, known = self._onward(block, rows)
        opens = block.opens.astype(np.float64)
        first = rows.first * opens[:, None]
        right = np.column_stack([rows.here, ahead, rows.reward])
        for k, low, high in runs(fold):
            part = slice(block.first[low], block.first[high])
            self.starts[k] += first[low:high].sum(axis=0)
            self.opened[k] += opens[low:high].sum()
            self.folds[k] += z[part].T @ right[part]
            blind = np.flatnonzero(~known[part]) + part.start
            self.cut[k] += z[blind].T @ rows.here[blind]

    def merge(self, other: FeatureSystem) -> None:
        """Add another one's sums."""
        assert isinstance(other, StepsSystem)  # noqa: S101
        fresh = not self.d
        super().merge(other)
        if not fresh and other.d:
            self.cut += other.cut

    # -- answers -----------------------------------------------------------------------------------

    def _regressions(self, folds: Bools | None) -> tuple[Floats, Floats, Floats, Floats]:
        """`g`, `M`, and the matrices of both regressions."""
        held, n = self.whole, self.whole.d
        assert isinstance(held, StepsSystem)  # noqa: S101
        which = np.ones(FOLDS, dtype=np.bool_) if folds is None else folds
        total, cut = held.folds[which].sum(axis=0), held.cut[which].sum(axis=0)
        at = np.arange(n)[self.index]
        gram = total[np.ix_(at, at)]
        added = self.ridge * float(np.diagonal(gram).mean()) * np.eye(len(at))
        paid, seen = gram + added, gram - cut[np.ix_(at, at)] + added
        g = solve(paid, total[at, -1]).theta
        return g, np.linalg.solve(seen, total[np.ix_(at, n + at)]), paid, seen

    def _weights(self, g: Floats, M: Floats) -> Floats:
        """`theta_0 ... theta_T`, one row each."""
        found = np.zeros((self.steps + 1, len(g)))
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(self.steps):
                found[k + 1] = g + M @ found[k]
        return found

    def solve(self, folds: Bools | None = None, ridge: float | None = None) -> Solution:
        """The weights with all steps ahead; not finite if they explode."""
        g, M, paid, _ = self._regressions(folds)
        theta = self._weights(g, M)[-1]
        if not np.isfinite(theta).all():
            return conclude(np.full(self.d, np.nan), "overflow", 0, np.inf, np.inf)
        return conclude(theta, "ok", self.d, float(np.linalg.cond(paid)), 0.0)

    def endless(self) -> float:
        """The value over an infinite horizon, infinite if there is none."""
        g, M, _, _ = self._regressions(None)
        if np.abs(np.linalg.eigvals(M)).max() >= 1.0:
            return float("inf")
        return float(self.start() @ np.linalg.solve(np.eye(len(g)) - M, g))

    def _reach(self, M: Floats) -> Floats:
        """`w_0 ... w_{T-1}`, the mean features after each number of steps, one row each."""
        found = np.zeros((self.steps, len(M)))
        found[0] = self.start()
        for k in range(1, self.steps):
            found[k] = found[k - 1] @ M
        return found

    def extrapolated(self, block: Episodes) -> float:
        """Share of negative weights among those that rewards have in the value.

        The value is `sum_i rho_i (phi_i·a) r_i`. If features can express how much more often the target
        visits the place of a row than the log does, `phi_i·a` is that and not negative; negative
        weights compensate for places that the log lacks.
        """
        _, M, paid, _ = self._regressions(None)
        a = np.linalg.solve(paid.T, self._reach(M).sum(axis=0))
        assert isinstance(self.basis, States)  # noqa: S101
        weight = block.rows.rho * (self.basis.phi(block.rows.input) @ a)
        return float(-np.minimum(weight, 0.0).sum() / max(np.abs(weight).sum(), 1e-300))

    def lane_values(self) -> None:
        """None: lanes come from the influence of episodes."""

    def adjoint(self) -> Floats:
        """Derivatives of the value in a row, as columns `[a, g, U, W, M W]`.

        With `w_0 = phi_0`, `w_{k+1} = M^T w_k`, a row moves the value by `rho` times
        `(phi·a) (r - phi·g) + sum_k (phi·a_k) (gamma phi' - M^T phi)·theta_{T-1-k}`, where `a` and `a_k`
        solve the regressions' equations for `sum_k w_k` and `w_k`. `sum_k a_k theta_{T-1-k}^T = U W^T`
        has a low rank, because both converge.
        """
        g, M, paid, seen = self._regressions(None)
        theta, reach = self._weights(g, M), self._reach(M)
        a = np.linalg.solve(paid.T, reach.sum(axis=0))
        cross = np.linalg.solve(seen.T, reach.T @ theta[:-1][::-1])
        left, size, right = np.linalg.svd(cross)
        kept = size > _NEGLIGIBLE * size[0]
        left, right = left[:, kept] * size[kept], right[kept].T
        return np.column_stack([a, g, left, right, M @ right])

    def influence(
        self, block: Episodes, rows: FeatureRows, theta: Floats, adjoint: Floats
    ) -> tuple[Floats, Floats]:
        """`V(s_0)` of each episode, and the influence of its rows."""
        ahead, known = self._onward(block, rows)
        rank = (adjoint.shape[1] - 2) // 3
        a, g = adjoint[:, 0], adjoint[:, 1]
        left, right, moved = (adjoint[:, 2 + k * rank : 2 + (k + 1) * rank] for k in range(3))
        here, ahead = rows.here[:, self.index], ahead[:, self.index]
        paid = (here @ a) * (rows.reward - here @ g)
        went = ((here @ left) * (ahead @ right - here @ moved)).sum(axis=1)
        each = block.rows.rho * (paid + np.where(known, went, 0.0))
        return rows.first[:, self.index] @ theta, block.sums(each)

    def start_values(self, lone: LoneStarts, theta: Floats) -> Floats:
        """`V(s_0)` of starts without rows."""
        return np.asarray(self.basis.first(lone)[:, self.index] @ theta)

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
from o2td.evaluation.steps_ahead import crossed, values_ahead, visits_ahead
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


def _between(rows: Ints, low: int, high: int) -> Ints:
    """Those of ascending numbers of rows that are at least `low` and below `high`."""
    return rows[slice(*np.searchsorted(rows, [low, high]))]


class StepsSystem(FeatureSystem):
    """Sums of `rho phi phi^T` by fold, beside those of LSTD without a trace.

    `plain` is that system, fitted to the same features and rows. Its matrix is
    `sum rho phi (phi - gamma phi')^T`, so the sum over successors is a difference and needs no product
    of its own.
    """

    def __init__(self, plain: FeatureSystem, steps: int, gamma: float, ridge: float = 0.0) -> None:
        super().__init__(plain.basis, ridge=max(ridge, _LEAST_RIDGE))
        self.plain, self.steps, self.gamma = plain, steps, gamma

    def part(self, basis: States, index: Ints, ridge: float) -> StepsSystem:
        """A system on some of the features that shares the sums of this one."""
        made = StepsSystem(self.plain, self.steps, self.gamma, ridge)
        made.basis, made._whole, made.index, made.d = basis, self, index, len(index)
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
        made.basis, made._whole, made.plain = self.whole.basis, None, self.plain.light()
        made.folds = made.cut = made.onward = np.zeros((0, 0, 0))
        made.starts = np.zeros((0, 0))
        return made

    # -- accumulating ------------------------------------------------------------------------------

    def _allocate(self, d: int) -> None:
        self.d = d
        self.folds = np.zeros((FOLDS, d, d))
        self.cut = np.zeros((FOLDS, d, d))  # of rows whose successor is not known
        self.onward = np.zeros((FOLDS, d, d))  # `rho phi gamma phi'^T` of ends that are none
        self.starts = np.zeros((FOLDS, d))

    def _limits(self, block: Episodes) -> tuple[Ints, Ints]:
        """Rows at which a time limit ended the episode: successor unknown, and known.

        A requested horizon cuts episodes short of their ends: there, successors are known.
        """
        own = block.rows
        last = np.flatnonzero(own.terminated & (own.step == self.steps - 1))
        apart = own.next_input[last] != own.input[last]
        moved = apart.any(axis=tuple(range(1, apart.ndim)))
        return last[~moved], last[moved]

    def _beyond(self, block: Episodes, known: Ints) -> Floats:
        """`gamma phi(s')` of rows whose episode a requested horizon ended."""
        assert isinstance(self.basis, States)  # noqa: S101
        return np.asarray(self.gamma * self.basis.phi(block.rows.next_input[known]))

    def add(self, block: Episodes, rows: FeatureRows, fold: Any, counts: Floats | None) -> None:
        """Take in a block; `fold` belongs to its episodes."""
        if not self.d:
            self._allocate(rows.here.shape[1])
        rho, first = block.rows.rho, block.first
        half = rows.here * np.sqrt(rho)[:, None]  # the product with itself takes half the time
        opens = block.opens.astype(np.float64)
        begun = rows.first * opens[:, None]
        blind, known = self._limits(block)
        with np.errstate(over="ignore", invalid="ignore"):
            for k, low, high in runs(fold):
                self.starts[k] += begun[low:high].sum(axis=0)
                self.opened[k] += opens[low:high].sum()
                part = half[first[low] : first[high]]
                self.folds[k] += part.T @ part
                ended = half[_between(blind, first[low], first[high])]
                self.cut[k] += ended.T @ ended
                at = _between(known, first[low], first[high])
                if len(at):
                    z = rows.here[at] * rho[at, None]
                    self.onward[k] += z.T @ self._beyond(block, at)

    def merge(self, other: FeatureSystem) -> None:
        """Add another one's sums."""
        assert isinstance(other, StepsSystem)  # noqa: S101
        fresh, plain = not self.d, self.plain
        super().merge(other)
        self.plain = plain
        if not fresh and other.d:
            self.cut += other.cut
            self.onward += other.onward

    # -- answers -----------------------------------------------------------------------------------

    def _regressions(self, folds: Bools | None) -> tuple[Floats, Floats, Floats, Floats]:
        """`g`, `M`, and the matrices of both regressions."""
        held = self.whole
        assert isinstance(held, StepsSystem)  # noqa: S101
        which = np.ones(FOLDS, dtype=np.bool_) if folds is None else folds
        at = np.arange(held.d)[self.index]
        square = np.ix_(at, at)
        sums = (held.folds, held.cut, held.onward, held.plain.folds)
        gram, cut, onward, total = (one[which].sum(axis=0) for one in sums)
        gram, cut = gram[square], cut[square]
        added = self.ridge * float(np.diagonal(gram).mean()) * np.eye(len(at))
        paid, seen = gram + added, gram - cut + added
        g = solve(paid, total[at, -1]).theta
        ahead = gram - total[square] + onward[square]
        return g, np.linalg.solve(seen, ahead), paid, seen

    def solve(self, folds: Bools | None = None, ridge: float | None = None) -> Solution:
        """The weights with all steps ahead; not finite if they explode."""
        g, M, paid, _ = self._regressions(folds)
        with np.errstate(over="ignore", invalid="ignore"):
            theta = values_ahead(M, g, self.steps)
        if not np.isfinite(theta).all():
            return conclude(np.full(self.d, np.nan), "overflow", 0, np.inf, np.inf)
        return conclude(theta, "ok", self.d, float(np.linalg.cond(paid)), 0.0)

    def endless(self) -> float:
        """The value over an infinite horizon, infinite if there is none."""
        g, M, _, _ = self._regressions(None)
        if np.abs(np.linalg.eigvals(M)).max() >= 1.0:
            return float("inf")
        return float(self.start() @ np.linalg.solve(np.eye(len(g)) - M, g))

    def extrapolated(self, block: Episodes) -> float:
        """Share of negative weights among those that rewards have in the value.

        The value is `sum_i rho_i (phi_i·a) r_i`. If features can express how much more often the target
        visits the place of a row than the log does, `phi_i·a` is that and not negative; negative
        weights compensate for places that the log lacks.
        """
        _, M, paid, _ = self._regressions(None)
        a = np.linalg.solve(paid.T, visits_ahead(M, self.start(), self.steps))
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
        with np.errstate(over="ignore", invalid="ignore"):
            reach = visits_ahead(M, self.start(), self.steps)
            both = crossed(M, g, self.start(), self.steps)
        if not (np.isfinite(reach).all() and np.isfinite(both).all()):
            return np.full((len(g), 2), np.nan)  # the value explodes, and so do its derivatives
        a = np.linalg.solve(paid.T, reach)
        cross = np.linalg.solve(seen.T, both)
        left, size, right = np.linalg.svd(cross)
        kept = size > _NEGLIGIBLE * size[0]
        left, right = left[:, kept] * size[kept], right[kept].T
        return np.column_stack([a, g, left, right, M @ right])

    def influence(
        self, block: Episodes, rows: FeatureRows, theta: Floats, adjoint: Floats
    ) -> tuple[Floats, Floats]:
        """`V(s_0)` of each episode, and the influence of its rows."""
        own = rows.some(self.index)
        rank = (adjoint.shape[1] - 2) // 3
        cuts = [slice(2 + k * rank, 2 + (k + 1) * rank) for k in range(3)]
        value = own.here @ adjoint
        left, right, moved = (value[:, cut] for cut in cuts)
        blind, known = self._limits(block)
        ahead = own.ahead(adjoint[:, cuts[1]], right)
        if len(known):
            ahead[known] = self._beyond(block, known)[:, self.index] @ adjoint[:, cuts[1]]
        went = np.einsum("ij,ij->i", left, ahead - moved)
        went[blind] = 0.0
        each = value[:, 0] * (rows.reward - value[:, 1]) + went
        return own.first @ theta, block.sums(block.rows.rho * each)

    def start_values(self, lone: LoneStarts, theta: Floats) -> Floats:
        """`V(s_0)` of starts without rows."""
        return np.asarray(self.basis.first(lone)[:, self.index] @ theta)

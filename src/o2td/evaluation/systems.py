"""`A theta = b` by folds of episodes and by bootstrap lanes, in one pass.

An episode's part is `[A_e, b_e] = sum_t z_t [phi_t - gamma phi'_t, r_t]^T`. Every fold and every lane
is a weighted sum of these, so many at once are one matrix product: `lanes += counts^T [A_e, b_e]`.
Its cost per episode is lanes·d^2, that of the parts themselves rows·d^2.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np

from o2td.arrays import Bools, Floats, Ints
from o2td.compiled import njit
from o2td.evaluation.basis import Actions, FeatureRows, Own, States
from o2td.evaluation.coverage import unlogged
from o2td.evaluation.episodes import Episodes
from o2td.kernels.emphatic import emphasis
from o2td.linear_algebra import Solution, conclude, solve
from o2td.sources.log_rows import LoneStarts

FOLDS = 5
LEAST_RIDGE = 1e-8  # of action values: some actions are never tried
_FEWEST = 2.0  # effective rows of a cell whose residuals are corrected for its own fit
_LANES_BYTES = 1 << 28  # bytes that the lanes' matrices may take
_STACK = 1 << 21  # numbers in episodes' parts stacked at a time
_ROWS = 1 << 20  # numbers in feature rows kept at a time: about the size of a cache


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _traces(
    here: Any,
    rho: Any,
    discount: Any,
    first: Any,
    trace: float,
    emphatic: bool,
    held: Any,
    out: Any,
) -> None:
    """`z_t = rho_t (lambda gamma_t z_{t-1} + M_t phi_t)`, `M_t = 1` or ETD's.

    `held` is `lambda gamma_t z_{t-1}` and the follow-on trace before the first row; on return,
    after the last.
    """
    d = here.shape[1]
    for e in range(len(first) - 1):
        follow = held[d] if e == 0 else 0.0
        for t in range(first[e], first[e + 1]):
            followed = weight = 1.0
            if emphatic:
                followed, weight = emphasis(1.0, trace, follow)
            keep = 0.0 if t == first[e] else trace * discount[t - 1]
            for j in range(d):
                before = keep * out[t - 1, j] if keep != 0.0 else 0.0
                out[t, j] = rho[t] * (before + weight * here[t, j])
            if t == 0:
                for j in range(d):
                    out[t, j] += rho[t] * held[j]
            if emphatic:
                follow = followed * (rho[t] * discount[t])
        held[d] = follow
    for j in range(d):
        held[j] = trace * discount[-1] * out[-1, j]


class FeatureSystem:
    """Sums of `[A, b]` and of start features by fold, and by lane if they fit in memory."""

    def __init__(
        self,
        basis: States | Actions | Own,
        trace: float = 0.0,
        emphatic: bool = False,
        lanes: int = 0,
        ridge: float = 0.0,
        logged: bool = False,
    ) -> None:
        self.basis, self.trace, self.emphatic, self.ridge = basis, trace, emphatic, ridge
        self.uses_ratios = basis.uses_ratios and not logged
        self.wanted = lanes
        self.d = 0
        self.opened = np.zeros(FOLDS)
        # Sums of `z` and `z^2` by feature, where each row has one feature that is 1.
        self.tabular = trace == 0.0 and basis.tabular
        self.weights = np.zeros((2, 0))
        self.lanes: Floats | None = None
        self._held: Floats = np.zeros(0)  # traces after a part of a long episode
        self._whole: FeatureSystem | None = None
        self.index: Any = slice(None)

    def part(self, basis: States, index: Ints, ridge: float) -> FeatureSystem:
        """A system on some of the features that shares the sums of this one."""
        made = FeatureSystem(basis, self.trace, ridge=ridge)
        made._whole, made.index, made.d = self, index, len(index)
        return made

    @property
    def whole(self) -> FeatureSystem:
        """The system that holds the sums."""
        return self if self._whole is None else self._whole

    def lift(self, theta: Floats) -> Floats:
        """Weights of these features, as weights of all features of `whole`."""
        if self._whole is None:
            return theta
        lifted = np.zeros((self._whole.d, *theta.shape[1:]))
        lifted[self.index] = theta
        return lifted

    @property
    def label(self) -> str:
        """Basis, trace and ridge in words."""
        ridge = f", ridge {self.ridge:g}" if self.ridge else ""
        return f"{self.basis.name}, λ = {self.trace:g}{ridge}"

    def _allocate(self, d: int) -> None:
        self.d = d
        self.folds = np.zeros((FOLDS, d, d + 1))
        self.starts = np.zeros((FOLDS, d))
        self.weights = np.zeros((2, d))
        if self.wanted and self.wanted * d * (d + 1) * 8 <= _LANES_BYTES:
            self.lanes = np.zeros((self.wanted, d * (d + 1)))
            self.lane_starts = np.zeros((self.wanted, d + 1))

    # -- accumulating ------------------------------------------------------------------------------

    def left(self, block: Episodes, rows: FeatureRows) -> Floats:
        """The rows `z_t`."""
        if not self.uses_ratios:
            return rows.here if rows.keep is None else rows.here * rows.keep[:, None]
        return self._traced(block, rows.here)

    def _traced(self, block: Episodes, here: Floats) -> Floats:
        """`z_t` computed from any numbers per row instead of features."""
        rho, discount = block.rows.rho, block.rows.discount
        if self.trace == 0.0 and not self.emphatic:
            return here * rho[:, None]
        out = np.empty_like(here)
        if not block.within:
            self._held = np.zeros(here.shape[1] + 1)
        _traces(here, rho, discount, block.first, self.trace, self.emphatic, self._held, out)
        return out

    def add(self, block: Episodes, rows: FeatureRows, fold: Any, counts: Floats | None) -> None:
        """Take in a block; `fold` and `counts` belong to its episodes."""
        if not self.d:
            self._allocate(rows.here.shape[1])
        z = self.left(block, rows)
        if self.tabular:
            with np.errstate(over="ignore"):
                self.weights += z.sum(axis=0), np.square(z).sum(axis=0)
        right = rows.right
        opens = block.opens.astype(np.float64)
        first = rows.first * opens[:, None]
        alone = self.lanes is None or counts is None
        with np.errstate(over="ignore", invalid="ignore"):
            for k, low, high in runs(fold):
                self.starts[k] += first[low:high].sum(axis=0)
                self.opened[k] += opens[low:high].sum()
                if alone:
                    part = slice(block.first[low], block.first[high])
                    self.folds[k] += z[part].T @ right[part]
        if self.lanes is None or counts is None:
            return
        self.lane_starts += counts.T @ np.column_stack([first, opens])
        self._add_lanes(block, z, right, fold, counts)

    def add_starts(self, lone: LoneStarts, fold: Any, counts: Floats | None) -> None:
        """Add starts of episodes without rows."""
        first = self.basis.first(lone)
        np.add.at(self.starts, fold, first)
        np.add.at(self.opened, fold, 1.0)
        if self.lanes is not None and counts is not None:
            self.lane_starts += counts.T @ np.column_stack([first, np.ones(len(lone))])

    def merge(self, other: FeatureSystem) -> None:
        """Add another one's sums."""
        if not self.d:
            vars(self).update({k: v for k, v in vars(other).items() if k != "basis"})
        elif other.d:
            self.opened += other.opened
            self.folds += other.folds
            self.weights += other.weights
            self.starts += other.starts
            if self.lanes is not None and other.lanes is not None:
                self.lanes += other.lanes
                self.lane_starts += other.lane_starts

    def start_values(self, lone: LoneStarts, theta: Floats) -> Floats:
        """`V(s_0)` of starts without rows; `theta` may have columns."""
        return np.asarray(self.basis.first(lone) @ theta)

    def _add_lanes(
        self, block: Episodes, z: Floats, right: Floats, fold: Any, counts: Floats
    ) -> None:
        assert self.lanes is not None  # noqa: S101
        d, size = self.d, max(1, _STACK // (self.d * (self.d + 1)))
        stack = np.empty((min(size, block.count), d, d + 1))
        for low in range(0, block.count, size):
            high = min(low + size, block.count)
            for e in range(low, high):
                part = slice(block.first[e], block.first[e + 1])
                np.matmul(z[part].T, right[part], out=stack[e - low])
            flat = stack[: high - low].reshape(high - low, -1)
            self.lanes += counts[low:high].T @ flat
            for k in np.unique(fold[low:high]):
                mine = fold[low:high] == k
                self.folds[k] += stack[: high - low][mine].sum(axis=0)

    def logged(self) -> FeatureSystem:
        """The equations of the policy that made the log, on the same features."""
        return FeatureSystem(self.basis, ridge=self.ridge, logged=True)

    def light(self) -> FeatureSystem:
        """The same without sums, for computing with rows."""
        other = copy(self.whole)
        other.lanes = None
        other.folds, other.starts = np.zeros((0, 0, 0)), np.zeros((0, 0))
        return other

    # -- answers -----------------------------------------------------------------------------------

    def start(self, folds: Bools | None = None) -> Floats:
        """Mean features of the start states."""
        which = np.ones(FOLDS, dtype=np.bool_) if folds is None else folds
        sums, opened = self.fold_starts()[which], self.whole.opened[which]
        return np.asarray(sums.sum(axis=0) / max(opened.sum(), 1.0))

    def fold_starts(self) -> Floats:
        """Sums of the features of start states, by fold."""
        return np.asarray(self.whole.starts[:, self.index])

    def _matrix(self, folds: Bools | None, ridge: float | None) -> tuple[Floats, Floats]:
        held = self.whole.folds
        total = held.sum(axis=0) if folds is None else held[folds].sum(axis=0)
        A, b = total[:, :-1][self.index][:, self.index].copy(), total[self.index, -1]
        A[np.diag_indices(len(A))] += self._added(A, self.ridge if ridge is None else ridge)
        return A, b

    def _added(self, A: Floats, ridge: float) -> float:
        return ridge * float(np.abs(np.diagonal(A)).mean())

    def solve(self, folds: Bools | None = None, ridge: float | None = None) -> Solution:
        """Solve for `theta`, from some folds only if they are given."""
        return _solved(*self._matrix(folds, ridge))

    def adjoint(self) -> Floats:
        """`u = A^-T phi_0`: the derivative of the value in each equation.

        Of one-hot features it is enlarged by what fitting takes from residuals (`own_fit`).
        """
        found = self._adjoint()
        return found * own_fit(*self.weights) if self.tabular else found

    def _adjoint(self) -> Floats:
        A, _ = self._matrix(None, None)
        return _solved(np.ascontiguousarray(A.T), self.start()).theta

    def untried(self, ahead: float) -> float:
        """Share of the target's visits to one-hot features that no row has.

        Such a feature has no equation but the ridge's, so the visits to it are the ridge times `u`.
        """
        A, _ = self._matrix(None, None)
        added, rows = self._added(A, self.ridge), self.whole.weights[0, self.index]
        bare = rows == 0.0
        visits = self._adjoint() * np.where(bare, added, rows)
        return unlogged(visits, ~bare, ahead)

    def lane_values(self) -> Floats | None:
        """The value in each lane, or None without lanes."""
        if self.lanes is None:
            return None
        d = self.d
        values = np.empty(len(self.lanes))
        for lane, flat in enumerate(self.lanes):
            whole = flat.reshape(d, d + 1)
            A = whole[:, :-1].copy()
            # A lane may lack what only a few episodes visit: a tiny ridge gives that the value 0.
            A[np.diag_indices(d)] += self._added(A, max(self.ridge, 1e-12))
            start = self.lane_starts[lane, :-1] / max(self.lane_starts[lane, -1], 1.0)
            try:
                values[lane] = start @ np.linalg.solve(A, whole[:, -1])
            except np.linalg.LinAlgError:
                values[lane] = start @ solve(A, whole[:, -1]).theta
        return values

    def moved(self, block: Episodes, along: Floats, delta: Floats) -> Floats:
        """`u·sum_t z_t delta_t` of each episode, from `along = here @ u` and `delta` of each row."""
        if self.uses_ratios:
            along = self._traced(block, along[:, None])[:, 0]
        return block.sums(along * delta)


def own_fit(weight: Floats, square: Floats) -> Floats:
    """`sqrt(n / (n - 1))` for means of `n = (sum w)^2 / sum w^2` effective rows, at most `sqrt(2)`.

    A cell's value is the mean of its own rows, whose squared residuals are too small by `1 - 1/n`:
    the leverage correction HC2 of MacKinnon and White (1985), the same for all rows of a cell, so
    that influence values still add up to 0.

    >>> own_fit(np.array([2.0, 10.0]), np.array([2.0, 10.0])).round(3)
    array([1.414, 1.054])
    """
    most = _FEWEST / (_FEWEST - 1.0)
    with np.errstate(over="ignore", invalid="ignore"):  # of enormous ratios
        share = np.divide(square, weight**2, out=np.ones_like(weight), where=weight > 0.0)
    share = np.where(np.isfinite(share), share, 1.0)
    return np.sqrt(np.minimum(1.0 / np.maximum(1.0 - share, 1.0 / most), most))


def _solved(A: Floats, b: Floats) -> Solution:
    """A solution, or none if products of ratios have overflowed."""
    if np.isfinite(A).all() and np.isfinite(b).all():
        return solve(A, b)
    return conclude(np.full(len(b), np.nan), "overflow", 0, np.inf, np.inf)


def runs(fold: Any) -> Iterator[tuple[int, int, int]]:
    """Runs of episodes in the same fold; few if they are sorted by fold."""
    cuts = [0, *(np.flatnonzero(np.diff(fold)) + 1).tolist(), len(fold)]
    return ((int(fold[low]), low, high) for low, high in pairwise(cuts))


def fitting_rows(width: int) -> int:
    """How many rows with `width` features to process at a time."""
    return max(_ROWS // max(width, 1), 1)


def slices(block: Episodes, width: int) -> list[Episodes]:
    """A block in parts of that many rows."""
    limit = fitting_rows(width)
    return [block] if len(block.rows) <= limit else list(block.parts(limit))

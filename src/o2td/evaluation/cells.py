"""The plug-in model of a log whose states recur, by folds and bootstrap lanes.

With one weight per state, LSTD(0) is the plug-in optimum normalised by ratios:
`V(s) = (sum rho r + sum_s' sum(rho gamma) V(s')) / sum rho`. Only one number per state and one per
pair of states are kept in each fold and lane, so the lanes are sparse systems.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from o2td.arrays import Bools, Floats, Ints
from o2td.chain.sparse import iterated
from o2td.evaluation.basis import Cells
from o2td.evaluation.coverage import NEARLY, unlogged
from o2td.evaluation.episodes import Episodes
from o2td.evaluation.systems import FOLDS, own_fit
from o2td.linear_algebra import Solution, conclude, solve
from o2td.sources.log_rows import LoneStarts

_LANES_BYTES = 1 << 28
_DENSE = 160  # up to this many states a dense solve is faster than a sparse one
_LARGE = 2000  # states from which on a factorisation may fill up
_WIDE = 100  # the band of the matrix, at its narrowest order, beyond which it would
_TINY = 1e-12


class CellSystem:
    """Sums by cell and by pair of cells; the first columns are folds, the others lanes."""

    trace, emphatic, ridge = 0.0, False, 0.0

    def __init__(self, basis: Cells, lanes: int = 0, uses_ratios: bool = True) -> None:
        self.basis, self.wanted, self.uses_ratios = basis, lanes, uses_ratios
        self.cell: Ints = np.zeros(0, dtype=np.int64)
        self.pair: Ints = np.zeros((0, 2), dtype=np.int64)
        # For each cell: sums of rho, of rho r, and the number of starts there.
        self.sums = np.zeros((0, 3, FOLDS))
        self.square = np.zeros(0)  # sum of rho^2 by cell
        self.flow = np.zeros((0, FOLDS))
        self._iterates: bool | None = None  # whether large systems are solved by iteration

    @property
    def whole(self) -> CellSystem:
        """The system that holds the sums: itself."""
        return self

    def lift(self, theta: Floats) -> Floats:
        """Weights of the cells, as they are."""
        return theta

    def fold_starts(self) -> Floats:
        """Number of starts in each cell, by fold."""
        return self.starts

    @property
    def label(self) -> str:
        """Basis in words."""
        return f"{self.basis.name}, λ = 0"

    @property
    def d(self) -> int:
        """Number of cells that occurred."""
        return len(self.cell)

    @property
    def starts(self) -> Floats:
        """Number of starts in each cell, by fold."""
        return np.asarray(self.sums[:, 2, :FOLDS].T)

    # -- accumulating ------------------------------------------------------------------------------

    def add(self, block: Episodes, fold: Any, counts: Floats | None) -> None:
        """Take in a block; `fold` and `counts` belong to its episodes."""
        here, ahead = self.basis.index(block)
        if not self.d and self.wanted and counts is not None:
            width = FOLDS + self.wanted
            self.sums, self.flow = np.zeros((0, 3, width)), np.zeros((0, width))
        self._grow(np.unique(np.concatenate([here, ahead[ahead >= 0]])))
        at, to = self._place(here), self._place(np.maximum(ahead, self.cell[0]))
        rows, unit = block.rows, block.unit()
        rho = rows.rho if self.uses_ratios else np.ones(len(rows))
        live = (rows.discount > 0.0) & (rho > 0.0)
        key, where = np.unique(at[live] * self.d + to[live], return_inverse=True)
        joined = self._joined(key)
        weights = self._weights(fold, counts, block.count)
        zero = np.zeros(len(rows))
        first = zero.copy()
        first[block.first[:-1]] = block.opens
        for k, value in enumerate((rho, rho * rows.reward, first)):
            self.sums[:, k] += _grouped(at, unit, value, self.d, block.count) @ weights
        with np.errstate(over="ignore"):
            self.square += np.bincount(at, np.square(rho), minlength=self.d)
        flow = (rho * rows.discount)[live]
        found = _grouped(where, unit[live], flow, len(key), block.count) @ weights
        self._merge(joined, key, found)

    def add_starts(self, lone: LoneStarts, fold: Any, counts: Floats | None) -> None:
        """Add starts of episodes without rows."""
        cell = self.basis.features.state_of(lone.input)
        self._grow(np.unique(cell))
        weights = self._weights(fold, counts, len(lone))
        each = np.arange(len(lone))
        self.sums[:, 2] += (
            _grouped(self._place(cell), each, np.ones(len(lone)), self.d, len(lone)) @ weights
        )

    def merge(self, other: CellSystem) -> None:
        """Add another one's sums."""
        if not self.d:
            vars(self).update({k: v for k, v in vars(other).items() if k != "basis"})
        elif other.d:
            width = min(self.sums.shape[2], other.sums.shape[2])  # one may have dropped its lanes
            for one in (self, other):
                one.sums, one.flow = one.sums[:, :, :width], one.flow[:, :width]
            self._grow(other.cell)
            key = other._keys(self)
            joined = self._joined(key)
            width = self.sums.shape[2]
            self.sums[self._place(other.cell)] += other.sums[:, :, :width]
            self.square[self._place(other.cell)] += other.square
            self._merge(joined, key, other.flow[:, :width])

    def start_values(self, lone: LoneStarts, theta: Floats) -> Floats:
        """`V(s_0)` of starts without rows; `theta` may have columns."""
        return np.asarray(theta[self._place(self.basis.features.state_of(lone.input))])

    def _weights(self, fold: Any, counts: Floats | None, episodes: int) -> Floats:
        member = np.zeros((episodes, FOLDS))
        member[np.arange(episodes), fold] = 1.0
        if self.sums.shape[2] == FOLDS or counts is None:
            return member
        return np.column_stack([member, counts])

    def _grow(self, seen: Ints) -> None:
        cell = np.union1d(self.cell, seen)
        if len(cell) > len(self.cell):
            self._check(len(cell), len(self.pair))
            sums = np.zeros((len(cell), 3, self.sums.shape[2]))
            square = np.zeros(len(cell))
            where = np.searchsorted(cell, self.cell)
            sums[where], square[where] = self.sums, self.square
            self.cell, self.sums, self.square = cell, sums, square

    def _keys(self, among: CellSystem) -> Ints:
        """One number per pair: its two places among the cells of another, in the order of pairs."""
        return among._place(self.pair[:, 0]) * among.d + among._place(self.pair[:, 1])

    def _joined(self, key: Ints) -> Ints:
        """The keys of the pairs held and of these."""
        joined = np.union1d(self._keys(self), key)
        self._check(self.d, len(joined))
        return joined

    def _merge(self, joined: Ints, key: Ints, flow: Floats) -> None:
        total = np.zeros((len(joined), flow.shape[1]))
        total[np.searchsorted(joined, self._keys(self))] = self.flow
        total[np.searchsorted(joined, key)] += flow
        self.pair = self.cell[np.column_stack(np.divmod(joined, self.d))]
        self.flow = total

    def _check(self, cells: int, pairs: int) -> None:
        """Drop the lanes if those of so many cells and pairs would not fit in memory."""
        size = (3 * cells + pairs) * self.sums.shape[2] * self.sums.itemsize
        if self.sums.shape[2] > FOLDS and size > _LANES_BYTES:
            self.sums, self.flow = self.sums[:, :, :FOLDS].copy(), self.flow[:, :FOLDS].copy()

    def _place(self, cells: Ints) -> Ints:
        return np.searchsorted(self.cell, cells)

    def logged(self) -> CellSystem:
        """The model of the policy that made the log, on the same cells."""
        return CellSystem(self.basis, uses_ratios=False)

    def light(self) -> CellSystem:
        """The same without sums, for computing with rows."""
        other = copy(self)
        other.sums, other.flow = np.zeros((0, 3, FOLDS)), np.zeros((0, FOLDS))
        return other

    # -- answers -----------------------------------------------------------------------------------

    def _column(self, folds: Bools | None) -> tuple[Floats, Floats]:
        which = True if folds is None else np.asarray(folds)
        both = (self.sums[:, :, :FOLDS], self.flow[:, :FOLDS])
        sums, flow = (one.sum(axis=-1, where=which) for one in both)  # without a copy
        return sums, flow

    def _matrix(self, rho: Floats, flow: Floats) -> Any:
        """`diag(sum rho) - flow` (as a sparse matrix beyond some states), rows scaled to one."""
        at, to = self._place(self.pair[:, 0]), self._place(self.pair[:, 1])
        scale = 1.0 / np.maximum(rho, _TINY)
        value = flow * scale[at]
        if self.d <= _DENSE:
            dense = np.eye(self.d)
            np.add.at(dense, (at, to), -value)
            return dense, scale
        from scipy.sparse import coo_array, eye_array

        A = eye_array(self.d) - coo_array((value, (at, to)), shape=(self.d, self.d))
        return A.tocsr(), scale

    def _values(self, sums: Floats, flow: Floats) -> Floats:
        A, scale = self._matrix(sums[:, 0], flow)
        return self._solved(A, sums[:, 1] * scale)

    def _solved(self, A: Any, b: Floats) -> Floats:
        """Solve for theta, by iteration where states lead anywhere: a factorisation would fill up."""
        if self._iterates is None:
            self._iterates = self.d > _LARGE and _band(A) > _WIDE
        found = iterated(A, b) if self._iterates else None
        if found is not None:
            return found
        self._iterates = False
        return _solve(A, b)

    def start(self, folds: Bools | None = None) -> Floats:
        """Share of starts in each cell."""
        sums, _ = self._column(folds)
        return np.asarray(sums[:, 2] / max(sums[:, 2].sum(), 1.0))

    def solve(self, folds: Bools | None = None) -> Solution:
        """Values of the cells that occurred; 0 where the target was never followed."""
        sums, flow = self._column(folds)
        theta = self._values(sums, flow)
        A, _ = self._matrix(sums[:, 0], flow)
        if isinstance(A, np.ndarray):
            return solve(A, sums[:, 1] / np.maximum(sums[:, 0], _TINY))
        residual = float(np.abs(A @ theta - sums[:, 1] / np.maximum(sums[:, 0], _TINY)).max())
        return conclude(theta, "ok", self.d, 1.0, residual)

    def adjoint(self) -> Floats:
        """`u = A^-T phi_0`, for rows weighted by `rho` as they are.

        It is enlarged by what fitting takes from residuals (`own_fit`).
        """
        sums, flow = self._column(None)
        A, scale = self._matrix(sums[:, 0], flow)
        return np.asarray(
            self._solved(A.T, self.start()) * scale * own_fit(sums[:, 0], self.square)
        )

    def unlogged(self, ahead: float) -> float:
        """Share of the target's visits in or beyond cells that no usable row starts from."""
        sums, flow = self._column(None)
        A, _ = self._matrix(sums[:, 0], NEARLY * flow)
        return unlogged(self._solved(A.T, self.start()), sums[:, 0] > 0.0, ahead)

    def lane_values(self) -> Floats | None:
        """The value in each lane, or None without lanes."""
        lanes = self.sums.shape[2] - FOLDS
        if not lanes:
            return None
        values = np.empty(lanes)
        for lane in range(lanes):
            sums = self.sums[:, :, FOLDS + lane]
            share = sums[:, 2] / max(sums[:, 2].sum(), 1.0)
            values[lane] = share @ self._values(sums, self.flow[:, FOLDS + lane])
        return values

    def table(self, theta: Floats, size: int) -> Floats:
        """`theta` as one weight per state, 0 for those that never occurred."""
        whole = np.zeros(size)
        whole[self.cell] = theta
        return whole

    def differences(self, block: Episodes, theta: Floats) -> tuple[Floats, Floats]:
        """`V(s_0)` of each episode and `delta` of each row; `theta` may have columns."""
        here, ahead = self.basis.index(block)
        at, to = self._place(here), self._place(np.maximum(ahead, self.cell[0]))
        rows = block.rows
        single = theta.ndim == 1
        step, reward = (
            (rows.discount, rows.reward)
            if single
            else (rows.discount[:, None], rows.reward[:, None])
        )
        delta = reward + step * theta[to] - theta[at]
        return np.asarray(theta[at[block.first[:-1]]]), np.asarray(delta)

    def influence(self, block: Episodes, theta: Floats, adjoint: Floats) -> tuple[Floats, Floats]:
        """`V(s_0)` and `u·sum_t z_t delta_t` of each episode."""
        first, delta = self.differences(block, theta)
        here, _ = self.basis.index(block)
        return first, block.sums(adjoint[self._place(here)] * block.rows.rho * delta)


def _grouped(group: Ints, unit: Ints, value: Floats, groups: int, units: int) -> Any:
    """Sums of `value` by group and episode, as a sparse (groups, episodes) matrix."""
    from scipy.sparse import coo_array

    return coo_array((value, (group, unit)), shape=(groups, units)).tocsr()


def _band(A: Any) -> int:
    """Greatest distance of an entry from the diagonal, in the order of Cuthill and McKee."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    matrix = csr_array(A)
    place = np.empty(A.shape[0], dtype=np.int64)
    place[reverse_cuthill_mckee(matrix)] = np.arange(len(place))
    entries = matrix.tocoo()
    return int(np.abs(place[entries.row] - place[entries.col]).max(initial=0))


def _solve(A: Any, b: Floats) -> Floats:
    """Solve for theta; take the smallest if the target never leaves some states at discount 1."""
    if isinstance(A, np.ndarray):
        try:
            found: Any = np.linalg.solve(A, b)
        except np.linalg.LinAlgError:
            return solve(np.ascontiguousarray(A), b).theta
        if np.isfinite(found).all():
            return np.asarray(found)
        return solve(np.ascontiguousarray(A), b).theta
    from scipy.sparse.linalg import splu

    try:
        return np.asarray(splu(A.tocsc()).solve(b))
    except RuntimeError:
        return solve(A.toarray(), b).theta

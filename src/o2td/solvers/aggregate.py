"""Rows summed by state, from which SOTD, the plug-in optimum and Bellman residuals are computed.

For each visited state s: the number of visits, and the sums over them of `rho`, `rho r` and
`rho (phi - gamma phi')`. Divided by the visits ("ordinary") or by the sum of `rho` ("normalized"),
they estimate `R_s` and `Delta_s = (L Phi)_s`. No array is larger than states by features.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from o2td.arrays import Floats, Ints, freeze
from o2td.errors import InputError
from o2td.linear_algebra import top
from o2td.solvers import row_loops
from o2td.solvers.base import Arrays, Statistics, refuse_overflow, stored_csr
from o2td.solvers.groups import by_group, distinct, grouping
from o2td.solvers.system import scale_rows
from o2td.transitions import Transitions

_BLOCK = 1 << 20  # numbers in a block of rows that is made dense at once


@dataclass(eq=False)
class StateSums(Statistics):
    """Sums by state; `state` is sorted, and everything else follows its order.

    `phi` holds the mean features over visits, or is None if `table` has the features of each state.
    Means are taken of differences from the first visit, so equal rows give exactly that row.
    """

    state: Ints
    visits: Floats
    rho: Floats
    reward: Floats
    delta: Any
    phi: Any
    table: Any
    rows: int

    @property
    def d(self) -> int:  # type: ignore[override]
        """Number of features."""
        return int(self.delta.shape[1])

    def features(self) -> Any:
        """Mean features of each state over its visits; exactly its own if they never differ."""
        if self.table is not None:
            return self.table[self.state]
        return self.phi

    def then(self, other: Self) -> Self:
        """Sums over both."""
        state = np.union1d(self.state, other.state)
        mine, others = (np.searchsorted(state, part.state) for part in (self, other))
        phi, table = self._joined_features(other, len(state), mine, others)
        joined = type(self)(
            state,
            _place(self.visits, mine, len(state)) + _place(other.visits, others, len(state)),
            _place(self.rho, mine, len(state)) + _place(other.rho, others, len(state)),
            _place(self.reward, mine, len(state)) + _place(other.reward, others, len(state)),
            _sum_rows(self.delta, mine, other.delta, others, len(state)),
            phi,
            table,
            self.rows + other.rows,
        )
        refuse_overflow(joined.arrays(features=False))
        return joined

    def _joined_features(self, other: Self, size: int, mine: Ints, others: Ints) -> tuple[Any, Any]:
        table = _common_table(self, other)
        if table is not None:
            return None, table
        visits = _place(self.visits, mine, size), _place(other.visits, others, size)
        one, two = _alike(self.features(), other.features())
        one, two = _place_rows(one, mine, size), _place_rows(two, others, size)
        return one + scaled(two - one, visits[1] / (visits[0] + visits[1])), None

    def arrays(self, features: bool = True) -> Arrays:
        """All sums by name; sparse ones as their three arrays."""
        arrays = {
            "state": self.state,
            "visits": self.visits,
            "rho": self.rho,
            "reward": self.reward,
            "rows": np.asarray(self.rows),
            "d": np.asarray(self.d),
            **_parts("delta", self.delta),
        }
        if features:
            arrays.update(_parts("features", self.features()))
            arrays["own"] = np.asarray(self.table is not None)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """The inverse of `arrays`, shapes checked."""
        state, d = arrays["state"], int(arrays["d"])
        if state.ndim != 1 or (np.diff(state) <= 0).any():
            raise ValueError("states are not sorted")
        visits, rho, reward = (arrays[name] for name in ("visits", "rho", "reward"))
        if {visits.shape, rho.shape, reward.shape} != {state.shape}:
            raise ValueError("sums have the wrong shape")
        if any(part.size and part.min() < 0 for part in (state, visits, rho)):
            raise ValueError("states, visits or ratios are negative")
        delta, phi = (_whole(name, arrays, (len(state), d)) for name in ("delta", "features"))
        own = bool(arrays["own"])
        table = HeldRows(state, phi) if own else None
        phi = None if own else phi
        return cls(state, visits, rho, reward, delta, phi, table, int(arrays["rows"]))


@dataclass(eq=False)
class HeldRows:
    """The rows of a feature table that were saved to a file: those of the states seen."""

    state: Ints
    rows: Any

    def __getitem__(self, state: Ints) -> Any:
        return self.rows[np.searchsorted(self.state, state)]


def _common_table(one: StateSums, two: StateSums) -> Any:
    """A table that holds the features of both, or None."""
    if one.table is None or two.table is None:
        return None
    for table, other in ((one, two), (two, one)):
        if isinstance(table.table, HeldRows):
            continue
        if table.table is other.table or _same(table, other):
            return table.table
    both = np.intersect1d(one.state, two.state)
    if (
        isinstance(one.table, HeldRows)
        and isinstance(two.table, HeldRows)
        and _equal(one.table[both], two.table[both])
    ):
        state, first = np.unique(np.append(one.state, two.state), return_index=True)
        return HeldRows(state, _stack(one.features(), two.features())[first])
    return None


def _same(table: StateSums, other: StateSums) -> bool:
    """Whether the table of the first has the rows that the other holds."""
    if len(other.state) and other.state[-1] >= table.table.shape[0]:
        return False
    return _equal(table.table[other.state], other.features())


def _equal(one: Any, two: Any) -> bool:
    if one.shape != two.shape:
        return False
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return np.array_equal(one, two)
    return bool((one != two).nnz == 0) if type(one) is type(two) else False


def _stack(one: Any, two: Any) -> Any:
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return np.concatenate([one, two])
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack([one, two], format="csr"))


def collect(batch: Transitions, weight: Floats | None = None, who: str = "SOTD") -> StateSums:
    """The sums of one batch; `weight` counts how often each row occurs."""
    if batch.state is None:
        raise InputError(
            f"{who} sums up rows by state and these have none; pass state= (the number of the state,"
            " or of its cell if states are continuous) to Transitions, or use Transitions.from_table"
        )
    weight = np.ones(batch.n) if weight is None else weight
    state, first, where = distinct(batch.state)
    size, each = len(state), weight * batch.rho
    visits, rho, reward = (
        by_group(where, value, size) for value in (weight, each, each * batch.reward)
    )
    table = batch.table if batch.layout == "table" else None
    delta = _differences(batch, where, each, size)
    phi = None if table is not None else _means(batch, where, weight, first, visits)
    return StateSums(state, visits, rho, reward, delta, phi, table, batch.n)


@dataclass(eq=False)
class Aggregate:
    """Estimates by state: `Delta`, `R`, features `phi` and visit shares `xi`.

    States whose ratios sum to zero carry no information about the target and are `left_out`.
    """

    delta: Any
    reward: Floats
    phi: Any
    xi: Floats
    left_out: int

    @property
    def shape(self) -> tuple[int, int]:
        """States and features."""
        return (int(self.delta.shape[0]), int(self.delta.shape[1]))

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Dense blocks of the rows of `Delta`, with `R` as the last column."""
        size = max(64, _BLOCK // self.shape[1])
        for low in range(0, self.shape[0], size):
            part = slice(low, low + size)
            yield part, np.column_stack([_dense(self.delta[part]), self.reward[part]])

    def in_units(self) -> tuple[Aggregate, int, int]:
        """Features over `2^k` and rewards over `2^m`, so that the largest are near one; k and m."""
        k, m = max(top(_values(rows)) for rows in (self.phi, self.delta)), top(self.reward)
        phi, delta, reward = (
            _shifted(rows, by) for rows, by in ((self.phi, -k), (self.delta, -k), (self.reward, -m))
        )
        return replace(self, phi=phi, delta=delta, reward=reward), k, m

    def gram(self) -> Floats:
        """`C = Phi^T Xi Phi`."""
        return self.weighted(self.phi)

    def weighted(self, rows: Any) -> Floats:
        """`Phi^T Xi rows`, block by block."""
        d = self.shape[1]
        C = np.zeros((d, rows.shape[1]))
        size = max(64, _BLOCK // d)
        for low in range(0, self.shape[0], size):
            part = slice(low, low + size)
            phi = scaled(self.phi[part], self.xi[part])
            C += _dense(phi.T @ rows[part])
        return C


def estimates(sums: StateSums, weighting: str) -> Aggregate:
    """Means over visits (`"ordinary"`) or over ratios (`"normalized"`) by state.

    The shares `xi` are of all visits, including those of states left out.
    """
    informative = sums.rho > 0.0
    if informative.all():
        delta, rho, reward, visits = sums.delta, sums.rho, sums.reward, sums.visits
        phi = sums.features()
    else:
        kept = np.flatnonzero(informative)
        delta, rho, reward, visits = (
            part[kept] for part in (sums.delta, sums.rho, sums.reward, sums.visits)
        )
        phi = sums.features()[kept]
    by = rho if weighting == "normalized" else visits
    xi = visits / sums.visits.sum()
    left_out = int((~informative).sum())
    return Aggregate(divide_rows(delta, by), reward / by, phi, xi, left_out)


def divide_rows(rows: Any, by: Floats) -> Any:
    """Each row divided by its number."""
    if isinstance(rows, np.ndarray):
        return rows / by[:, None]
    quotient = rows.copy()
    quotient.data = rows.data / np.repeat(by, np.diff(rows.indptr))
    return quotient


def scaled(rows: Any, weight: Floats) -> Any:
    """Each row times its number."""
    return rows * weight[:, None] if isinstance(rows, np.ndarray) else scale_rows(rows, weight)


def row_norms(rows: Any) -> Floats:
    """The length of each row."""
    return np.asarray(np.sqrt(np.asarray((rows * rows).sum(axis=1)).ravel()))


def _values(rows: Any) -> Floats:
    return np.asarray(rows if isinstance(rows, np.ndarray) else rows.data)


def _shifted(rows: Any, k: int) -> Any:
    if isinstance(rows, np.ndarray):
        return np.ldexp(rows, k)
    from scipy.sparse import csr_array

    return csr_array((np.ldexp(rows.data, k), rows.indices, rows.indptr), shape=rows.shape)


def _differences(batch: Transitions, where: Ints, weight: Floats, size: int) -> Any:
    """`out[where_t] += weight_t (phi_t - gamma_t phi'_t)`, sparse where the features are.

    Rows are summed in blocks, as many as each block has rows per state, because the rounding errors
    of one long running sum would look like additional rank.
    """
    block = max(1, int(np.sqrt(batch.n * size)))
    total: Any = None
    for low in range(0, batch.n, block):
        part = slice(low, low + block)
        one = _added(batch[part], where[part], weight[part], size)
        total = one if total is None else total + one
    return _added(batch, where, weight, size) if total is None else total


def _added(batch: Transitions, where: Ints, weight: Floats, size: int) -> Any:
    if not batch.sparse:
        out = np.zeros((size, batch.d))
        vectors = (freeze(where), freeze(weight), batch.discount)
        row_loops.aggregate(*batch.rows("phi"), *batch.rows("next_phi"), *vectors, out)
        return out
    ahead = scale_rows(batch.next_phi, weight * batch.discount)
    return _canonical(
        grouping(where, weight, size) @ batch.phi - grouping(where, np.ones(batch.n), size) @ ahead
    )


def _means(batch: Transitions, where: Ints, weight: Floats, first: Ints, visits: Floats) -> Any:
    """`phi_first + sum_t weight_t (phi_t - phi_first) / visits` by state."""
    own, size = batch.phi[first], len(first)
    if batch.sparse:
        change = grouping(where, weight, size) @ (batch.phi - own[where])
        return _canonical(own + divide_rows(change, visits))
    out, phi = np.zeros((size, batch.d)), batch.rows("phi")
    vectors = (freeze(where), freeze(weight), freeze(np.ones(batch.n)))
    row_loops.aggregate(*phi, freeze(own), freeze(where), *vectors, out)
    return own + out / visits[:, None]


def _place(values: Floats, position: Ints, size: int) -> Floats:
    placed = np.zeros(size)
    placed[position] = values
    return placed


def _sum_rows(one: Any, position: Ints, two: Any, position_2: Ints, size: int) -> Any:
    one, two = _alike(one, two)
    total = _place_rows(one, position, size) + _place_rows(two, position_2, size)
    return total if isinstance(total, np.ndarray) else _canonical(total)


def _alike(one: Any, two: Any) -> tuple[Any, Any]:
    """Both dense, or both sparse if one is."""
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return one, two
    from scipy.sparse import csr_array

    return csr_array(one), csr_array(two)


def _place_rows(rows: Any, position: Ints, size: int) -> Any:
    """`rows` at `position` (ascending) among `size`, the others zero."""
    if isinstance(rows, np.ndarray):
        out = np.zeros((size, rows.shape[1]))
        out[position] = rows
        return out
    from scipy.sparse import csr_array

    length = np.zeros(size, dtype=np.int64)
    length[position] = np.diff(rows.indptr)
    indptr = np.concatenate([[0], np.cumsum(length)])
    return csr_array((rows.data, rows.indices, indptr), shape=(size, rows.shape[1]))


def _canonical(rows: Any) -> Any:
    rows.sum_duplicates()
    return rows.tocsr()


def _dense(rows: Any) -> Floats:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)


def _parts(name: str, rows: Any) -> Arrays:
    if isinstance(rows, np.ndarray):
        return {name: rows}
    return {f"{name}.{part}": getattr(rows, part) for part in ("data", "indices", "indptr")}


def _whole(name: str, arrays: Arrays, shape: tuple[int, int]) -> Any:
    if name in arrays:
        if arrays[name].shape != shape:
            raise ValueError(f"{name} has the wrong shape")
        return arrays[name]
    return stored_csr(name, arrays, shape)

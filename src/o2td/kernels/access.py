"""Rows and traces as a step sees them: the same few functions on dense, table and CSR rows.

A user's step (`o2td.learners.StepLearner`) gets the features of its row, and its traces, as small
tuples, and works on them with

    dot(x, v)                sum_j x_j v_j
    add(v, a, x)             v += a x
    follow(z, f, a, x)       z = f z + a x,  z a trace
    square(x)                sum_j x_j^2
    td_error(row, v)         reward + discount next_phi.v - phi.v

where x is `row.phi`, `row.next_phi` or a trace, and v a vector of d numbers (or a trace). Anything
else is a loop over the stored entries:

    for k in range(count(x)):
        v[index(x, k)] += a * value(x, k) ** 2

Each takes time linear in the number of entries: d on dense rows, those of the row or trace on CSR
rows. In Python all are plain functions; each also has a compiled form. Indices are not checked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from o2td.arrays import Floats
from o2td.compiled import by_kind, kind, overload
from o2td.load_store import get_row, get_theta, get_z, put_theta, put_z

__all__ = [
    "DenseFeatures",
    "DenseTrace",
    "SparseFeatures",
    "SparseTrace",
    "add",
    "count",
    "dot",
    "follow",
    "index",
    "square",
    "td_error",
    "value",
]

VANISHED = 1e-150  # smaller entries are dropped from a sparse trace
OPTIONS = {"fastmath": {"reassoc", "contract"}, "forceinline": True}


class DenseFeatures(NamedTuple):
    """Entries begin:begin+size of a flattened matrix."""

    values: Floats
    begin: int
    size: int


class SparseFeatures(NamedTuple):
    """Entries begin:begin+size of CSR rows."""

    values: Floats
    indices: npt.NDArray[np.int32]
    begin: int
    size: int


class DenseTrace(NamedTuple):
    """A dense trace: every entry is visited."""

    values: Floats


class SparseTrace(NamedTuple):
    """A trace with a list of its nonzero indices: the first `sizes[place]` of `indices`."""

    values: Floats
    indices: npt.NDArray[np.int32]
    sizes: npt.NDArray[np.int64]
    place: int


def _entries(x) -> tuple[Any, Any]:
    """Indices and values of the entries, as arrays or slices."""
    if isinstance(x, DenseFeatures):
        return slice(0, x.size), x.values.reshape(-1)[x.begin : x.begin + x.size]
    if isinstance(x, SparseFeatures):
        part = slice(x.begin, x.begin + x.size)
        return x.indices[part], x.values[part]
    if isinstance(x, SparseTrace):
        where = x.indices[: x.sizes[x.place]]
        return where, x.values[where]
    return slice(None), x.values if isinstance(x, DenseTrace) else x


# -- entries -------------------------------------------------------------------------------------------


@by_kind(**OPTIONS)
def count(x):
    """The number of entries of a row or trace: d if it is dense."""
    if kind(x) in (DenseFeatures, SparseFeatures):
        return lambda x: x.size
    if kind(x) is SparseTrace:
        return lambda x: x.sizes[x.place]
    return lambda x: len(x.values)


@by_kind(**OPTIONS)
def index(x, k):
    """The feature index of entry k."""
    if kind(x) is SparseFeatures:
        return lambda x, k: get_row(x.indices, x.begin + k)
    if kind(x) is SparseTrace:
        return lambda x, k: x.indices[k]
    return lambda x, k: k


@by_kind(**OPTIONS)
def value(x, k):
    """The value of entry k."""
    if kind(x) in (DenseFeatures, SparseFeatures):
        return lambda x, k: get_row(x.values, x.begin + k)
    if kind(x) is SparseTrace:
        return lambda x, k: get_z(x.values, x.indices[k])
    return lambda x, k: get_z(x.values, k)


@by_kind
def values_of(rows):
    """The numbers of all rows; in a tuple, because compiled code returns no bare array."""
    if "matrix" in kind(rows)._fields:
        return lambda rows: (rows.matrix,)  # `get_row` counts through all of its rows
    return lambda rows: (rows.data,)


@by_kind(forceinline=True)
def features_at(rows, values, t, present):
    """Row t of `values_of(rows)`, to be read by these functions; no entries if it is not present."""
    return _dense_at if "matrix" in kind(rows)._fields else _sparse_at


def _dense_at(rows, values, t, present):
    d = rows.matrix.shape[1]
    return DenseFeatures(values, rows.at[t] * d, d if present else 0)


def _sparse_at(rows, values, t, present):
    low, high = rows.indptr[rows.at[t]], rows.indptr[rows.at[t] + 1]
    return SparseFeatures(values, rows.indices, low, high - low if present else 0)


# -- vectors -------------------------------------------------------------------------------------------


@by_kind(**OPTIONS)
def array_of(v):
    """The d numbers of a vector or of a trace; in a tuple, because compiled code returns no array."""
    return (lambda v: (v.values,)) if hasattr(kind(v), "_fields") else (lambda v: (v,))


def dot(x, v) -> float:
    """`sum_j x_j v_j` of a row or trace x with a vector or trace v."""
    where, what = _entries(x)
    return float(what @ array_of(v)[0][where])


@overload(dot, jit_options=OPTIONS)
def _dot(x, v):
    def compiled(x, v):
        numbers = array_of(v)[0]
        total = 0.0
        for k in range(count(x)):
            total += value(x, k) * get_theta(numbers, index(x, k))
        return total

    return compiled


def square(x) -> float:
    """`sum_j x_j^2`."""
    what = _entries(x)[1]
    return float(what @ what)


@overload(square, jit_options=OPTIONS)
def _square(x):
    def compiled(x):
        total = 0.0
        for k in range(count(x)):
            total += value(x, k) * value(x, k)
        return total

    return compiled


def add(v: Floats, weight: float, x) -> None:
    """`v += weight x`."""
    where, what = _entries(x)
    v[where] += weight * what


@overload(add, jit_options=OPTIONS)
def _add(v, weight, x):
    def compiled(v, weight, x):
        for k in range(count(x)):
            j = index(x, k)
            put_theta(v, j, get_theta(v, j) + weight * value(x, k))

    return compiled


def td_error(row, v: Floats) -> float:
    """`reward + discount next_phi.v - phi.v`."""
    return float(row.reward + row.discount * dot(row.next_phi, v) - dot(row.phi, v))


@overload(td_error, jit_options=OPTIONS)
def _td_error(row, v):
    if kind(row.types[row.fields.index("phi")]) is not DenseFeatures:
        return lambda row, v: row.reward + row.discount * dot(row.next_phi, v) - dot(row.phi, v)

    def dense(row, v):
        total = 0.0
        for j in range(row.phi.size - row.next_phi.size):  # no successor: one of the two is empty
            total += get_row(row.phi.values, row.phi.begin + j) * get_theta(v, j)
        for j in range(row.next_phi.size):
            x = get_row(row.phi.values, row.phi.begin + j)
            x -= row.discount * get_row(row.next_phi.values, row.next_phi.begin + j)
            total += x * get_theta(v, j)
        return row.reward - total

    return dense


# -- traces --------------------------------------------------------------------------------------------


def follow(z, factor: float, weight: float, x) -> None:
    """`z = factor z + weight x` of a trace z and a row x."""
    z.values[:] *= factor
    if isinstance(z, SparseTrace):
        z.values[np.abs(z.values) < VANISHED] = 0.0
    add(z.values, weight, x)
    if isinstance(z, SparseTrace):
        where = np.flatnonzero(z.values)
        z.indices[: len(where)], z.sizes[z.place] = where, len(where)


@overload(follow, jit_options=OPTIONS)
def _follow(z, factor, weight, x):
    if kind(z) is DenseTrace:

        def dense(z, factor, weight, x):
            for j in range(x.size):
                entry = factor * get_z(z.values, j) + weight * get_row(x.values, x.begin + j)
                put_z(z.values, j, entry)
            for j in range(x.size, len(z.values)):
                put_z(z.values, j, factor * get_z(z.values, j))

        return dense

    def sparse(z, factor, weight, x):
        kept = 0
        for k in range(z.sizes[z.place]):
            j = z.indices[k]
            entry = z.values[j] * factor
            if abs(entry) < VANISHED:
                z.values[j] = 0.0
            else:
                z.values[j] = entry
                z.indices[kept] = j
                kept += 1
        if weight != 0.0:
            for k in range(count(x)):
                j = index(x, k)
                if z.values[j] == 0.0:
                    z.indices[kept] = j
                    kept += 1
                z.values[j] += weight * value(x, k)
        z.sizes[z.place] = kept

    return sparse

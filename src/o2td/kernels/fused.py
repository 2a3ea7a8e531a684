"""Several sums or additions of a step, fused into one pass over dense rows.

On CSR rows each costs only the entries of the row or trace, so fusing gains nothing there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from o2td.arrays import Floats
from o2td.kernels.access import (
    OPTIONS,
    DenseFeatures,
    SparseTrace,
    _entries,
    _is,
    add,
    count,
    dot,
    follow,
    index,
    square,
    value,
)
from o2td.kernels.load_store import get_row, get_theta, get_z, put_theta

__all__ = ["fade", "move", "sizes"]


def fade(z: Any, factor: float, x: Any, floor: float) -> None:
    """`z = factor z + x`; on CSR rows, entries below `floor` are dropped from the trace.

    Entries far below the rounding of their neighbours need not be visited again.
    """
    follow(z, factor, 1.0, x)
    if isinstance(z, SparseTrace):
        z.values[np.abs(z.values) < floor] = 0.0
        where = np.flatnonzero(z.values)
        z.indices[: len(where)], z.sizes[z.place] = where, len(where)


@overload(fade, jit_options=OPTIONS)
def _fade(z, factor, x, floor):  # type: ignore[no-untyped-def]
    if not _is(z, SparseTrace):
        return lambda z, factor, x, floor: follow(z, factor, 1.0, x)

    def sparse(z, factor, x, floor):  # type: ignore[no-untyped-def]
        follow(z, factor, 1.0, x)
        kept = 0
        for k in range(z.sizes[z.place]):
            j = z.indices[k]
            if abs(z.values[j]) < floor:
                z.values[j] = 0.0
            else:
                z.indices[kept] = j
                kept += 1
        z.sizes[z.place] = kept

    return sparse


def sizes(row: Any, theta: Floats, w: Floats, z: Any) -> tuple[float, ...]:
    """`phi.theta, next_phi.theta, phi.w, z.w, |z|^2, |phi|^2, |phi - discount next_phi|^2`."""
    g, phi, later = row.discount, row.phi, row.next_phi
    square_of = square(phi) + g * g * square(later) - 2.0 * g * _across(phi, later)
    products = dot(phi, theta), dot(later, theta), dot(phi, w), dot(z, w)
    return (*products, square(z), square(phi), square_of)


def _across(x: Any, y: Any) -> float:
    """`sum_j x_j y_j` of two rows."""
    places, numbers = _entries(y)
    if isinstance(places, slice):
        return float(_entries(x)[1][: len(numbers)] @ numbers)
    held = dict(zip(places.tolist(), numbers.tolist(), strict=True))
    return float(sum(value(x, k) * held.get(index(x, k), 0.0) for k in range(count(x))))


@overload(_across, jit_options=OPTIONS)
def _across_sparse(x, y):  # type: ignore[no-untyped-def]
    def compiled(x, y):  # type: ignore[no-untyped-def]
        total, i, k = 0.0, 0, 0
        while i < count(x) and k < count(y):
            a, b = index(x, i), index(y, k)
            if a == b:
                total += value(x, i) * value(y, k)
            i += a <= b
            k += b <= a
        return total

    return compiled


@overload(sizes, jit_options=OPTIONS)
def _sizes(row, theta, w, z):  # type: ignore[no-untyped-def]
    if not _is(row.types[row.fields.index("phi")], DenseFeatures):

        def sparse(row, theta, w, z):  # type: ignore[no-untyped-def]
            g, phi, later = row.discount, row.phi, row.next_phi
            own = square(phi)
            apart = own + g * g * square(later) - 2.0 * g * _across(phi, later)
            return (
                dot(phi, theta),
                dot(later, theta),
                dot(phi, w),
                dot(z, w),
                square(z),
                own,
                max(apart, 0.0),
            )

        return sparse

    def dense(row, theta, w, z):  # type: ignore[no-untyped-def]
        a = b = c = e = zz = ff = dd = 0.0
        phi, later, ends = row.phi, row.next_phi, row.next_phi.size == 0
        for j in range(phi.size):
            x = get_row(phi.values, phi.begin + j)
            y = 0.0 if ends else get_row(later.values, later.begin + j)
            t, v, u = get_theta(theta, j), get_theta(w, j), get_z(z.values, j)
            apart = x - row.discount * y
            a += x * t
            b += y * t
            c += x * v
            e += u * v
            zz += u * u
            ff += x * x
            dd += apart * apart
        return a, b, c, e, zz, ff, dd

    return dense


def move(v: Floats, row: Any, z: Any, along: float, own: float, ahead: float) -> None:
    """`v += along z + own phi + ahead next_phi`."""
    add(v, along, z)
    add(v, own, row.phi)
    add(v, ahead, row.next_phi)


@overload(move, jit_options=OPTIONS)
def _move(v, row, z, along, own, ahead):  # type: ignore[no-untyped-def]
    if not _is(row.types[row.fields.index("phi")], DenseFeatures):

        def sparse(v, row, z, along, own, ahead):  # type: ignore[no-untyped-def]
            add(v, along, z)
            add(v, own, row.phi)
            if ahead != 0.0:
                add(v, ahead, row.next_phi)

        return sparse

    def dense(v, row, z, along, own, ahead):  # type: ignore[no-untyped-def]
        phi, later = row.phi, row.next_phi
        if later.size == 0 or ahead == 0.0:
            for j in range(phi.size):
                change = along * get_z(z.values, j) + own * get_row(phi.values, phi.begin + j)
                put_theta(v, j, get_theta(v, j) + change)
            return
        for j in range(phi.size):
            change = along * get_z(z.values, j) + own * get_row(phi.values, phi.begin + j)
            change += ahead * get_row(later.values, later.begin + j)
            put_theta(v, j, get_theta(v, j) + change)

    return dense

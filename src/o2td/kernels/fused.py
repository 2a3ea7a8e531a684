"""Several sums or additions of a step, fused into one pass over each row or trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td.arrays import Floats
from o2td.compiled import overload
from o2td.kernels.access import (
    OPTIONS,
    VANISHED,
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
from o2td.kernels.load_store import (
    get_row,
    get_theta,
    get_w,
    get_z,
    put_theta,
    put_w,
    put_z,
)

__all__ = ["measured", "move"]

Two = tuple[float, float]
Three = tuple[float, float, float]


def measured(
    row: Any, theta: Floats, w: Floats, u: Floats, z: Any, factor: float, floor: float
) -> Any:
    """`z = factor z + phi`, and then products with theta, w and u, and squares.

    These are `phi.theta, next_phi.theta, phi.w, z.w, phi.u, next_phi.u`, and `|z|^2, |phi|^2` and
    `|phi - discount next_phi|^2`. On CSR rows, entries of the old trace that fall below `floor` are
    dropped, and need not be visited again.
    """
    if isinstance(z, SparseTrace):
        z.values[np.abs(factor * z.values) <= max(floor, VANISHED)] = 0.0
    follow(z, factor, 1.0, row.phi)
    g, phi, later = row.discount, row.phi, row.next_phi
    square_of = square(phi) + g * g * square(later) - 2.0 * g * _across(phi, later)
    products = dot(phi, theta), dot(later, theta), dot(phi, w), dot(z, w)
    return (*products, dot(phi, u), dot(later, u), square(z), square(phi), square_of)


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


@overload(measured, jit_options=OPTIONS)
def _measured(row, theta, w, u, z, factor, floor):  # type: ignore[no-untyped-def]
    if not _is(row.types[row.fields.index("phi")], DenseFeatures):

        def sparse(row, theta, w, u, z, factor, floor):  # type: ignore[no-untyped-def]
            g, phi, later, kept = row.discount, row.phi, row.next_phi, 0
            a = b = c = e = f = h = zz = own = ahead = 0.0
            for k in range(z.sizes[z.place]):
                j = z.indices[k]
                entry = factor * z.values[j]
                if abs(entry) <= max(floor, VANISHED):
                    z.values[j] = 0.0
                else:
                    z.values[j] = entry
                    z.indices[kept] = j
                    kept += 1
                    e += entry * w[j]
                    zz += entry * entry
            for k in range(count(phi)):
                j, x = index(phi, k), value(phi, k)
                entry = z.values[j]
                if entry == 0.0:
                    z.indices[kept] = j
                    kept += 1
                z.values[j] = entry + x
                zz += x * (2.0 * entry + x)
                a += x * theta[j]
                c += x * w[j]
                f += x * u[j]
                own += x * x
            z.sizes[z.place] = kept
            for k in range(count(later)):
                j, x = index(later, k), value(later, k)
                b += x * theta[j]
                h += x * u[j]
                ahead += x * x
            apart = own + g * g * ahead - 2.0 * g * _across(phi, later)
            return a, b, c, c + e, f, h, max(zz, 0.0), own, max(apart, 0.0)

        return sparse

    def dense(row, theta, w, u, z, factor, floor):  # type: ignore[no-untyped-def]
        a = b = c = e = f = h = zz = ff = dd = 0.0
        phi, later, ends = row.phi, row.next_phi, row.next_phi.size == 0
        for j in range(phi.size):
            x = get_row(phi.values, phi.begin + j)
            y = 0.0 if ends else get_row(later.values, later.begin + j)
            t, v, o = get_theta(theta, j), get_w(w, j), get_theta(u, j)
            k = factor * get_z(z.values, j) + x
            put_z(z.values, j, k)
            apart = x - row.discount * y
            a += x * t
            b += y * t
            c += x * v
            e += k * v
            f += x * o
            h += y * o
            zz += k * k
            ff += x * x
            dd += apart * apart
        return a, b, c, e, f, h, zz, ff, dd

    return dense


def move(theta: Floats, w: Floats, row: Any, z: Any, first: Three, second: Two) -> None:
    """`theta += a z + b phi + c next_phi` and `w += a z + b phi`, each with its own numbers."""
    for v, (along, own, *ahead) in ((theta, first), (w, second)):
        add(v, along, z)
        add(v, own, row.phi)
        for factor in ahead:
            add(v, factor, row.next_phi)


@overload(move, jit_options=OPTIONS)
def _move(theta, w, row, z, first, second):  # type: ignore[no-untyped-def]
    if not _is(row.types[row.fields.index("phi")], DenseFeatures):

        def sparse(theta, w, row, z, first, second):  # type: ignore[no-untyped-def]
            for k in range(count(z)):
                j = z.indices[k]
                entry = z.values[j]
                theta[j] += first[0] * entry
                w[j] += second[0] * entry
            for k in range(count(row.phi)):
                j, x = index(row.phi, k), value(row.phi, k)
                theta[j] += first[1] * x
                w[j] += second[1] * x
            if first[2] != 0.0:
                add(theta, first[2], row.next_phi)

        return sparse

    def dense(theta, w, row, z, first, second):  # type: ignore[no-untyped-def]
        phi, later, ends = row.phi, row.next_phi, row.next_phi.size == 0
        for j in range(phi.size):
            x, u = get_row(phi.values, phi.begin + j), get_z(z.values, j)
            y = 0.0 if ends else get_row(later.values, later.begin + j)
            put_theta(theta, j, get_theta(theta, j) + first[0] * u + first[1] * x + first[2] * y)
            put_w(w, j, get_w(w, j) + second[0] * u + second[1] * x)

    return dense

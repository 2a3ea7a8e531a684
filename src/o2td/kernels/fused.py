"""Several sums or additions of a step, fused into one pass over each row or trace.

Dense traces move at once; on CSR rows z is a `PendingTrace`.
"""

from __future__ import annotations

from typing import Any

from o2td.arrays import Floats
from o2td.compiled import kind, overload
from o2td.kernels import pending
from o2td.kernels.access import OPTIONS, _entries, add, dot, follow, square
from o2td.kernels.pending import PendingTrace
from o2td.load_store import get_row, get_theta, get_w, get_z, put_theta, put_w, put_z

__all__ = ["lift", "measured", "move"]

Two = tuple[float, float]
Three = tuple[float, float, float]


def measured(row, theta: Floats, w: Floats, u: Floats, z, factor: float, floor: float) -> Any:
    """`z = factor z + phi`, and then products with theta, w and u, and squares.

    These are `phi.theta, next_phi.theta, phi.w, z.w, phi.u, next_phi.u`, and `|z|^2, |phi|^2` and
    `|phi - discount next_phi|^2`. On CSR rows, entries of the old trace that fall below `floor` are
    dropped, and need not be visited again.
    """
    if isinstance(z, PendingTrace):
        return pending.measured(row, theta, w, u, z, factor, floor)  # type: ignore[no-untyped-call]
    follow(z, factor, 1.0, row.phi)
    phi, later, dphi = row.phi, row.next_phi, _entries(row.phi)[1].copy()
    dphi[: later.size] -= row.discount * _entries(later)[1]
    products = dot(phi, theta), dot(later, theta), dot(phi, w), dot(z, w)
    return (*products, dot(phi, u), dot(later, u), square(z), square(phi), float(dphi @ dphi))


@overload(measured, jit_options=OPTIONS)
def _measured(row, theta, w, u, z, factor, floor):
    if kind(z) is PendingTrace:
        return pending.measured

    def dense(row, theta, w, u, z, factor, floor):
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


def move(
    theta: Floats, w: Floats, u: Floats, row, z, first: Three, second: Two, bend: float
) -> None:
    """`theta += a z + b phi + c next_phi`, `w += a z + b phi` (numbers of its own), `u += bend phi`."""
    if isinstance(z, PendingTrace):
        pending.move(theta, w, u, row, z, first, second, bend)  # type: ignore[no-untyped-call]
        return
    for v, (along, own, *ahead) in ((theta, first), (w, second)):
        add(v, along, z)
        add(v, own, row.phi)
        for factor in ahead:
            add(v, factor, row.next_phi)
    add(u, bend, row.phi)


@overload(move, jit_options=OPTIONS)
def _move(theta, w, u, row, z, first, second, bend):
    if kind(z) is PendingTrace:
        return pending.move

    def dense(theta, w, u, row, z, first, second, bend):
        phi, later, ends = row.phi, row.next_phi, row.next_phi.size == 0
        if bend != 0.0:
            add(u, bend, phi)
        for j in range(phi.size):
            x, k = get_row(phi.values, phi.begin + j), get_z(z.values, j)
            y = 0.0 if ends else get_row(later.values, later.begin + j)
            put_theta(theta, j, get_theta(theta, j) + first[0] * k + first[1] * x + first[2] * y)
            put_w(w, j, get_w(w, j) + second[0] * k + second[1] * x)

    return dense


def lift(theta: Floats, w: Floats, u: Floats, z, shift: float, scale: float, whole: bool) -> None:
    """`theta += shift u` and `w *= scale`; if moves are pending and `whole`, theta is written.

    One function for all of these, because each that is compiled costs a tenth of a second.
    """
    if isinstance(z, PendingTrace):
        pending.lift(theta, w, u, z, shift, scale, whole)  # type: ignore[no-untyped-call]
    else:
        theta += shift * u
        w *= scale


@overload(lift, jit_options=OPTIONS)
def _lift(theta, w, u, z, shift, scale, whole):
    if kind(z) is PendingTrace:
        return pending.lift

    def dense(theta, w, u, z, shift, scale, whole):
        for j in range(len(theta)):
            theta[j] += shift * u[j]
            w[j] *= scale

    return dense

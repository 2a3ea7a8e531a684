"""A long trace on CSR rows at the cost of the row's own entries.

A step that moves theta, w and the mean along a trace z visits every entry of z, on every row. Here
these moves are only counted:

    z = g a,    theta = T + t a + l u,    w = W + s a,    mean = theta + share (M + m a + k u)

where the arrays of the learner hold a, T, W and M, and g, t, s, m, l, k are numbers. A decay of z
changes g, a move along z the numbers t, s and m, one along u the numbers l and k; where a row adds
x / g to a, T, W and M lose t x / g, s x / g and m x / g. So a row visits its own entries, and its
successor's. `z.z` and `z.w` are carried along. When g has lost three digits, the numbers are
written into the arrays (`fold`), entry by entry of the trace, and so they are at the end of a stretch
of rows (`end`): results then differ by rounding only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from o2td.arrays import Floats
from o2td.compiled import by_kind, jitable, kind
from o2td.kernels.access import OPTIONS, VANISHED, count, index, value
from o2td.kernels.settle import SMALLEST, close_lane, open_lane, shrink, touch
from o2td.kernels.weighted import FASTMATH
from o2td.load_store import (
    get_row,
    get_theta,
    get_w,
    get_z,
    greater,
    lesser,
    put_theta,
    put_w,
    put_z,
    rolled,
)

__all__ = ["Pending", "PendingTrace"]

DIGITS = 1e-3  # g at which the numbers are written into the arrays
NUMBERS = (
    *("g", "theta_a", "w_a", "mean_a", "theta_u", "mean_u"),
    *("zz", "zw", "z_phi", "share", "rate"),
)


class Pending(NamedTuple):
    """Memory of a lane while a stretch of rows is open."""

    mark: Floats
    """(d,) zeros; a row's entries for as long as its successor's are visited."""
    numbers: npt.NDArray[Any]
    """(1,) record."""

    @classmethod
    def room(cls, d: int) -> Pending:
        """Memory for d features."""
        kind = np.dtype((np.record, [(name, np.float64) for name in NUMBERS]))
        return cls(np.zeros(d), np.zeros(1, dtype=kind))


class PendingTrace(NamedTuple):
    """A sparse trace, what is counted in multiples of it, and the mean that follows theta."""

    values: Floats
    indices: npt.NDArray[np.int32]
    sizes: npt.NDArray[np.int64]
    place: int
    mean: Floats
    mark: Floats
    numbers: Any


@jitable(fastmath=FASTMATH, forceinline=False)
def fold(theta, w, z, g, floor):
    """Write what is counted along a, and `z = g a`, of which entries below `floor` are dropped."""
    n, mean, kept, zz, zw = z.numbers, z.mean, 0, 0.0, 0.0
    theta_a, w_a, mean_a, least = n.theta_a, n.w_a, n.mean_a, greater(floor, VANISHED)
    for k in range(z.sizes[z.place]):
        rolled()
        j = get_row(z.indices, k)
        a = get_z(z.values, j)
        moved = get_theta(w, j) + w_a * a
        put_theta(theta, j, get_theta(theta, j) + theta_a * a)
        put_theta(w, j, moved)
        put_w(mean, j, get_w(mean, j) + mean_a * a)
        entry = g * a
        if abs(entry) <= least:
            put_z(z.values, j, 0.0)
        else:
            put_z(z.values, j, entry)
            z.indices[kept] = j
            kept += 1
            zz += entry * entry
            zw += entry * moved
    z.sizes[z.place] = kept
    n.g, n.theta_a, n.w_a, n.mean_a, n.zz, n.zw = 1.0, 0.0, 0.0, 0.0, zz, zw


def begin(vectors, traces, mean, lazy):
    """Replace the mean by M; nothing is counted yet."""
    theta, w, z, n = vectors[0], vectors[1], traces[0], traces[0].numbers
    n.g, n.share, n.theta_a, n.w_a, n.mean_a = 1.0, 1.0, 0.0, 0.0, 0.0
    n.theta_u = n.mean_u = 0.0
    for j in range(len(theta)):
        rolled()
        z.mean[j] -= theta[j]
        z.mark[j] = 0.0  # a lane that diverged may have left a row there
    fold(theta, w, z, 1.0, 0.0)


def end(vectors, traces, mean, lazy):
    """Write all that is counted, and the mean."""
    theta, w, u, z, n = vectors[0], vectors[1], vectors[2], traces[0], traces[0].numbers
    fold(theta, w, z, n.g, 0.0)
    for j in range(len(theta)):
        rolled()
        theta[j] += n.theta_u * u[j]
        z.mean[j] = theta[j] + n.share * (z.mean[j] + n.mean_u * u[j])


def lower(row, traces, theta, mean, a, t, lazy):
    """Before a row: lower the share of M, which follows what the row does to theta at `rate`."""
    z, n, eta = traces[0], traces[0].numbers, lesser(1.0, a / (t + a)) if a > 0.0 else 1.0
    if eta >= 1.0:  # the mean is theta: at the first row, and where a is 0
        n.rate = n.share = 0.0
        return
    if n.share < SMALLEST:
        for j in range(len(z.mean)):
            rolled()
            z.mean[j] *= n.share
        n.mean_a *= n.share
        n.mean_u *= n.share
        n.share = 1.0
    n.rate = 1.0 / n.share
    n.share *= 1.0 - eta


def measured(row, theta, w, u, z, factor, floor):
    """As `fused.measured`; the row itself enters the trace in `move`.

    Here and in `move`, loops that are `rolled` take 0.5 to 0.8 of the time on rows of 4 to 50 entries.
    """
    n, phi, later, gamma = z.numbers, row.phi, row.next_phi, row.discount
    g = n.g * factor
    if DIGITS < abs(g) < 1.0 / DIGITS:
        n.g = g
        n.zz *= factor * factor
        n.zw *= factor
    else:
        fold(theta, w, z, g, floor)
    a = b = c = e = f = h = i = own = ahead = across = 0.0
    for k in range(count(phi)):
        rolled()
        j, x = index(phi, k), value(phi, k)
        put_w(z.mark, j, x)
        a += x * get_theta(theta, j)
        c += x * get_theta(w, j)
        e += x * get_z(z.values, j)
        f += x * get_theta(u, j)
        own += x * x
    for k in range(count(later)):
        rolled()
        j, x = index(later, k), value(later, k)
        b += x * get_theta(theta, j)
        h += x * get_theta(u, j)
        i += x * get_z(z.values, j)
        across += x * get_w(z.mark, j)
        ahead += x * x
    a += n.theta_a * e + n.theta_u * f
    b += n.theta_a * i + n.theta_u * h
    c += n.w_a * e
    n.zz = greater(n.zz + 2.0 * n.g * e + own, 0.0)
    n.zw += c
    n.z_phi = n.g * e + own
    apart = own + gamma * gamma * ahead - 2.0 * gamma * across
    return a, b, c, n.zw, f, h, n.zz, own, greater(apart, 0.0)


def move(theta, w, u, row, z, first, second, bend):
    """As `fused.move`."""
    n, phi, later = z.numbers, row.phi, row.next_phi
    one = 1.0 / n.g
    along = first[1] - n.theta_a * one - n.theta_u * bend
    aside = second[1] - n.w_a * one
    behind = -n.rate * first[1] - n.mean_a * one - n.mean_u * bend
    kept = z.sizes[z.place]
    for k in range(count(phi)):
        rolled()
        j, x = index(phi, k), value(phi, k)
        old = get_z(z.values, j)
        if old == 0.0:
            z.indices[kept] = j
            kept += 1
        new = old + one * x
        put_z(z.values, j, new if new != 0.0 else 1e-200)  # 0 would be listed twice
        put_w(z.mark, j, 0.0)
        put_theta(theta, j, get_theta(theta, j) + along * x)
        put_theta(w, j, get_theta(w, j) + aside * x)
        put_w(z.mean, j, get_w(z.mean, j) + behind * x)
    z.sizes[z.place] = kept
    if bend != 0.0:
        for k in range(count(phi)):
            rolled()
            j = index(phi, k)
            put_theta(u, j, get_theta(u, j) + bend * value(phi, k))
    if first[2] != 0.0:
        behind = -n.rate * first[2]
        for k in range(count(later)):
            rolled()
            j, x = index(later, k), value(later, k)
            put_theta(theta, j, get_theta(theta, j) + first[2] * x)
            put_w(z.mean, j, get_w(z.mean, j) + behind * x)
    n.theta_a += first[0] * n.g
    n.mean_a -= n.rate * first[0] * n.g
    n.w_a += second[0] * n.g
    n.zw += second[0] * n.zz + second[1] * n.z_phi


def lift(theta, w, u, z, shift, scale, whole):
    """As `fused.lift`."""
    n = z.numbers
    n.theta_u += shift
    n.mean_u -= n.rate * shift
    if scale != 1.0:
        for j in range(len(w)):
            rolled()
            w[j] *= scale
        n.w_a *= scale
        n.zw *= scale
    if whole:
        fold(theta, w, z, n.g, 0.0)
        for j in range(len(theta)):
            rolled()
            theta[j] += n.theta_u * u[j]
            z.mean[j] += n.mean_u * u[j]
        n.theta_u = n.mean_u = 0.0


# -- what the driver of steps does around a row, with `settle.Lazy` or `Pending` ------------------------


@by_kind(**OPTIONS)
def handed(traces, settle, lane, lazy):
    """The traces as the step gets them."""
    return _pending if kind(lazy) is Pending else lambda traces, settle, lane, lazy: traces


def _pending(traces, settle, lane, lazy):
    z, mean, numbers = traces[0], settle.mean[lane], lazy.numbers[0]
    return (PendingTrace(z.values, z.indices, z.sizes, z.place, mean, lazy.mark, numbers),)


@by_kind(**OPTIONS)
def opened(vectors, traces, mean, lazy):
    """Begin a stretch of rows."""
    if kind(lazy) is Pending:
        return begin
    return lambda vectors, traces, mean, lazy: open_lane(vectors[0], mean, lazy)


@by_kind(**OPTIONS)
def closed(vectors, traces, mean, lazy):
    """End a stretch of rows: theta, traces and the mean are what they should be."""
    if kind(lazy) is Pending:
        return end
    return lambda vectors, traces, mean, lazy: close_lane(vectors[0], mean, lazy)


@by_kind(**OPTIONS)
def before(row, traces, theta, mean, a, t, lazy):
    """Before a row: remember theta where it may move."""
    if kind(lazy) is Pending:
        return lower
    return lambda row, traces, theta, mean, a, t, lazy: touch(
        (row.phi, row.next_phi, *traces), theta, lazy.old, mean, 0.0
    )


@by_kind(**OPTIONS)
def follow(row, traces, theta, mean, a, t, lazy):
    """After a row: let the mean follow theta."""
    if kind(lazy) is Pending:
        return lambda row, traces, theta, mean, a, t, lazy: None
    return _follow


def _follow(row, traces, theta, mean, a, t, lazy):
    factor = shrink(mean, a, t, lazy)
    if factor > 0.0:
        touch((row.phi, row.next_phi, *traces), theta, lazy.old, mean, factor)

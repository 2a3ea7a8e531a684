"""What happens to theta after each step, whatever the family: l1-prox, projection, averaging.

    theta = sign(theta) max(0, |theta| - alpha_t l1)        theta *= min(1, radius / |theta|)
    mean += (theta - mean) min(1, a / (t + a))              a = average, t rows before this one

On CSR rows the mean is kept as `theta + share u` over a block of rows: where theta does not move,
neither does u, so a row costs its entries and those of the traces. Prox and projection pass over
all of theta.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from o2td.arrays import Floats
from o2td.compiled import jitable, njit, overload
from o2td.kernels.access import count, index
from o2td.kernels.lanes import advance, block_end
from o2td.kernels.ring_buffer import append
from o2td.kernels.weighted import FASTMATH
from o2td.load_store import get_theta, get_w, lesser, put_w

__all__ = ["After", "Ball", "Lazy", "Settle", "drive_settled"]

SMALLEST = 1e-100  # u is rebuilt when its share falls below this


class Settle(NamedTuple):
    """Averaging: settings (lanes,) and memory."""

    average: Floats
    """0 where nothing is averaged: the mean is theta."""
    steps: Floats
    """Rows before this block, (lanes,)."""
    mean: Floats
    """(lanes, d); holds u while a stretch of rows is open."""


class Ball(NamedTuple):
    """What confines theta, (lanes,): the l1-prox and the radius of a ball."""

    l1: Floats
    radius: Floats
    """Infinite where theta is not projected."""
    alpha: Floats
    """(lanes, n)"""


class Lazy(NamedTuple):
    """Where only the entries that a row touches move, and the mean is `theta + share u`."""

    old: Floats
    """(d,) theta before the step, at the indices that may move."""
    share: Floats
    """(1,)"""


class After(NamedTuple):
    """What happens after each step. None is a type, for which nothing is compiled."""

    settle: Settle | None = None
    ball: Ball | None = None
    lazy: Any = None
    """`Lazy`, or `pending.Pending`."""


@jitable
def open_lane(theta, mean, lazy):
    """Replace the mean by u, at the beginning of a stretch of rows."""
    lazy.share[0] = 1.0
    for j in range(len(theta)):
        mean[j] -= theta[j]


@jitable
def close_lane(theta, mean, lazy):
    """Turn u back into the mean."""
    for j in range(len(theta)):
        mean[j] = theta[j] + lazy.share[0] * mean[j]


@jitable(forceinline=True)
def average(mean, theta, a, steps):
    """`mean += (theta - mean) min(1, a / (steps + a))`; where a is 0, the mean is theta."""
    eta = lesser(1.0, a / (steps + a)) if a > 0.0 else 1.0
    for j in range(len(theta)):
        old = get_w(mean, j)
        put_w(mean, j, old + eta * (get_theta(theta, j) - old))


@jitable
def confine(theta, bound, radius):
    """The l1-prox with this bound, and the projection onto the ball."""
    if bound > 0.0:
        for j in range(len(theta)):
            size = abs(theta[j]) - bound
            theta[j] = 0.0 if size <= 0.0 else (size if theta[j] > 0.0 else -size)
    if radius < np.inf:
        total = 0.0
        for j in range(len(theta)):
            total += theta[j] * theta[j]
        if total > radius * radius:
            scale = radius / np.sqrt(total)
            for j in range(len(theta)):
                theta[j] *= scale


@jitable
def shrink(mean, a, steps, lazy):
    """Lower the share of u, which `mean` holds; returns by which factor u follows theta."""
    eta = lesser(1.0, a / (steps + a)) if a > 0.0 else 1.0
    share = lazy.share[0]
    if eta >= 1.0 or share < SMALLEST:
        for j in range(len(mean)):
            mean[j] = 0.0 if eta >= 1.0 else mean[j] * share
        share = 1.0
    lazy.share[0] = share if eta >= 1.0 else share * (1.0 - eta)
    return 0.0 if eta >= 1.0 else 1.0 / share


# -- the entries that a CSR row may move --------------------------------------------------------------
# Before a step, theta is remembered there (factor 0); after it, u follows what the step did.


@jitable(forceinline=True)
def _entry(j, theta, old, u, factor):
    if factor != 0.0:
        u[j] -= factor * (theta[j] - old[j])
    old[j] = theta[j]


@jitable(forceinline=True)
def _entries(x, theta, old, u, factor):
    for k in range(count(x)):
        _entry(index(x, k), theta, old, u, factor)


def touch(parts, theta: Floats, old: Floats, u: Floats, factor: float) -> None:
    """Remember theta or let u follow, at the entries of these rows and traces."""
    for x in parts:
        _entries(x, theta, old, u, factor)


@overload(touch, jit_options={"forceinline": True})
def _touch(parts, theta, old, u, factor):
    if len(parts) == 1:
        return lambda parts, theta, old, u, factor: _entries(parts[0], theta, old, u, factor)

    def compiled(parts, theta, old, u, factor):
        _entries(parts[0], theta, old, u, factor)
        touch(parts[1:], theta, old, u, factor)

    return compiled


@jitable(forceinline=True)
def _row(rows, t, theta, old, u, factor):
    i = rows.at[t]
    for e in range(rows.indptr[i], rows.indptr[i + 1]):
        _entry(rows.indices[e], theta, old, u, factor)


@jitable(forceinline=True)
def _list(active, size, theta, old, u, factor):
    for e in range(size):
        _entry(active[e], theta, old, u, factor)


def visit(*arguments: Any) -> None:
    """The same for families, whose steps see no accessors."""
    raise NotImplementedError("compiled code only")


@overload(visit, jit_options={"forceinline": True})
def _visit(rows, following, lanes, lane, t, theta, old, u, factor):
    second, listed = "second" in lanes.fields, "active" in lanes.fields
    hybrid = "active_b" in lanes.fields

    def visited(rows, following, lanes, lane, t, theta, old, u, factor):
        _row(rows, t, theta, old, u, factor)
        if lanes.discount[lanes.source[lane], t] != 0.0:
            _row(following, t, theta, old, u, factor)
        if second:  # noqa: SIM102  (a constant: without it what follows is not compiled)
            if lanes.discount_2[lane, t] != 0.0:
                _row(lanes.second, t, theta, old, u, factor)
        if listed:
            _list(lanes.active[lane], lanes.size[lane, 0], theta, old, u, factor)
            if hybrid:
                _list(lanes.active_b[lane], lanes.size[lane, 1], theta, old, u, factor)

    return visited


@njit(cache=True, nogil=True, allocates=False, fastmath=FASTMATH)
def drive_settled(
    rows, following, lanes, settle, ball, lazy, diverged, n: int, first: int, every: int, ring
) -> None:
    """As `lanes.drive`, row by row, with what happens after each step."""
    lo = min(0, n)  # a literal 0 would make Numba compile everything that follows twice
    while lo < n:
        hi = block_end(lo, n, first, every)
        for lane in range(len(diverged)):
            if diverged[lane] < 0:
                theta, mean, a = lanes.theta[lane], settle.mean[lane], settle.average[lane]
                if lazy is not None:
                    open_lane(theta, mean, lazy)
                for t in range(lo, hi):
                    if lazy is not None:
                        visit(rows, following, lanes, lane, t, theta, lazy.old, mean, 0.0)
                    if advance(rows, following, lanes, lane, t, t + 1) <= t:
                        diverged[lane] = first + t
                        break
                    if ball is not None:
                        confine(theta, ball.alpha[lane, t] * ball.l1[lane], ball.radius[lane])
                    if lazy is None:
                        average(mean, theta, a, settle.steps[lane] + t)
                    else:
                        factor = shrink(mean, a, settle.steps[lane] + t, lazy)
                        if factor > 0.0:
                            visit(rows, following, lanes, lane, t, theta, lazy.old, mean, factor)
                if lazy is not None:
                    close_lane(theta, mean, lazy)
        if every > 0 and (first + hi) % every == 0:
            append(settle.mean, False, ring)
        lo = hi

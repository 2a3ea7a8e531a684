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
from numba.extending import overload, register_jitable

from o2td.arrays import Floats
from o2td.compiled import njit
from o2td.kernels.lanes import advance, block_end
from o2td.kernels.load_store import get_theta, get_w, put_w
from o2td.kernels.ring_buffer import append
from o2td.kernels.weighted import FASTMATH

__all__ = ["Settle", "close_lane", "drive_settled", "open_lane", "remember", "settle_row"]

SMALLEST = 1e-100  # u is rebuilt when its share falls below this


class Settle(NamedTuple):
    """Settings (lanes,) and memory for what happens after each step."""

    active: bool
    """Whether anything happens at all."""
    lazy: bool
    """Whether only the entries that a row touches move, and the mean is `theta + share u`."""
    average: Floats
    """0 where nothing is averaged: the mean is theta."""
    l1: Floats
    radius: Floats
    """Infinite where theta is not projected."""
    alpha: Floats
    """(lanes, n)"""
    steps: Floats
    """Rows before this block, (lanes,)."""
    mean: Floats
    """(lanes, d); holds u while a stretch of rows is open."""
    old: Floats
    """(d,) theta before the step, at the indices that may move."""
    share: Floats
    """(1,)"""


@register_jitable(forceinline=True)
def open_lane(settle, theta, lane):  # type: ignore[no-untyped-def]
    """Replace the mean by u, at the beginning of a stretch of rows."""
    if settle.active and settle.lazy:
        settle.share[0] = 1.0
        for j in range(len(theta)):
            settle.mean[lane, j] -= theta[j]


@register_jitable(forceinline=True)
def close_lane(settle, theta, lane):  # type: ignore[no-untyped-def]
    """Turn u back into the mean."""
    if settle.active and settle.lazy:
        for j in range(len(theta)):
            settle.mean[lane, j] = theta[j] + settle.share[0] * settle.mean[lane, j]


@register_jitable(forceinline=True)
def _remember_row(rows, t, theta, old):  # type: ignore[no-untyped-def]
    i = rows.at[t]
    for e in range(rows.indptr[i], rows.indptr[i + 1]):
        old[rows.indices[e]] = theta[rows.indices[e]]


@register_jitable(forceinline=True)
def _move_row(rows, t, theta, old, u, factor):  # type: ignore[no-untyped-def]
    i = rows.at[t]
    for e in range(rows.indptr[i], rows.indptr[i + 1]):
        j = rows.indices[e]
        u[j] -= factor * (theta[j] - old[j])
        old[j] = theta[j]


@register_jitable(forceinline=True)
def _remember_list(active, count, theta, old):  # type: ignore[no-untyped-def]
    for e in range(count):
        old[active[e]] = theta[active[e]]


@register_jitable(forceinline=True)
def _move_list(active, count, theta, old, u, factor):  # type: ignore[no-untyped-def]
    for e in range(count):
        j = active[e]
        u[j] -= factor * (theta[j] - old[j])
        old[j] = theta[j]


def visit(
    rows: Any,
    following: Any,
    lanes: Any,
    lane: int,
    t: int,
    theta: Any,
    old: Any,
    u: Any,
    factor: float,
) -> None:
    """Remember theta (factor 0) or move u, at all indices that a CSR row may touch.

    In Python for a user's step, whose lanes have one list of indices per trace.
    """
    if hasattr(rows, "matrix"):
        return
    moving = factor != 0.0
    _one(rows, t, theta, old, u, factor, moving)
    if lanes.discount[lanes.source[lane], t] != 0.0:
        _one(following, t, theta, old, u, factor, moving)
    for k, active in enumerate(lanes.active):
        _some(active[lane], lanes.size[lane, k], theta, old, u, factor, moving)


@overload(visit, jit_options={"forceinline": True})
def _visit(rows, following, lanes, lane, t, theta, old, u, factor):  # type: ignore[no-untyped-def]
    if "matrix" in rows.fields:
        return lambda rows, following, lanes, lane, t, theta, old, u, factor: None
    second, listed = "second" in lanes.fields, "active" in lanes.fields
    several = listed and hasattr(lanes.types[lanes.fields.index("active")], "types")
    hybrid = "active_b" in lanes.fields

    def visited(rows, following, lanes, lane, t, theta, old, u, factor):  # type: ignore[no-untyped-def]
        moving = factor != 0.0
        _one(rows, t, theta, old, u, factor, moving)
        if lanes.discount[lanes.source[lane], t] != 0.0:
            _one(following, t, theta, old, u, factor, moving)
        if second:  # noqa: SIM102  (a constant: without it what follows is not compiled)
            if lanes.discount_2[lane, t] != 0.0:
                _one(lanes.second, t, theta, old, u, factor, moving)
        if several:
            for k in range(len(lanes.active)):
                _some(lanes.active[k][lane], lanes.size[lane, k], theta, old, u, factor, moving)
        elif listed:
            _some(lanes.active[lane], lanes.size[lane, 0], theta, old, u, factor, moving)
            if hybrid:
                _some(lanes.active_b[lane], lanes.size[lane, 1], theta, old, u, factor, moving)

    return visited


@register_jitable(forceinline=True)
def _one(rows, t, theta, old, u, factor, moving):  # type: ignore[no-untyped-def]
    if moving:
        _move_row(rows, t, theta, old, u, factor)
    else:
        _remember_row(rows, t, theta, old)


@register_jitable(forceinline=True)
def _some(active, count, theta, old, u, factor, moving):  # type: ignore[no-untyped-def]
    if moving:
        _move_list(active, count, theta, old, u, factor)
    else:
        _remember_list(active, count, theta, old)


@register_jitable(forceinline=True)
def averages_only(settle, lane):  # type: ignore[no-untyped-def]
    """Whether averaging all of theta is the only thing that happens after a step."""
    if not settle.active or settle.lazy:
        return False
    return settle.l1[lane] == 0.0 and settle.radius[lane] == np.inf


@register_jitable(forceinline=True)
def average(mean, theta, a, steps):  # type: ignore[no-untyped-def]
    """`mean += (theta - mean) min(1, a / (steps + a))`; where a is 0, the mean is theta."""
    eta = min(1.0, a / (steps + a)) if a > 0.0 else 1.0
    for j in range(len(theta)):
        old = get_w(mean, j)
        put_w(mean, j, old + eta * (get_theta(theta, j) - old))


@register_jitable(forceinline=True)
def remember(rows, following, lanes, settle, theta, lane, t):  # type: ignore[no-untyped-def]
    """Before a step, remember theta where the row may move it."""
    if settle.active and settle.lazy:
        visit(rows, following, lanes, lane, t, theta, settle.old, settle.mean[lane], 0.0)


@register_jitable(forceinline=True)
def settle_all(settle, theta, lane):  # type: ignore[no-untyped-def]
    """After a step that moved all of theta, before `settle_row`; `settle.old` is theta before it."""
    for j in range(len(theta)):
        settle.mean[lane, j] -= (theta[j] - settle.old[j]) / settle.share[0]
        settle.old[j] = theta[j]


@register_jitable(forceinline=True)
def settle_row(rows, following, lanes, settle, theta, lane, t):  # type: ignore[no-untyped-def]
    """After a step, apply the prox, the projection and the averaging."""
    if not settle.active:
        return
    bound = settle.alpha[lane, t] * settle.l1[lane]
    if bound > 0.0:
        for j in range(len(theta)):
            size = abs(theta[j]) - bound
            theta[j] = 0.0 if size <= 0.0 else (size if theta[j] > 0.0 else -size)
    if settle.radius[lane] < np.inf:
        total = 0.0
        for j in range(len(theta)):
            total += theta[j] * theta[j]
        if total > settle.radius[lane] ** 2:
            scale = settle.radius[lane] / np.sqrt(total)
            for j in range(len(theta)):
                theta[j] *= scale
    a, mean = settle.average[lane], settle.mean[lane]
    if not settle.lazy:
        average(mean, theta, a, settle.steps[lane] + t)
        return
    eta = min(1.0, a / (settle.steps[lane] + t + a)) if a > 0.0 else 1.0
    share = settle.share[0]
    if eta >= 1.0 or share < SMALLEST:
        for j in range(len(theta)):
            mean[j] = 0.0 if eta >= 1.0 else mean[j] * share
        share = 1.0
    if eta < 1.0:
        visit(rows, following, lanes, lane, t, theta, settle.old, mean, 1.0 / share)
        share *= 1.0 - eta
    settle.share[0] = share


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def drive_settled(
    rows: Any,
    following: Any,
    lanes: Any,
    settle: Any,
    diverged: Any,
    n: int,
    first: int,
    every: int,
    ring: Any,
) -> None:
    """As `lanes.drive`, row by row, with what happens after each step."""
    lo = min(0, n)  # a literal 0 would make Numba compile everything that follows twice
    while lo < n:
        hi = block_end(lo, n, first, every)
        for lane in range(len(diverged)):
            if diverged[lane] < 0:
                theta = lanes.theta[lane]
                open_lane(settle, theta, lane)
                for t in range(lo, hi):
                    remember(rows, following, lanes, settle, theta, lane, t)
                    if advance(rows, following, lanes, lane, t, t + 1) <= t:
                        diverged[lane] = first + t
                        break
                    settle_row(rows, following, lanes, settle, theta, lane, t)
                close_lane(settle, theta, lane)
        if every > 0 and (first + hi) % every == 0:
            append(settle.mean, False, ring)
        lo = hi

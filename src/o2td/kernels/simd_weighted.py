"""Weighted TD, sixteen lanes side by side (see `simd`).

theta += a phi,    or along traces    z = decay z + m phi,  theta += a z
"""

from __future__ import annotations

import numpy as np

from o2td.compiled import jitable, njit
from o2td.kernels.lane_columns import pack, take_out, turn, unpack
from o2td.kernels.lanes import CACHED_ROWS, block_end
from o2td.kernels.ring_buffer import append
from o2td.kernels.simd import differences, room_for
from o2td.kernels.vectors import WIDTH, aligned, slide, trail
from o2td.kernels.weighted import FASTMATH, HUGE

__all__ = ["drive_side"]


def drive_side(rows, following, lanes, diverged, n: int, first: int, every: int, ring) -> None:
    """As `lanes.drive`, for dense rows and lanes that share discounts.

    A record in the ring then has a multiple of sixteen rows, which hold groups in this layout.
    """
    d, groups = lanes.theta.shape[1], -(-len(diverged) // WIDTH)
    _drive(
        rows, following, lanes, diverged, n, first, every, ring, aligned(groups, d),
        None if lanes.traced is None else aligned(groups, d), room_for(len(diverged), n, d),
    )  # fmt: skip


@jitable
def _weigh(inner, low, omega, count, weight):
    """Multiply the weights of lanes that include omega by it."""
    if inner is not None:
        for s in range(count):
            if inner[low + s]:
                for b in range(len(weight)):
                    weight[b, s] *= omega[b]


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _weighted(
    rows, lanes, diverged, low: int, lo: int, hi: int, first: int, theta, inner, room
) -> None:
    """Move sixteen weighted-TD lanes without traces, from lane `low` on, over rows lo:hi."""
    here, at, d = rows.matrix, rows.at, rows.matrix.shape[1]
    v, a = room.numbers[0], room.numbers[1]
    size = hi - lo
    gain, weight, reward = room.gains[0, :size], room.gains[1, :size], room.gains[2, :size]
    turn(lanes.gain, room.lanes, diverged, low, lo, gain)
    turn(lanes.weight, room.lanes, diverged, low, lo, weight)
    turn(lanes.reward, lanes.source, diverged, low, lo, reward)
    _weigh(inner, low, room.omega, min(WIDTH, len(diverged) - low), weight)
    for s in range(min(WIDTH, len(diverged) - low)):
        for b in range(size):
            gain[b, s] *= weight[b, s]
    a[:] = 0.0
    i = at[lo] * d
    for b in range(size):
        slide(theta, a, here, i, room.dphi, (b + 1) * d, v, d)
        most = 0.0
        for s in range(WIDTH):
            delta = reward[b, s] - v[s]
            a[s] = gain[b, s] * delta
            most += abs(delta) + abs(a[s])
        if not most < HUGE:
            for s in range(min(WIDTH, len(diverged) - low)):
                if not (abs(reward[b, s] - v[s]) < HUGE and abs(a[s]) < HUGE):
                    diverged[low + s] = first + lo + b
                    a[s] = 0.0
                    gain[b:, s] = reward[b:, s] = 0.0
                    take_out(theta, s, lanes.theta[low + s])
        i = at[lo + b] * d
    slide(theta, a, here, i, room.dphi, 0, v, d)


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _traced(
    rows, lanes, diverged, low: int, lo: int, hi: int, first: int, theta, z, bound, inner, room
) -> None:
    """As `_weighted`, along traces; `bound` bounds each lane's trace for features of size one."""
    here, at, d = rows.matrix, rows.at, rows.matrix.shape[1]
    v, a, m, keep = room.numbers[0], room.numbers[1], room.numbers[2], room.numbers[3]
    size = hi - lo
    gain, weight, reward = room.gains[0, :size], room.gains[1, :size], room.gains[2, :size]
    decay = room.gains[3, :size]
    turn(lanes.gain, room.lanes, diverged, low, lo, gain)
    turn(lanes.weight, room.lanes, diverged, low, lo, weight)
    turn(lanes.decay, room.lanes, diverged, low, lo, decay)
    turn(lanes.reward, lanes.source, diverged, low, lo, reward)
    _weigh(inner, low, room.omega, min(WIDTH, len(diverged) - low), weight)
    a[:] = 0.0
    m[:] = 0.0
    keep[:] = 1.0
    i = at[lo] * d
    for b in range(size):
        trail(theta, z, keep, m, a, here, i, room.dphi, (b + 1) * d, v, d)
        most = 0.0
        for s in range(WIDTH):
            delta = reward[b, s] - v[s]
            a[s], m[s], keep[s] = gain[b, s] * delta, weight[b, s], decay[b, s]
            bound[s] = abs(keep[s]) * bound[s] + abs(m[s])
            most += abs(delta) + abs(a[s]) + bound[s] + abs(a[s]) * bound[s]
        if not most < HUGE:
            for s in range(min(WIDTH, len(diverged) - low)):
                near = abs(reward[b, s] - v[s]) < HUGE and abs(a[s]) < HUGE
                if not (near and bound[s] < HUGE and abs(a[s]) * bound[s] < HUGE):
                    diverged[low + s] = first + lo + b
                    a[s] = m[s] = keep[s] = bound[s] = 0.0
                    gain[b:, s] = reward[b:, s] = weight[b:, s] = 0.0
                    take_out(theta, s, lanes.theta[low + s])
                    take_out(z, s, lanes.z[low + s])
        i = at[lo + b] * d
    trail(theta, z, keep, m, a, here, i, room.dphi, 0, v, d)


@njit(cache=True, nogil=True)
def _drive(
    rows, following, lanes, diverged, n: int, first: int, every: int, ring, theta, z, room
) -> None:
    bound = np.zeros((len(theta), WIDTH))
    pack(lanes.theta, diverged, theta)
    if z is not None:
        pack(lanes.z, diverged, z)
        for lane in range(len(diverged)):
            if diverged[lane] < 0:
                bound[lane // WIDTH, lane % WIDTH] = lanes.bound[lane, 0]
    lo = min(0, n)  # a literal 0 would make Numba compile everything that follows twice
    while lo < n:
        hi = min(block_end(lo, n, first, every), lo + CACHED_ROWS)
        differences(rows, following, lanes.discount[0], lo, hi, room)
        for group in range(len(theta)):
            low = group * WIDTH
            if z is not None:
                _traced(
                    rows, lanes, diverged, low, lo, hi, first, theta[group], z[group],
                    bound[group], lanes.inner, room,
                )  # fmt: skip
            else:
                _weighted(
                    rows, lanes, diverged, low, lo, hi, first, theta[group], lanes.inner, room
                )
        if every > 0 and (first + hi) % every == 0:
            append(theta, True, ring)
        lo = hi
    unpack(theta, diverged, lanes.theta)
    if z is not None:
        unpack(z, diverged, lanes.z)
        for lane in range(len(diverged)):
            if diverged[lane] < 0:
                lanes.bound[lane, 0] = bound[lane // WIDTH, lane % WIDTH]

"""Many lanes over dense rows, sixteen side by side: the same steps as lane by lane, read once for all.

As in the plain kernels a pass over theta applies the step of one row and takes the dot products of the
next. Here such a pass moves sixteen lanes (`vectors`), so features come from memory once for all of
them and there is no sum across a vector to wait for. With `dphi = phi - gamma phi'`, worked out once for
all groups, the families are

    weighted    theta += a phi,  or along traces  z = decay z + m phi,  theta += a z
    gradient    theta += p phi + q dphi,    w = keep w + c phi + f dphi

What is missing to sixteen are lanes of zeros. So is a lane that has diverged: it is taken out as it was
before the row that overflowed, and nothing of it reaches another.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from o2td.kernels.columns import pack, take_out, turn, unpack
from o2td.kernels.lanes import CACHED_ROWS, WeightedLanes, block_end
from o2td.kernels.memory import get_row, put_z
from o2td.kernels.notes import note
from o2td.kernels.vectors import WIDTH, aligned, fade, slide, slide_both, trail
from o2td.kernels.weighted import FASTMATH, HUGE, quotient

Floats = npt.NDArray[np.float64]


class Room(NamedTuple):
    """Memory for a block of rows and a group of lanes."""

    dphi: Floats
    """Rows of differences, laid out flat: those of the block after one of zeros."""
    omega: Floats
    """Of each row of the block."""
    gains: Floats
    """Up to four numbers of every row and lane, (4, rows, 16)."""
    numbers: Floats
    """Eight of every lane, (8, 16)."""
    lanes: npt.NDArray[np.int64]
    """The numbers of the lanes, 0, 1, ..."""


def drive_side(
    rows: Any,
    following: Any,
    lanes: Any,
    diverged: Any,
    n: int,
    first: int,
    every: int,
    notes: Any,
) -> None:
    """As `lanes.drive`, for dense rows and lanes that share discounts; gradient ones without traces.

    A record of the notes is then a multiple of sixteen rows, which hold groups as they are here.
    """
    d = lanes.theta.shape[1]
    groups, most = -(-len(diverged) // WIDTH), min(n, CACHED_ROWS)
    weighted = isinstance(lanes, WeightedLanes)
    (_drive_weighted if weighted else _drive_gradient)(
        rows,
        following,
        lanes,
        diverged,
        n,
        first,
        every,
        notes,
        aligned(groups, d),
        aligned(groups if not weighted or lanes.traced[0] else 1, d),
        Room(
            np.zeros((most + 1) * d),
            np.zeros(most),
            np.zeros((4, most, WIDTH)),
            aligned(8, 1),
            np.arange(len(diverged)),
        ),
    )


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _differences(rows: Any, following: Any, discount: Any, lo: int, hi: int, room: Any) -> None:
    """`dphi` and omega of rows lo:hi; a row with gamma = 0 has no successor to read."""
    d = rows.matrix.shape[1]
    here, there, dphi = rows.matrix.ravel(), following.matrix.ravel(), room.dphi
    for t in range(lo, hi):
        up, gamma, to = rows.at[t] * d, discount[t], (t - lo + 1) * d
        along = square = 0.0
        if gamma == 0.0:
            for j in range(d):
                x = get_row(here, up + j)
                put_z(dphi, to + j, x)
                square += x * x
            along = square
        else:
            k = following.at[t] * d
            for j in range(d):
                phi = get_row(here, up + j)
                x = phi - gamma * get_row(there, k + j)
                put_z(dphi, to + j, x)
                along += x * phi
                square += x * x
        room.omega[t - lo] = quotient((along, square))


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _weighted(
    rows: Any,
    lanes: Any,
    diverged: Any,
    low: int,
    lo: int,
    hi: int,
    first: int,
    theta: Any,
    room: Any,
) -> None:
    """Sixteen weighted-TD lanes without traces, from lane `low` on, over rows lo:hi."""
    here, at, d = rows.matrix.ravel(), rows.at, rows.matrix.shape[1]
    v, a = room.numbers[0], room.numbers[1]
    size = hi - lo
    gain, weight, reward = room.gains[0, :size], room.gains[1, :size], room.gains[2, :size]
    turn(lanes.gain, room.lanes, diverged, low, lo, gain)
    turn(lanes.weight, room.lanes, diverged, low, lo, weight)
    turn(lanes.reward, lanes.source, diverged, low, lo, reward)
    for s in range(min(WIDTH, len(diverged) - low)):
        for b in range(size):
            gain[b, s] *= weight[b, s] * (room.omega[b] if lanes.inner[low + s] else 1.0)
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
    rows: Any,
    lanes: Any,
    diverged: Any,
    low: int,
    lo: int,
    hi: int,
    first: int,
    theta: Any,
    z: Any,
    bound: Any,
    room: Any,
) -> None:
    """As `_weighted`, along traces; `bound` is one on each lane's, features of size one."""
    here, at, d = rows.matrix.ravel(), rows.at, rows.matrix.shape[1]
    v, a, m, keep = room.numbers[0], room.numbers[1], room.numbers[2], room.numbers[3]
    size = hi - lo
    gain, weight, reward = room.gains[0, :size], room.gains[1, :size], room.gains[2, :size]
    decay = room.gains[3, :size]
    turn(lanes.gain, room.lanes, diverged, low, lo, gain)
    turn(lanes.weight, room.lanes, diverged, low, lo, weight)
    turn(lanes.decay, room.lanes, diverged, low, lo, decay)
    turn(lanes.reward, lanes.source, diverged, low, lo, reward)
    for s in range(min(WIDTH, len(diverged) - low)):
        if lanes.inner[low + s]:
            for b in range(size):
                weight[b, s] *= room.omega[b]
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
def _drive_weighted(
    rows: Any,
    following: Any,
    lanes: Any,
    diverged: Any,
    n: int,
    first: int,
    every: int,
    notes: Any,
    theta: Any,
    z: Any,
    room: Any,
) -> None:
    traced = lanes.traced[0]
    bound = np.zeros((len(theta), WIDTH))
    pack(lanes.theta, diverged, theta)
    if traced:
        pack(lanes.z, diverged, z)
        for lane in range(len(diverged)):
            if diverged[lane] < 0:
                bound[lane // WIDTH, lane % WIDTH] = lanes.bound[lane, 0]
    lo = 0
    while lo < n:
        hi = min(block_end(lo, n, first, every), lo + CACHED_ROWS)
        _differences(rows, following, lanes.discount[0], lo, hi, room)
        for group in range(len(theta)):
            low = group * WIDTH
            if traced:
                _traced(
                    rows, lanes, diverged, low, lo, hi, first, theta[group], z[group],
                    bound[group], room,
                )  # fmt: skip
            else:
                _weighted(rows, lanes, diverged, low, lo, hi, first, theta[group], room)
        if every > 0 and (first + hi) % every == 0:
            note(theta, True, notes)
        lo = hi
    unpack(theta, diverged, lanes.theta)
    if traced:
        unpack(z, diverged, lanes.z)
        for lane in range(len(diverged)):
            if diverged[lane] < 0:
                lanes.bound[lane, 0] = bound[lane // WIDTH, lane % WIDTH]


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _gradient_step(member: Any, gamma: float, v: Any, wphi: Any, given: Any, out: Any) -> float:
    """The coefficients of one row for every lane, and what exceeds `HUGE` if any lane's do.

    As `gradient.directions`, in phi and dphi; `given`: reward, weight and the two gains.
    """
    reward, weight, alpha, second = given
    p, q, c, f, keep, size = out[2], out[3], out[4], out[5], out[6], out[7]
    most = 0.0
    for s in range(WIDTH):
        delta, m = reward[s] - v[s], weight[s]
        u = alpha[s] * (m * member[3, s] + member[5, s])
        along = alpha[s] * (member[1, s] + m * member[2, s] + member[4, s]) - u
        q[s] = u * wphi[s]
        p[s] = along * wphi[s] + alpha[s] * m * member[0, s] * delta
        f[s] = second[s] * member[8, s] * wphi[s]
        c[s] = second[s] * (member[7, s] * wphi[s] + m * member[6, s] * delta)
        keep[s] = 1.0 - second[s] * member[9, s]
        moved = abs(p[s] + q[s]) + abs(gamma * q[s]) + abs(c[s] + f[s]) + abs(gamma * f[s])
        size[s] = abs(delta) + moved
        most += size[s]
    return most


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _gradient(
    rows: Any,
    lanes: Any,
    diverged: Any,
    low: int,
    lo: int,
    hi: int,
    first: int,
    theta: Any,
    w: Any,
    member: Any,
    lean: Any,
    room: Any,
) -> None:
    """Sixteen gradient-TD lanes; `lean`: theta moves along dphi only, and w along phi only."""
    here, at, d = rows.matrix.ravel(), rows.at, rows.matrix.shape[1]
    numbers, dphi = room.numbers, room.dphi
    v, wphi, p, q, c, f, keep, sizes = (
        numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6],
        numbers[7],
    )  # fmt: skip
    size = hi - lo
    reward, weight = room.gains[0, :size], room.gains[1, :size]
    alpha, second = room.gains[2, :size], room.gains[3, :size]
    turn(lanes.reward, lanes.source, diverged, low, lo, reward)
    turn(lanes.weight, room.lanes, diverged, low, lo, weight)
    turn(lanes.gain, room.lanes, diverged, low, lo, alpha)
    turn(lanes.second_gain, room.lanes, diverged, low, lo, second)
    numbers[2:6] = 0.0
    keep[:] = 1.0
    i = up = at[lo] * d
    for b in range(size + 1):
        if b < size:
            up = at[lo + b] * d
        now = (b + 1) % (size + 1) * d
        if lean[0]:
            slide(theta, q, dphi, b * d, dphi, now, v, d)
        else:
            slide_both(theta, p, here, i, q, dphi, b * d, dphi, now, v, d)
        if lean[1]:
            slide(w, c, here, i, here, up, wphi, d)
        else:
            fade(w, keep, c, here, i, f, dphi, b * d, here, up, wphi, d)
        if b == size:
            break
        given = (reward[b], weight[b], alpha[b], second[b])
        if not _gradient_step(member, lanes.discount[0, lo + b], v, wphi, given, numbers) < HUGE:
            for s in range(min(WIDTH, len(diverged) - low)):
                if not sizes[s] < HUGE:
                    diverged[low + s] = first + lo + b
                    p[s] = q[s] = c[s] = f[s] = 0.0
                    for part in (reward, weight, alpha, second):
                        part[b:, s] = 0.0
                    take_out(theta, s, lanes.theta[low + s])
                    take_out(w, s, lanes.w[low + s])
        i = up


@njit(cache=True, nogil=True)
def _drive_gradient(
    rows: Any,
    following: Any,
    lanes: Any,
    diverged: Any,
    n: int,
    first: int,
    every: int,
    notes: Any,
    theta: Any,
    w: Any,
    room: Any,
) -> None:
    members = np.zeros((len(theta), 10, WIDTH))
    straight = steady = True
    for lane in range(len(diverged)):
        m = lanes.member[lane]
        members[lane // WIDTH, :, lane % WIDTH] = m
        straight = straight and m[0] == 0.0 and m[1] + m[4] == m[5] and m[2] == m[3]
        steady = steady and m[8] == 0.0 and m[9] == 0.0
    pack(lanes.theta, diverged, theta)
    pack(lanes.w, diverged, w)
    lo = 0
    while lo < n:
        hi = min(block_end(lo, n, first, every), lo + CACHED_ROWS)
        _differences(rows, following, lanes.discount[0], lo, hi, room)
        for group in range(len(theta)):
            _gradient(
                rows, lanes, diverged, group * WIDTH, lo, hi, first, theta[group], w[group],
                members[group], (straight, steady), room,
            )  # fmt: skip
        if every > 0 and (first + hi) % every == 0:
            note(theta, True, notes)
        lo = hi
    unpack(theta, diverged, lanes.theta)
    unpack(w, diverged, lanes.w)

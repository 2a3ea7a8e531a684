"""Gradient TD without traces, sixteen lanes side by side (see `simd`).

theta += p phi + q dphi,    w = keep w + c phi + f dphi
"""

from __future__ import annotations

import numpy as np

from o2td.compiled import njit
from o2td.kernels.lane_columns import pack, take_out, turn, unpack
from o2td.kernels.lanes import CACHED_ROWS, block_end
from o2td.kernels.ring_buffer import append
from o2td.kernels.simd import differences, room_for
from o2td.kernels.vectors import WIDTH, aligned, fade, slide, slide_both
from o2td.kernels.weighted import FASTMATH, HUGE

__all__ = ["drive_side"]


def drive_side(rows, following, lanes, diverged, n: int, first: int, every: int, ring) -> None:
    """As `lanes.drive`, for dense rows and lanes that share discounts and keep no traces.

    A record in the ring then has a multiple of sixteen rows, which hold groups in this layout.
    """
    d, groups = lanes.theta.shape[1], -(-len(diverged) // WIDTH)
    m = lanes.member.T
    members = np.zeros((10, groups * WIDTH))
    members[:, : len(diverged)] = m
    straight = ((m[0] == 0.0) & (m[1] + m[4] == m[5]) & (m[2] == m[3])).all()
    steady = ((m[8] == 0.0) & (m[9] == 0.0)).all()
    _drive(
        rows, following, lanes, diverged, n, first, every, ring, aligned(groups, d),
        aligned(groups, d), members.reshape(10, groups, WIDTH).swapaxes(0, 1).copy(),
        (bool(straight), bool(steady)), room_for(len(diverged), n, d),
    )  # fmt: skip


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _gradient_step(member, gamma: float, v, wphi, given, out) -> float:
    """The coefficients of one row for every lane, and a number that exceeds `HUGE` if any lane's do.

    As `gradient.directions`, in terms of phi and dphi; `given` holds reward, weight and the two gains.
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
    rows, lanes, diverged, low: int, lo: int, hi: int, first: int, theta, w, member, lean, room
) -> None:
    """Move sixteen gradient-TD lanes; `lean`: theta moves only along dphi, and w only along phi."""
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
def _drive(
    rows,
    following,
    lanes,
    diverged,
    n: int,
    first: int,
    every: int,
    ring,
    theta,
    w,
    members,
    lean,
    room,
) -> None:
    pack(lanes.theta, diverged, theta)
    pack(lanes.w, diverged, w)
    lo = min(0, n)  # a literal 0 would make Numba compile everything that follows twice
    while lo < n:
        hi = min(block_end(lo, n, first, every), lo + CACHED_ROWS)
        differences(rows, following, lanes.discount[0], lo, hi, room)
        for group in range(len(theta)):
            _gradient(
                rows, lanes, diverged, group * WIDTH, lo, hi, first, theta[group], w[group],
                members[group], lean, room,
            )  # fmt: skip
        if every > 0 and (first + hi) % every == 0:
            append(theta, True, ring)
        lo = hi
    unpack(theta, diverged, lanes.theta)
    unpack(w, diverged, lanes.w)

"""Convert lanes, (lanes, d) or (lanes, n), to groups of sixteen columns and back (see `vectors`)."""

from __future__ import annotations

from o2td.compiled import njit
from o2td.kernels.vectors import WIDTH

__all__ = ["pack", "take_out", "turn", "unpack"]


@njit(cache=True, nogil=True)
def pack(lanes, diverged, groups) -> None:
    """Pack lanes (lanes, d) into groups of sixteen (groups, 16 d), leaving out diverged ones."""
    for lane in range(len(lanes)):
        if diverged[lane] < 0:
            for j in range(lanes.shape[1]):
                groups[lane // WIDTH, j * WIDTH + lane % WIDTH] = lanes[lane, j]


@njit(cache=True, nogil=True)
def unpack(groups, diverged, lanes) -> None:
    """Unpack groups into lanes, except those that were taken out."""
    for lane in range(len(lanes)):
        if diverged[lane] < 0:
            for j in range(lanes.shape[1]):
                lanes[lane, j] = groups[lane // WIDTH, j * WIDTH + lane % WIDTH]


@njit(cache=True, nogil=True)
def take_out(group, s: int, kept) -> None:
    """Move lane s of a group to `kept` and replace it by zeros."""
    for j in range(len(kept)):
        kept[j] = group[j * WIDTH + s]
        group[j * WIDTH + s] = 0.0


@njit(cache=True, nogil=True)
def turn(numbers, which, diverged, low: int, lo: int, out) -> None:
    """Transpose rows lo, lo + 1, ... of the sixteen lanes in `which` to (rows, 16)."""
    for s in range(WIDTH):
        lane = low + s
        if lane < len(diverged) and diverged[lane] < 0:
            row = numbers[which[lane]]
            for b in range(len(out)):
                out[b, s] = row[lo + b]
        else:
            out[:, s] = 0.0

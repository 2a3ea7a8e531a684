"""Random row weights from hashed counters, so they do not depend on the order or split of the work."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td.compiled import njit

__all__ = ["SPREAD", "mixed", "multipliers"]

SPREAD = 0.5  # weights are 1 - SPREAD or 1 + SPREAD
LENGTH = 2.0  # a block without trajectory starts has LENGTH t^(1/3) rows
EPISODE = 8.0  # how many times longer a block may be if trajectories do start
_WORD = 64  # weights that one hash gives


@njit(cache=True, nogil=True)
def mixed(x) -> Any:
    """The finaliser of splitmix64: maps one 64-bit word to another."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def multipliers(start, first: int, memory, out) -> None:
    """`out[b, t] = 1 -+ SPREAD` of row t in lane b, the same for all rows of a block.

    A block ends where a trajectory starts, or when it is long. `memory` holds the blocks so far, the
    rows of this one, and whether trajectories start; `first` is the number of rows before these.
    """
    lanes, n = out.shape
    lo = 0
    while lo < n:
        hi = lo
        while hi < n:
            row = first + hi
            longest = LENGTH * (row + 1.0) ** (1.0 / 3.0)
            if memory[2] > 0.0:
                longest *= EPISODE
            if start[hi] and row > 0:
                memory[2] = 1.0
            if start[hi] or memory[0] == 0.0 or memory[1] >= longest:
                if hi > lo:
                    break
                memory[0] += 1.0
                memory[1] = 0.0
            memory[1] += 1.0
            hi += 1
        for b in range(lanes):
            if b % _WORD == 0:
                word = np.uint64(memory[0]) * np.uint64(0x9E3779B97F4A7C15)
                word = mixed(mixed(word + np.uint64(b // _WORD + 1)))
            weight = 1.0 - SPREAD
            if (word >> np.uint64(b % _WORD)) & np.uint64(1):
                weight = 1.0 + SPREAD
            for t in range(lo, hi):
                out[b, t] = weight
        lo = hi

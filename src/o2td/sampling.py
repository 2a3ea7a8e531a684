"""Compiled sampling of finite problems: one uniform number, one table look-up a transition.

Each state has an alias table (Walker 1977; Vose 1991) over its pairs (action, successor), so a
transition costs the same whatever the number of states. Uniform numbers are taken from the raw
64-bit output of PCG64, which is the same on every machine and in every version of NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from o2td.errors import InputError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Seed = int | Sequence[int] | np.random.SeedSequence


class AliasTables(NamedTuple):
    """Alias tables of many distributions stored one after the other: k has entries ptr[k]:ptr[k+1]."""

    ptr: Ints
    threshold: Floats
    alias: npt.NDArray[np.int32]


def seed_sequence(seed: Seed) -> np.random.SeedSequence:
    """The stream of random numbers that a seed names: `(seed, run)` gives independent streams."""
    if isinstance(seed, np.random.SeedSequence):
        return seed
    try:
        numbers = [seed] if isinstance(seed, (int, np.integer)) else list(seed)
        # NumPy pads with zeros, so that 5 and (5, 0) would be one stream: their lengths differ.
        return np.random.SeedSequence([*(int(k) for k in numbers), len(numbers)])
    except (TypeError, ValueError):
        raise InputError(f"seed must be a non-negative integer or several, got {seed!r}") from None


def streams(seed: Seed, count: int) -> list[np.random.PCG64]:
    """`count` independent generators; the same ones each time, also where `seed` is an object."""
    root = seed_sequence(seed)
    keys = [(*root.spawn_key, k) for k in range(count)]
    return [np.random.PCG64(np.random.SeedSequence(root.entropy, spawn_key=key)) for key in keys]


def uniforms(bits: np.random.PCG64, n: int) -> Floats:
    """`n` numbers in [0, 1) with 53 random bits each."""
    raw = np.asarray(bits.random_raw(n), dtype=np.uint64)
    return np.asarray((raw >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def alias_tables(ptr: Ints, probability: Floats) -> AliasTables:
    """Alias tables of the distributions `probability[ptr[k]:ptr[k+1]]` (normalised here)."""
    threshold = np.empty(len(probability))
    alias = np.empty(len(probability), dtype=np.int32)
    _build(ptr, probability, threshold, alias)
    return AliasTables(ptr, threshold, alias)


@njit(cache=True, nogil=True)
def _build(ptr: Any, probability: Any, threshold: Any, alias: Any) -> None:
    longest = 0
    for k in range(len(ptr) - 1):
        longest = max(longest, ptr[k + 1] - ptr[k])
    small = np.empty(longest, dtype=np.int64)
    large = np.empty(longest, dtype=np.int64)
    for k in range(len(ptr) - 1):
        low, high = ptr[k], ptr[k + 1]
        size = high - low
        total = 0.0
        for j in range(low, high):
            total += probability[j]
        n_small = n_large = 0
        for j in range(size):
            share = probability[low + j] * size / total if total > 0.0 else 1.0
            threshold[low + j] = share
            alias[low + j] = j
            if share < 1.0:
                small[n_small] = j
                n_small += 1
            else:
                large[n_large] = j
                n_large += 1
        while n_small > 0 and n_large > 0:
            n_small -= 1
            lack, rich = small[n_small], large[n_large - 1]
            alias[low + lack] = rich
            threshold[low + rich] -= 1.0 - threshold[low + lack]
            if threshold[low + rich] < 1.0:
                n_large -= 1
                small[n_small] = rich
                n_small += 1
        for j in range(n_small):
            threshold[low + small[j]] = 1.0
        for j in range(n_large):
            threshold[low + large[j]] = 1.0


@njit(cache=True, nogil=True, inline="always")
def _draw(ptr: Any, threshold: Any, alias: Any, k: int, u: float) -> int:
    low = ptr[k]
    scaled = u * (ptr[k + 1] - low)
    j = int(scaled)
    if scaled - j >= threshold[low + j]:
        j = alias[low + j]
    return int(low + j)


@njit(cache=True, nogil=True)
def draw_many(ptr: Any, threshold: Any, alias: Any, k: Any, u: Any, out: Any) -> None:
    """`out[t]`: the position of an entry of distribution `k[t]`, drawn with the uniform `u[t]`."""
    for t in range(len(u)):
        out[t] = _draw(ptr, threshold, alias, k[t], u[t])


@njit(cache=True, nogil=True)
def walk(
    pairs: Any,
    restart: Any,
    next_state: Any,
    terminal: Any,
    state: int,
    u: Any,
    states: Any,
    chosen: Any,
    start: Any,
) -> int:
    """A trajectory with restarts: fills `states`, `chosen` pairs and `start`; returns where it is.

    `state` is -1 before the first row. A restart spends a uniform number of its own, so `u` has two
    numbers a row.
    """
    ptr, threshold, alias = pairs
    restart_ptr, restart_threshold, restart_alias = restart
    for t in range(len(states)):
        start[t] = state < 0
        if state < 0:
            state = _draw(restart_ptr, restart_threshold, restart_alias, 0, u[2 * t])
        pair = _draw(ptr, threshold, alias, state, u[2 * t + 1])
        states[t] = state
        chosen[t] = pair
        state = next_state[pair]
        if terminal[state]:
            state = -1
    return state

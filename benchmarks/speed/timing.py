"""Times that survive a noisy machine: competitors take turns, and the fastest turn of each counts.

The default clock is this thread's own processor time, since nearly everything here runs in one thread.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

__all__ = ["Times", "interleave"]


@dataclass(frozen=True)
class Times:
    """Seconds of each repetition."""

    seconds: tuple[float, ...]

    @property
    def least(self) -> float:
        """The fastest repetition."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The median repetition."""
        return float(np.median(self.seconds))

    def over(self, other: Times) -> float:
        """The median ratio of turns: for clocks that count waiting, which may spoil a turn."""
        return float(np.median(np.divide(self.seconds, other.seconds)))


def interleave(
    turns: Mapping[str, Callable[[], object]],
    repeats: int,
    clock: Callable[[], float] = time.thread_time,
) -> dict[str, Times]:
    """Run every function once untimed, then all in turn, `repeats` times.

    >>> sorted(interleave({"a": lambda: 1, "b": lambda: 2}, 2))
    ['a', 'b']
    """
    for run in turns.values():
        run()
    taken: dict[str, list[float]] = {name: [] for name in turns}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(repeats):
            for name, run in turns.items():
                begin = clock()
                run()
                taken[name].append(clock() - begin)
    finally:
        if collecting:
            gc.enable()
    return {name: Times(tuple(values)) for name, values in taken.items()}

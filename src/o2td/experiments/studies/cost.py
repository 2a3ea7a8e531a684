"""What a step costs: claim 13, `O(d)`, as the exponent of time against d."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from o2td.experiments.studies.records import Record
from o2td.learners import ETD, GTD2, O2TD, TD
from o2td.transitions import Transitions

__all__ = ["cost"]

SIZES = (256, 1024, 4096, 16384, 65536)


def cost(first: int, last: int, seed: int) -> Iterator[Record]:
    """Nanoseconds a step, least of several passes over rows that stay in memory."""
    learners: dict[str, Any] = {"TD": TD, "ETD": ETD, "GTD2": GTD2}
    learners |= {f"O2TD {w}": lambda a, w=w: O2TD(a, w) for w in ("sample", "state")}
    rng = np.random.default_rng(seed)
    for d in SIZES:
        n = max(16, (1 << 21) // d)
        table = rng.random((8, d))
        state = rng.integers(8, size=n + 1)
        batch = Transitions.from_table(table, state[:-1], rng.random(n), state[1:], 0.9)
        for name, build in learners.items():
            learner = build(0.1 / d).partial_fit(batch)
            seconds = []
            for _ in range(7):
                start = time.perf_counter()
                learner.partial_fit(batch)
                seconds.append(time.perf_counter() - start)
            yield Record("dense rows", name, "nanoseconds", 1e9 * min(seconds) / n, 0, float(d))

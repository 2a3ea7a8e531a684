"""The cost of a step: claim 13, `O(d)`, as the exponent of time in d."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from o2td.experiments.studies import Measurement
from o2td.learners import ETD, GTD2, O2TD, TD
from o2td.transitions import Transitions

SIZES = (256, 1024, 4096, 16384, 65536)
ELEMENTS = 1 << 21  # rows times features: the same cache level for every size
PASSES = 31


def cost(first: int, last: int, seed: int) -> Iterator[Measurement]:
    """Nanoseconds of processor time per step, least of many passes over equal data for each d."""
    learners: dict[str, Any] = {"TD": TD, "ETD": ETD, "GTD2": GTD2}
    learners |= {f"O2TD {w}": lambda a, w=w: O2TD(a, omega=w) for w in ("sample", "state")}
    batches = _batches(np.random.default_rng(seed))
    made = {(d, k): build(0.1 / d) for d in SIZES for k, build in learners.items()}
    least = dict.fromkeys(made, np.inf)
    for _ in range(PASSES):  # all take turns, so that other work on the machine affects all equally
        for d, name in made:
            start = time.thread_time()
            made[d, name].partial_fit(batches[d])
            least[d, name] = min(least[d, name], (time.thread_time() - start) / batches[d].n)
    for (d, name), seconds in least.items():
        yield Measurement("dense rows", name, "nanoseconds", 1e9 * seconds, 0, float(d))


def _batches(rng: np.random.Generator) -> dict[int, Transitions]:
    made = {}
    for d in SIZES:
        n = ELEMENTS // d
        at = np.arange(n)
        made[d] = Transitions.from_table(rng.random((n, d)), at, rng.random(n), (at + 1) % n, 0.9)
    return made

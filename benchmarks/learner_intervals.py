"""Do learners' intervals cover? Coverage of the limit's values over many streams.

`python -m benchmarks.learner_intervals [STREAMS]` writes docs/data/learner_intervals.json. A value
counts as covered if the interval contains the value at the learner's own limit; states count as often
as they are visited. Block lengths, weights and the treatment of bias were settled on other seeds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import o2td
from o2td import domains, exact
from o2td.learners import Learner
from o2td.problem import Problem

KEPT = Path(__file__).parents[1] / "docs" / "data" / "learner_intervals.json"
ROWS, LEVEL, SEED = 10_000, 0.95, 618_733
PROBLEMS = {
    "random walk": lambda: domains.random_walk("dependent"),
    "Collision": lambda: domains.collision(seed=21),
    "garnet": lambda: domains.garnet(seed=21, peak=1),
    "Boyan chain": domains.boyan_chain,
    "Four Rooms": lambda: domains.four_rooms(0, "low"),
}
LEARNERS = {
    "ARCTD()": o2td.ARCTD(replicates=64),
    "ARCTD(trace=0.5)": o2td.ARCTD(trace=0.5, replicates=64),
}


def coverage(problem: Problem, learner: Learner, streams: int) -> float:
    """The share of values that intervals of `LEVEL` cover, states weighted by their visits."""
    limit = exact.fixed_point(problem, learner.clone(replicates=0)).theta
    values = problem.features @ limit
    hits = np.zeros(len(values))
    for stream in range(streams):
        rows = problem.sample(ROWS, seed=(SEED, stream))
        found = learner.clone().partial_fit(rows).predict(problem.features, interval=LEVEL)
        hits += (found.low <= values) & (values <= found.high)
    return float(np.average(hits / streams, weights=problem.visits))


def take(streams: int) -> None:
    """Coverage by problem and learner, stored as it comes; what the file has is not measured again."""
    found: dict[str, Any] = {"streams": streams, "rows": ROWS, "level": LEVEL, "seed": SEED}
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    same = all(kept.get(name) == value for name, value in found.items())
    cells = found["coverage"] = kept["coverage"] if same else {}
    for name, make in PROBLEMS.items():
        for label, learner in LEARNERS.items():
            row = cells.setdefault(name, {})
            if label not in row:
                row[label] = round(coverage(make(), learner, streams), 3)
                text = json.dumps(found, indent=1, ensure_ascii=False)
                KEPT.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    take(int(sys.argv[1]) if len(sys.argv) > 1 else 200)

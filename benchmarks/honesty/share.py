"""What the tests of a log add to the processor time of `evaluate`, kept in `docs/data/honesty.json`.

python -m benchmarks.honesty.share
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from benchmarks.honesty.cells import CELLS
from benchmarks.honesty.record import KEPT
from o2td import evaluation
from o2td.evaluation import study
from o2td.registry import LOG_TESTS

REPEATED = 3
NAMES = (
    *("random table", "graph T=16 0.2->0.8 n=256", "graph T=16 0.2->0.8 noisy n=1024"),
    *("gridworld 1.0->0.1 n=256, terminated", "gridworld 1.0->0.6 n=256, to the goal"),
    *("slippery gridworld 1.0->0.1 n=256, terminated", "ModelWin n=256, terminated"),
    *(f"toy mountain car 0.45->0.45 n=128, {clock}" for clock in ("terminated", "truncated")),
    *("defect: states that look alike", "defect: steps out of order"),
    "graph-POMDP T=16 H=6 0.2->0.8 sparse n=1024",
)


class Watch:
    """Processor time spent in the functions that it watches."""

    def __init__(self) -> None:
        self.spent, self.inside = 0.0, False

    def on(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, watched."""

        def watched(*arguments: Any) -> Any:
            if self.inside:
                return function(*arguments)
            self.inside, begun = True, time.process_time()
            try:
                return function(*arguments)
            finally:
                self.spent += time.process_time() - begun
                self.inside = False

        return watched


def share(name: str, watch: Watch) -> float:
    """Time of the tests over that of everything else, the median of some runs."""
    log, discount, _ = CELLS[name].log("settle", 1)
    evaluation.evaluate(log, discount=discount)
    found = []
    for _ in range(REPEATED):
        watch.spent, begun = 0.0, time.process_time()
        evaluation.evaluate(log, discount=discount)
        found.append(watch.spent / (time.process_time() - begun - watch.spent))
    return sorted(found)[REPEATED // 2]


def main() -> None:
    watch = Watch()
    for test in (LOG_TESTS[name] for name in LOG_TESTS):
        test.find = watch.on(test.find)
    for asked in ("own_dependence", "clock_step"):  # estimators ask for these first
        setattr(study, asked, watch.on(getattr(study, asked)))
    kept = json.loads(KEPT.read_text("utf-8"))
    kept["time"] = {name: round(share(name, watch), 3) for name in NAMES}
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    print(kept["time"])


if __name__ == "__main__":
    main()

"""Processor time of `evaluate` with default options, side by side with another version.

    python -m benchmarks.evaluate_speed --before ../old/src

Cart-pole (300 episodes), 10,000 rows with 6 to 40 columns of observations, a million rows of 6. Each
is evaluated in a process of its own, with one thread for linear algebra; the first evaluation of a
small log compiles what is compiled and is not counted. Prints one JSON object a line.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

COLUMNS = (6, 8, 10, 11, 12, 14, 16, 20, 40)
LIMITS = {"cart-pole": 10.0, "a million rows": 25.0}  # seconds; others 5
ROOT = Path(__file__).resolve().parents[1]


def drifting(rows: int, columns: int, seed: int = 0, length: int = 50) -> pd.DataFrame:
    """Points that drift in `columns` dimensions, pushed along the first; logistic policies."""
    rng = np.random.default_rng([seed, columns])
    episodes = rows // length
    x = rng.normal(size=(episodes, columns))
    parts = []
    for t in range(length):
        right = 1.0 / (1.0 + np.exp(-0.5 * x[:, 0]))
        action = (rng.random(episodes) < right).astype(int)
        after = 0.9 * x + 0.2 * rng.normal(size=x.shape)
        after[:, 0] += 0.3 * (2 * action - 1)
        wanted = 1.0 / (1.0 + np.exp(-0.8 * x[:, 0]))
        part: dict[str, Any] = {"episode": np.arange(episodes), "step": t, "action": action}
        part |= {f"obs_{k}": x[:, k] for k in range(columns)}
        part |= {f"next_obs_{k}": after[:, k] for k in range(columns)}
        part["reward"] = x[:, 0] + 0.5 * x[:, 1] ** 2 + 0.1 * rng.normal(size=episodes)
        part |= {"terminated": False, "truncated": t == length - 1}
        part["behavior_prob"] = np.where(action == 1, right, 1.0 - right)
        part["target_prob"] = np.where(action == 1, wanted, 1.0 - wanted)
        parts.append(pd.DataFrame(part))
        x = after
    return pd.concat(parts).sort_values(["episode", "step"], ignore_index=True)


def log_of(case: str) -> tuple[pd.DataFrame, float]:
    if case == "cart-pole":
        from benchmarks.coverage_common import cart_pole

        return cart_pole(300, [0, 53]), 0.99
    if case == "a million rows":
        return drifting(1_000_000, 6), 0.95
    return drifting(10_000, int(case.split()[-2])), 0.95


CASES = ("cart-pole", *(f"10,000 rows, {k} columns" for k in COLUMNS), "a million rows")


def measure(case: str) -> dict[str, Any]:
    """In this process: seconds of processor time, memory, and the answer."""
    from o2td import evaluation

    evaluation.evaluate(drifting(1000, 2), 0.95)
    log, discount = log_of(case)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    answer = evaluation.evaluate(log, discount)
    best = answer.recommended
    return {
        "seconds": round(time.process_time() - begun, 2),
        "megabytes more": round(
            (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        ),
        "answer": [best.method, best.value, best.low, best.high, best.approximation_error],
        "verdict": best.verdict,
    }


def measured(case: str, source: Path) -> dict[str, Any]:
    """The same in a process of its own, with the package in `source`."""
    one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    path = os.pathsep.join([str(source), str(ROOT)])
    given = [sys.executable, "-m", "benchmarks.evaluate_speed", "--one", case]
    try:
        done = subprocess.run(
            given,
            env={**os.environ, **one, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
            timeout=900,
        )
    except subprocess.TimeoutExpired:
        return {"seconds": None}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="src folder of another version")
    parser.add_argument("--one", choices=CASES, help="one case, in this process")
    parser.add_argument("cases", nargs="*", default=CASES)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one)))
        return
    for case in given.cases:
        row = {"case": case, "limit": LIMITS.get(case, 5.0), "now": measured(case, ROOT / "src")}
        if given.before:
            row["before"] = measured(case, given.before)
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()

"""Processor time of `evaluate` with default options, side by side with another version.

    python -m benchmarks.evaluate_speed --before ../old/src

Cart-pole (300 episodes), 10,000 rows with 6 to 40 columns of observations, a million rows of 6. Each
is evaluated in a process of its own, with one thread for linear algebra; the first evaluation of a
small log triggers compilation and is not counted. Prints one JSON object per line.

    python -m benchmarks.evaluate_speed --memory

Peak memory of evaluating a parquet file of 1, 2 and 4 million rows, and how many cores it kept busy:
processor time over wall time, with the default threads.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

COLUMNS = (6, 8, 10, 11, 12, 14, 16, 20, 40)
MILLIONS = (1, 2, 4)
LIMITS = {"cart-pole": 10.0, "a million rows": 25.0}  # seconds; 5 for others
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
    """Measure in this process: seconds of processor time, memory, and the answer."""
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


def write_file(file: Path, rows: int) -> None:
    """Write a parquet file of points that drift, 250,000 rows at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    size, writer = 250_000, None
    for k in range(rows // size):
        part = drifting(size, 6, seed=k)
        part["episode"] += k * (size // 50)
        table = pa.Table.from_pandas(part, preserve_index=False)
        writer = writer or pq.ParquetWriter(file, table.schema, write_page_checksum=True)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def memory(file: Path) -> dict[str, Any]:
    """Measure in this process: peak memory of evaluating a file, and processor time over wall time."""
    from o2td import evaluation

    cpu, clock = time.process_time(), time.perf_counter()
    answer = evaluation.evaluate(file, 0.95)
    used = time.process_time() - cpu
    return {
        "rows": answer.diagnostics["rows"],
        "megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "seconds": round(used, 1),
        "cores": round(used / (time.perf_counter() - clock), 2),
    }


def memories() -> None:
    """Print the peaks for growing files, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for millions in MILLIONS:
            file = Path(folder) / "log.parquet"
            for part in (["--write", str(millions * 1_000_000)], ["--file"]):
                done = _run([*part, str(file)], ROOT / "src")
            print(done.stdout.splitlines()[-1], flush=True)


def _run(options: list[str], source: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run this module in a process of its own, with the package in `source`."""
    path = os.pathsep.join([str(source), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.evaluate_speed", *options],
        env={**os.environ, **environment, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=3600,
    )


def measured(case: str, source: Path) -> dict[str, Any]:
    """`measure` in a process of its own, with the package in `source`."""
    one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    try:
        done = _run(["--one", case], source, **one)
    except subprocess.TimeoutExpired:
        return {"seconds": None}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="src folder of another version")
    parser.add_argument("--one", choices=CASES, help="one case, in this process")
    parser.add_argument("--memory", action="store_true", help="peaks of growing files instead")
    parser.add_argument("--write", nargs=2, help="rows and the file to write them to")
    parser.add_argument("--file", type=Path, help="the memory of this file, in this process")
    parser.add_argument("cases", nargs="*", default=CASES)
    given = parser.parse_args()
    if given.memory:
        memories()
        return
    if given.write:
        write_file(Path(given.write[1]), int(given.write[0]))
        return
    if given.file:
        print(json.dumps(memory(given.file)))
        return
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

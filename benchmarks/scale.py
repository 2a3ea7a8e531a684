"""How large can inputs be? Time and memory of large ones, each beside a bare baseline.

    python -m benchmarks.scale --folder build/scale                       all of it
    python -m benchmarks.scale --folder build/scale --rows 1e6 --only scan,evaluate

Each part runs in a process of its own, so that memory peaks do not mix, with default options and as
many threads as the machine has:

- `scan`, `evaluate`: a bare scan of a log with checksums, and the whole of `o2td evaluate` on it,
- `few`, `files`: the same million rows in 8 files and in 500, both given as a folder,
- `states`: a log of walks over a million states, each step to a neighbour,
- `jumps-10000`, `-100000`, `-1000000`: logs over so many states, each step to any other,
- `table`: `TD` and sparse `LSTD` on a table of a million states, beside `numpy.bincount` on them,
- `hundred`, `lanes`: 100 and 5,000 learners in one sweep,
- `hashed`: 16 tilings hashed into 100,000 columns: features, `TD` and `TDC`, beside features alone,
- `sent`: what each pass of an evaluation on a cluster sends to a worker, and what a file sends back.

A line of JSON ends the output; `docs/_tools` writes the figures of docs/data/scale.json into pages.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.evaluate_scale import make_logs, scan

ROWS = 20_000_000
MILLION = 1_000_000
OBSERVATIONS = 4
COLUMNS = 100_000
Work = Callable[[], dict[str, Any]]


def log_of(folder: Path, rows: int, files: int) -> list[Path]:
    return make_logs(folder / f"{rows}-{files}", rows, files, OBSERVATIONS)


def answered(*given: str) -> dict[str, Any]:
    """Run the command line on files and return only the verdict."""
    import contextlib
    import io

    from o2td.cli.main import main

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["evaluate", *given, "--discount", "0.99", "--json"]) == 0
    return {"verdict": json.loads(out.getvalue())["verdict"]}


def bare(folder: Path, rows: int) -> Work:
    files = log_of(folder, rows, 8)
    return lambda: scan(files, rows) or {}


def evaluate(folder: Path, rows: int) -> Work:
    files = log_of(folder, rows, 8)
    return lambda: answered(str(files[0].parent))


def few(folder: Path, rows: int) -> Work:
    return evaluate(folder, MILLION)


def many(folder: Path, rows: int) -> Work:
    files = log_of(folder, MILLION, 500)
    return lambda: answered(str(files[0].parent))


def states_of(count: int, anywhere: bool = False) -> Callable[[Path, int], Work]:
    """A log with two rows per state, of walks to neighbours or of jumps anywhere."""

    def make(folder: Path, rows: int) -> Work:
        import numpy as np
        import pyarrow as pa
        import pyarrow.parquet as pq

        file = folder / f"states-{count}-{'jumps' if anywhere else 'walks'}.parquet"
        if not file.exists():
            rng, n = np.random.default_rng(0), 2 * count
            step = np.arange(n) % 20
            moves = np.where(step == 0, 0, rng.choice([-1, 1], n)).reshape(-1, 20).cumsum(axis=1)
            state = (rng.integers(0, count, n // 20)[:, None] + moves).ravel() % count
            if anywhere:
                state = rng.integers(0, count, n)
            table = pa.table(
                {
                    "episode": np.arange(n) // 20, "step": step, "state": state,
                    "action": rng.integers(0, 2, n), "reward": (state % 7) / 7.0,
                    "terminated": step == 19, "rho": rng.choice([0.8, 1.2], n),
                }
            )  # fmt: skip
            pq.write_table(table, file, write_page_checksum=True)
        return lambda: answered(str(file))

    return make


def table(folder: Path, rows: int) -> Work:
    import numpy as np
    from scipy.sparse import identity

    from o2td import LSTD, TD, Transitions

    rng, n = np.random.default_rng(0), 2 * MILLION
    state = rng.integers(0, MILLION, n)
    batch = Transitions.from_table(
        identity(MILLION, format="csr"), state, np.ones(n), (state + 1) % MILLION, 0.9
    )

    def work() -> dict[str, Any]:
        found = {}
        for name, one in (("TD", lambda: TD(step_size=0.1).partial_fit(batch)),
                          ("LSTD", lambda: LSTD().fit(batch)),
                          ("bincount", lambda: np.bincount(state, minlength=MILLION))):  # fmt: skip
            began = time.process_time()
            one()
            found[name] = round(time.process_time() - began, 2)
        return found

    return work


def sweep_of(count: int) -> Callable[[Path, int], Work]:
    def make(folder: Path, rows: int) -> Work:
        import numpy as np

        import o2td

        problem = o2td.domains.random_walk()
        batch = problem.sample(20_000, seed=0)
        metrics = {"rmse": o2td.metrics.rmse(problem)}
        lanes = [o2td.TD(step_size=a) for a in np.geomspace(1e-4, 0.1, count)]
        o2td.sweep(lanes[:32], batch, metrics, every=1000)

        def work() -> dict[str, Any]:
            result = o2td.sweep(lanes, batch, metrics, every=1000)
            assert result.values["rmse"].shape == (count, 20)
            return {"lanes": count}

        return work

    return make


def hashed(folder: Path, rows: int) -> Work:
    import numpy as np

    from o2td import TD, TDC, Transitions, features

    rng, n = np.random.default_rng(0), 200_000
    x = rng.uniform(size=(n + 1, OBSERVATIONS))
    tiles = features.parse(f"tiles:16x10,hashed={COLUMNS}").fit(x)

    def work() -> dict[str, Any]:
        found: dict[str, Any] = {}
        began = time.process_time()
        phi = tiles.transform(x)
        found["features"] = round(time.process_time() - began, 2)
        batch = Transitions(phi[:-1], np.ones(n), phi[1:], 0.9)
        for kind in (TD, TDC):
            began = time.process_time()
            kind(step_size=0.01).partial_fit(batch)
            found[kind.__name__] = round(time.process_time() - began, 2)
        return found

    return work


def sent(folder: Path, rows: int) -> Work:
    """What a pass on a cluster sends: bytes of statistics to a worker, and back from one of ten files.

    With 2,000 and with 20,000 rows per file, to show what grows with the rows.
    """
    from copy import deepcopy
    from pickle import dumps  # what Dask sends; nothing is unpickled

    from o2td.evaluation.distributed import _count, _pass
    from o2td.evaluation.episodes import Log
    from o2td.evaluation.evaluate import evaluate as answer_of
    from o2td.sources import open_logs
    from o2td.sources.stream import Tally

    class Counted(Log):
        there = back = 0

        def collect(self, statistic: Any) -> Any:
            self.passes += 1
            empty, tally = deepcopy(statistic), Tally()
            self.there += len(dumps(empty))
            parts = self.source.partitions()
            for one in parts:
                part, counted = _pass(one, empty)
                self.back += len(dumps(part)) // len(parts)
                statistic.merge(part)
                _count(tally, counted)
            self.source._tally = tally
            return statistic

    def work() -> dict[str, Any]:
        found: dict[str, Any] = {}
        for count in (20_000, 200_000):
            files = log_of(folder, count, 10)
            log = Counted(open_logs([str(one) for one in files], discount=0.99))
            answer_of(log, discount=0.99)
            passed = {"passes": log.passes, "to_worker": log.there, "from_part": log.back}
            found[str(count // 10)] = passed
        return found

    return work


PARTS: dict[str, Callable[[Path, int], Work]] = {
    "scan": bare,
    "evaluate": evaluate,
    "few": few,
    "files": many,
    "states": states_of(MILLION),
    **{f"jumps-{count}": states_of(count, anywhere=True) for count in (10_000, 100_000, MILLION)},
    "table": table,
    "hundred": sweep_of(100),
    "lanes": sweep_of(5_000),
    "hashed": hashed,
    "sent": sent,
}


def measure(part: str, folder: Path, rows: int) -> dict[str, Any]:
    """Processor and wall time of one part in seconds, and the peak memory of this process."""
    work = PARTS[part](folder, rows)
    cpu, clock = time.process_time(), time.perf_counter()
    found = work()
    return {
        "cpu": round(time.process_time() - cpu, 2),
        "seconds": round(time.perf_counter() - clock, 2),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        **found,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=float, default=ROWS)
    parser.add_argument("--folder", type=Path, default=Path("build/scale"))
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--one", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    rows = int(options.rows)
    if options.one:
        print(json.dumps(measure(options.one, options.folder, rows)))
        return 0
    for count in (rows, MILLION):
        log_of(options.folder, count, 8)
    log_of(options.folder, MILLION, 500)
    found: dict[str, Any] = {"rows": rows, "cores": os.cpu_count()}
    kept = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
    command = [sys.executable, "-m", "benchmarks.scale", "--folder", str(options.folder)]
    for part in options.only.split(","):
        done = subprocess.run(
            [*command, "--rows", str(rows), "--one", part],
            stdout=subprocess.PIPE, text=True, check=False, env=kept,
        )  # fmt: skip
        said = done.stdout.splitlines()
        found[part] = json.loads(said[-1]) if done.returncode == 0 else {"code": done.returncode}
        print(f"{part:9s} {json.dumps(found[part])}", flush=True)
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""LSTD on logs of many rows: memory, and time against the sum of its parts.

    python -m benchmarks.evaluate_scale --rows 20000000 --folder /tmp/logs

Makes parquet logs with 16 observation columns and page checksums (kept in the folder), then
measures, each in a process of its own so that peaks do not mix:

- `scan`: a bare pyarrow scan with verified checksums, nothing done with the rows,
- `features`: the feature map alone on rows in memory, as many rows as the log has,
- `product`: the matrix product alone, `Z^T [D, r]` in blocks, as many rows,
- `lstd`: log to theta, all of it,
- `evaluate`: the command `o2td evaluate --methods lstd`, intervals and diagnostics included,
- `one` and `lanes`: one LSTD estimate, and the same with 200 bootstrap lanes in the same pass, both
  on episodes of 20 rows in memory, the fewest that the lanes are meant for.

Processor times are compared, since a busy machine affects them least. `evaluate` peaked at 677 MB with
5 million rows and at 675 MB with 20 million, on a machine with two cores (653 and 687 MB in an earlier
run: which buffers are freed when depends on threads).
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

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

FEATURES = "fourier:4,coupled=false"  # 1 + 16 * 4 = 65
OBSERVATIONS = 16
STEPS = 100  # per episode
FILES = 8
BLOCK = 65_536
LANES = 200
SHORT = 20  # rows per episode where lanes are measured
PARTS = ("scan", "features", "product", "lstd", "evaluate", "one", "lanes")


def make_logs(
    folder: Path, rows: int, count: int = FILES, observations: int = OBSERVATIONS
) -> list[Path]:
    """Write episodes of a noisy linear system, in files of equal size, unless they exist."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"part-{k}.parquet" for k in range(count)]
    each = rows // count // STEPS
    for k, file in enumerate(files):
        if file.exists():
            continue
        rng = np.random.default_rng([k, 5])
        writer = None
        done = 0
        while done < each:
            some = min(2_500, each - done)  # episodes, 250,000 rows
            x = np.empty((some, STEPS, observations))
            x[:, 0] = rng.normal(size=(some, observations))
            action = rng.integers(0, 3, (some, STEPS))
            for t in range(1, STEPS):
                push = 0.2 * (action[:, t - 1, None] - 1)
                x[:, t] = 0.9 * x[:, t - 1] + push + 0.3 * rng.normal(size=(some, observations))
            episode = np.repeat(k * each + done + np.arange(some), STEPS)
            columns: dict[str, Any] = {"episode": episode, "step": np.tile(np.arange(STEPS), some)}
            flat = x.reshape(-1, observations)
            columns |= {f"obs_{j}": flat[:, j] for j in range(observations)}
            columns["action"] = action.ravel()
            columns["reward"] = flat[:, :4].sum(axis=1) * 0.25
            columns["terminated"] = columns["step"] == STEPS - 1
            columns["truncated"] = np.zeros(len(flat), dtype=bool)
            columns["behavior_prob"] = np.full(len(flat), 1 / 3)
            columns["target_prob"] = np.array([0.3, 0.3, 0.4])[columns["action"]]
            table = pa.table(columns)
            if writer is None:
                temporary = file.with_suffix(".making")
                writer = pq.ParquetWriter(
                    temporary, table.schema, compression="zstd", write_page_checksum=True
                )
            writer.write_table(table)
            done += some
        if writer is not None:
            writer.close()
            temporary.replace(file)
    return files


def scan(files: list[Path], rows: int) -> None:
    import pyarrow.parquet as pq

    for file in files:
        parquet = pq.ParquetFile(file, page_checksum_verification=True, pre_buffer=False)
        for _ in parquet.iter_batches(BLOCK):
            pass


def _prepared(files: list[Path]) -> tuple[Any, Any, Any]:
    from o2td import features, sources

    source = sources.open_logs(files, discount=0.99)
    chunk = next(source.chunks())
    phi = features.parse(FEATURES)
    return source, chunk, phi.fit(chunk.observation)


def feature_map(files: list[Path], rows: int) -> Callable[[], None]:
    _, chunk, phi = _prepared(files)
    phi.transform(chunk.observation)

    def work() -> None:
        for _ in range(rows // len(chunk)):
            phi.transform(chunk.observation)

    return work


def product(files: list[Path], rows: int) -> Callable[[], None]:
    import numpy as np

    _, chunk, phi = _prepared(files)
    size = 2048  # the block that LSTD itself multiplies
    z = phi.transform(chunk.observation)[:size]
    right = np.ascontiguousarray(np.column_stack([z, chunk.reward[:size]]))
    sums = np.zeros((z.shape[1], z.shape[1] + 1))

    def work() -> None:
        for _ in range(rows // size):
            np.add(sums, z.T @ right, out=sums)

    return work


def lstd(files: list[Path], rows: int) -> Callable[[], None]:
    from o2td import LSTD

    source, chunk, phi = _prepared(files)
    LSTD().update(source.transitions(phi, chunk)).solve()

    def work() -> None:
        solver = LSTD()
        for batch in source.batches(phi):
            solver.update(batch)
        assert solver.rows > 0.98 * rows
        assert abs(solver.solve().theta).max() > 0

    return work


def evaluate(files: list[Path], rows: int) -> Callable[[], None]:
    from o2td.cli.main import main

    options = ["--discount", "0.99", "--features", FEATURES, "--methods", "lstd", "--json"]

    def work() -> None:
        assert main(["evaluate", *map(str, files), *options]) == 0

    return work


def one(files: list[Path], rows: int, lanes: int = 0) -> Callable[[], None]:
    """Features, sums and solution of `rows` rows, chunk by chunk, with or without lanes."""
    import numpy as np

    from o2td.evaluation.basis import States
    from o2td.evaluation.episodes import Episodes
    from o2td.evaluation.fitting import Fitting
    from o2td.evaluation.systems import FeatureSystem

    _, chunk, phi = _prepared(files)
    chunk = chunk.take(slice(0, len(chunk) // SHORT * SHORT))
    first = np.arange(0, len(chunk) + 1, SHORT)
    opens = np.ones(len(first) - 1, dtype=bool)

    def work(passes: int = max(1, rows // len(chunk))) -> None:
        system = FeatureSystem(States(phi), lanes=lanes)
        fitting = Fitting(lanes, 0)
        fitting.want(system)
        for k in range(passes):
            key = np.arange(len(opens), dtype=np.uint64) + np.uint64(k * len(opens))
            fitting.add(Episodes(chunk, first, opens, key))
        assert np.isfinite(system.solve().theta).all()
        if lanes:
            values = system.lane_values()
            assert values is not None
            assert np.ptp(values) > 0.0

    work(1)
    return work


def lanes(files: list[Path], rows: int) -> Callable[[], None]:
    return one(files, rows, LANES)


MAKERS: dict[str, Callable[[list[Path], int], Any]] = {
    "features": feature_map,
    "product": product,
    "lstd": lstd,
    "evaluate": evaluate,
    "one": one,
    "lanes": lanes,
}


def measure(part: str, files: list[Path], rows: int) -> dict[str, float]:
    """Processor and wall time of one part in seconds, and the peak memory of this process."""
    work = (lambda: scan(files, rows)) if part == "scan" else MAKERS[part](files, rows)
    cpu, clock = time.process_time(), time.perf_counter()
    work()
    return {
        "cpu": time.process_time() - cpu,
        "seconds": time.perf_counter() - clock,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def report(rows: int, folder: Path, parts: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in parts:
        command = [sys.executable, __file__, "--rows", str(rows), "--folder", str(folder)]
        done = subprocess.run([*command, "--one", part], capture_output=True, text=True, check=True)
        found[part] = json.loads(done.stdout.splitlines()[-1])
        print(
            "{:10s} cpu {cpu:7.1f} s  clock {seconds:7.1f} s  peak {peak_mb:6.0f} MB".format(
                part, **found[part]
            ),
            flush=True,
        )
    if {"scan", "features", "product", "lstd"} <= set(found):
        total = sum(found[part]["cpu"] for part in ("scan", "features", "product"))
        print(f"lstd / (scan + features + product) = {found['lstd']['cpu'] / total:.2f}")
        found["ratio"] = found["lstd"]["cpu"] / total
    if {"one", "lanes"} <= set(found):
        found["lanes_ratio"] = found["lanes"]["cpu"] / found["one"]["cpu"]
        print(f"{LANES} lanes / one estimate = {found['lanes_ratio']:.1f}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--parts", default="scan,features,product,lstd,evaluate,one,lanes")
    parser.add_argument("--one", choices=PARTS)
    given = parser.parse_args()
    files = make_logs(given.folder / str(given.rows), given.rows)
    if given.one:
        print(json.dumps(measure(given.one, files, given.rows)))
    else:
        print(json.dumps(report(given.rows, given.folder, given.parts.split(","))))


if __name__ == "__main__":
    main()

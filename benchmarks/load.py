"""Stream 100 million transitions through TD and LSTD with flat memory, and resume halfway.

    make load                              all of it, about ten minutes on two cores
    python -m benchmarks.load --rows 1e7   a tenth

Rows are made as they are needed (d = 32 dense features of an off-policy random walk over 1,000
states), chunk by chunk, so nothing but the learner can grow. Halfway both are saved; at the end two
others, loaded from those files, have learned the second half: every number must be identical.
Memory is flat if the largest resident set after a tenth of the rows is within 5 % of the last.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import o2td
from o2td import Transitions

D, STATES, CHUNK = 32, 1000, 1_000_000
FLAT = 0.05


def resident() -> int:
    """Bytes of memory that this process holds at present."""
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * 4096


def stream(rows: int, first: int = 0) -> Iterator[Transitions]:
    """Chunks `first`, `first + 1`, ... of a stream that is the same for every caller."""
    table = np.random.default_rng(0).normal(size=(STATES, D)) / np.sqrt(D)
    for chunk in range(first, first + rows // CHUNK):
        rng = np.random.default_rng([1, chunk])
        state = rng.integers(STATES, size=CHUNK)
        step = np.where(rng.random(CHUNK) < 0.5, 1, -1)
        after = np.clip(state + step, 0, STATES - 1)
        rho = np.where(step > 0, 1.2, 0.8)
        discount = np.where(rng.random(CHUNK) < 0.001, 0.0, 0.99)
        # Dense rows, so that features are streamed as from a file, not looked up in a table.
        yield Transitions(
            table[state], step * 1.0, table[after], discount, rho=rho, start=np.ones(CHUNK, bool)
        )


def learn(models: list[Any], chunks: Iterator[Transitions], seen: list[int]) -> None:
    for number, chunk in enumerate(chunks):
        models[0].partial_fit(chunk)
        models[1].update(chunk)
        seen.append(resident())
        if sys.stderr.isatty():
            print(f"\r{number + 1} million rows, {seen[-1] >> 20} MB", end="", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e8)
    rows = int(parser.parse_args().rows) // (2 * CHUNK) * 2 * CHUNK
    began = time.perf_counter()
    memory: list[int] = []
    models = [o2td.TD(step_size=0.01, trace=0.5), o2td.LSTD()]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{k}.npz" for k in range(2)]
        learn(models, stream(rows // 2), memory)
        for model, file in zip(models, files, strict=True):
            model.save(file)
        learn(models, stream(rows // 2, rows // 2 // CHUNK), memory)
        seconds = time.perf_counter() - began
        resumed = [o2td.TD.load(files[0]), o2td.LSTD.load(files[1])]
    learn(resumed, stream(rows // 2, rows // 2 // CHUNK), memory)
    same = all(a.theta.tobytes() == b.theta.tobytes() for a, b in zip(models, resumed, strict=True))
    early = max(memory[: max(1, len(memory) // 10)])
    growth = max(memory) / early - 1.0
    report = {
        "rows": rows,
        "d": D,
        "seconds": round(seconds, 1),
        "rows_per_second": round(rows / seconds),
        "memory_mb": round(max(memory) / 1e6, 1),
        "memory_growth": round(growth, 4),
        "resumed_identically": same,
        "finite": bool(np.isfinite(models[0].theta).all() and np.isfinite(models[1].theta).all()),
    }
    print(json.dumps(report, indent=2))
    return 0 if same and growth < FLAT and report["finite"] else 1


if __name__ == "__main__":
    sys.exit(main())

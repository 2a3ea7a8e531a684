"""Measurements without C: growth in d, batch sums, sampling, metrics, start-up, an experiment."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.speed import data
from benchmarks.speed.record import Row
from benchmarks.speed.timing import interleave
from benchmarks.speed.updates import KNOWN, METHODS, Size
from o2td.domains import random_mdp
from o2td.errors import O2TDError
from o2td.learners import TDC, Learner, sweep
from o2td.metrics import rmse
from o2td.registry import LEARNERS
from o2td.solvers import LSTD

__all__ = [
    "cold_start",
    "experiment",
    "growth",
    "lstd",
    "metrics_share",
    "others",
    "sampling",
]

_FIRST_UPDATE = """
import time
import numpy as np, o2td
batch = o2td.Transitions(np.eye(8), np.ones(8), np.eye(8)[::-1].copy(), discount=0.9)
o2td.TD(step_size=0.1).partial_fit(batch)
print(time.time())
"""


def growth(size: Size) -> Iterator[Row]:
    """The exponent p of `time per step ~ d^p` from d = 256 to 65,536, on streamed rows."""
    widths = [256, 1024, 4096, 16_384, 65_536]
    batches = [data.dense(size.rows(d, least=16), d) for d in widths]
    for name, (maker, alpha) in METHODS.items():
        turns = {str(b.d): _fitting(maker(step_size=alpha), b) for b in batches}
        times = interleave(turns, max(3, size.repeats // 4))
        steps = [times[str(b.d)].least / b.n for b in batches]
        exponent = float(np.polyfit(np.log(widths), np.log(steps), 1)[0])
        row = Row("exponent", name, "dense", widths[-1], 1, ns_per_step=1e9 * steps[-1])
        yield row.judged(abs(exponent - 1.0), f"off 1 (fitted {exponent:.3f})", "<=", 0.1)


def lstd(size: Size, d: int = 201) -> Iterator[Row]:
    """LSTD's sums against one matrix product of the same shape: the share of its rate."""
    batch = data.dense(max(500, int(size.share * 10_000)), d)
    left, right = (
        batch.phi,
        np.ascontiguousarray(np.hstack([batch.next_phi, batch.reward[:, None]])),
    )
    out = np.empty((d, d + 1))
    turns: dict[str, Callable[[], Any]] = {
        "ours": lambda: LSTD().update(batch),
        "product": lambda: np.matmul(left.T, right, out=out),
    }
    times = interleave(turns, max(3, size.repeats // 5))
    step = times["ours"].least / batch.n
    row = Row("accumulation", "LSTD", "dense", d, 1, 1e9 * step)
    yield row.judged(times["product"].least / times["ours"].least, "of the GEMM rate", ">=", 0.5)


def sampling(size: Size) -> Iterator[Row]:
    """Drawing the 400-state random MDP against one pass of TD over what was drawn."""
    problem = random_mdp()
    n = max(1000, int(size.share * 20_000))
    batch = problem.sample(n, seed=0)
    learner = METHODS["TD"][0](step_size=0.001)
    turns: dict[str, Callable[[], Any]] = {
        "sample": lambda: problem.sample(n, seed=0),
        "pass": _fitting(learner, batch),
    }
    times = interleave(turns, max(3, size.repeats // 2))
    ratio = times["sample"].least / times["pass"].least
    row = Row("sampling", "TD", "table", problem.d, 1, 1e9 * times["sample"].least / n)
    yield row.judged(ratio, "of a TD pass", "<=", 1.0)


def metrics_share(size: Size, every: int = 100) -> Iterator[Row]:
    """The share of a sweep's time that an error recorded every 100 steps takes.

    Errors are computed in a thread of their own, so there are two answers: the share of wall time,
    which an idle second core reduces, and the share of processor time.
    """
    problem = random_mdp()
    metrics = {"rmse": rmse(problem)}
    clocks = {"metrics": time.perf_counter, "metrics cpu": time.process_time}
    for count, rows in ((1, 200_000), (64, 20_000)):
        batch = problem.sample(max(1000, int(size.share * rows)), seed=0)
        learners = [METHODS["TD"][0](step_size=a) for a in np.geomspace(1e-4, 1e-3, count)]
        turns: dict[str, Callable[[], Any]] = {
            "with": partial(sweep, learners, batch, metrics, every),
            "without": partial(sweep, learners, batch, None, every),
        }
        for name, clock in clocks.items():
            times = interleave(turns, max(3, size.repeats // 4), clock)
            share = 1.0 - times["without"].over(times["with"])
            step = times["with"].least / (batch.n * count)
            row = Row(name, "TD", "table", problem.d, count, 1e9 * step)
            unit = f"of the time, every {every}"
            if name == "metrics":
                yield row.judged(share, unit, "<=", 0.1)
            else:
                yield replace(row, value=share, unit=f"of the processor's, every {every}")


def experiment(size: Size, runs: int = 20, steps: int = 5000) -> Iterator[Row]:
    """Five methods on the random MDP: 20 runs of 5,000 steps, an error every 80, in one process."""
    problem = random_mdp()
    metrics = {"rmse": rmse(problem)}
    learners: list[Learner] = [maker(step_size=0.05 * a) for maker, a in METHODS.values()]
    learners.append(TDC(step_size=0.005))
    runs = max(2, int(size.share * runs))

    def whole() -> None:
        for run in range(runs):
            sweep(learners, problem.sample(steps, seed=(0, run)), metrics, every=80)

    times = interleave({"ours": whole}, max(2, size.repeats // 20))
    seconds = times["ours"].least * (20 / runs)
    step = seconds / (20 * steps * len(learners))
    row = Row("experiment", "five methods", "table", problem.d, len(learners), 1e9 * step)
    yield row.judged(seconds, "s", "<=", 1.0)


def cold_start(size: Size) -> Iterator[Row]:
    """Seconds from the start of a process with a warm compilation cache to its first update."""
    seconds, worked = [], []
    for _ in range(max(2, size.repeats // 20) + 1):
        begin, busy = time.time(), sum(os.times()[2:4])
        done = subprocess.run([sys.executable, "-c", _FIRST_UPDATE], capture_output=True, text=True)
        if done.returncode != 0:
            raise O2TDError(f"a fresh process fails: {done.stderr.strip().splitlines()[-1]}")
        seconds.append(float(done.stdout) - begin)
        worked.append(sum(os.times()[2:4]) - busy)
    row = Row("cold start", "TD", "dense", 8, 1)
    yield row.judged(min(seconds[1:]), f"s ({min(worked[1:]):.2f} s of processor)", "<=", 1.5)


def others(size: Size) -> Iterator[Row]:
    """Every other registered learner, including other packages', on the random MDP: for `--against`."""
    batch = random_mdp().sample(max(500, int(size.share * 5000)), seed=0)
    for name in LEARNERS.names():
        if name in KNOWN:
            continue
        learner: Any = LEARNERS[name]()
        times = interleave({"ours": _fitting(learner, batch)}, max(3, size.repeats // 4))["ours"]
        steps = 1e9 / batch.n
        yield Row(
            "update",
            name,
            "table",
            batch.d,
            1,
            ns_per_step=steps * times.least,
            median_ns_per_step=steps * times.median,
        )


def _fitting(learner: Learner, batch: Any) -> Callable[[], Any]:
    return lambda: learner.partial_fit(batch)

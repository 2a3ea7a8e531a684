"""How fast the compiled updates are, against the same ones in C and as a NumPy loop.

All competitors are measured in one run and take turns, so that a busy machine slows all alike; the
ratio of the fastest repetitions counts. Before anything is timed, all must give the same theta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.speed import figures, updates
from benchmarks.speed.native import Native, compiler, load
from benchmarks.speed.record import Change, Row, compare, machine, save
from benchmarks.speed.record import load as load_rows
from benchmarks.speed.updates import Size

__all__ = ["Change", "Row", "compare", "compiler", "load_rows", "machine", "measure", "save"]

FULL = Size(repeats=100, share=1.0)
QUICK = Size(repeats=3, share=0.05)


def measure(quick: bool = False) -> Iterator[Row]:
    """Yield every row as soon as it is measured.

    `quick` takes a few repetitions of short streams: enough to see that everything works, not to judge.
    """
    size = QUICK if quick else FULL
    native: Native | None = load()
    parts: list[Callable[[], Iterator[Row]]] = [
        lambda: updates.updates(size, native),
        lambda: updates.lanes(size, native),
        lambda: updates.learn_one(size),
        lambda: figures.lstd(size),
        lambda: figures.growth(size),
        lambda: figures.sampling(size),
        lambda: figures.metrics_share(size),
        lambda: figures.experiment(size),
        lambda: figures.cold_start(size),
        lambda: figures.others(size),
    ]
    for part in parts:
        yield from part()

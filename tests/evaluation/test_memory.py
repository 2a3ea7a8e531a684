"""Memory does not grow with the log: not with its rows, nor with the number of its episodes."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from o2td import evaluation

from .episodes import SmallChunks

CHUNK = 1000  # rows; so few are read without a thread, whose lead would depend on the clock
ROWS = 6000


def log(rows: int, length: int, states: bool) -> pa.Table:
    rng = np.random.default_rng(0)
    step = np.arange(rows) % length
    x = rng.normal(size=rows)
    seen = {"state": rng.integers(0, 5, rows)} if states else {"obs_0": x}
    return pa.table(
        {
            "episode": np.arange(rows) // length,
            **seen,
            "reward": x + rng.normal(size=rows),
            "terminated": step == length - 1,
            "rho": rng.choice([0.8, 1.2], rows),
        }
    )


def peak(rows: int, length: int, states: bool) -> int:
    """The smaller peak of two evaluations: what waits for the garbage collector comes and goes."""
    return min(allocated(rows, length, states) for _ in range(2))


def allocated(rows: int, length: int, states: bool) -> int:
    """Bytes that an evaluation has allocated at most, in Python's and NumPy's own count."""
    source = SmallChunks(log(rows, length, states), 0.9, CHUNK, longest=CHUNK)
    options: dict[str, Any] = {"features": "auto" if states else "fourier:3", "lanes": 20}
    tracemalloc.start()
    try:
        evaluation.evaluate(source, methods="lstd,lsetd,is,wis,pdis,wpdis,dr,wdr", **options)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("length", "states"), [(1, True), (1, False), (4 * ROWS, False)])
def test_four_times_the_rows_take_no_more_memory(monkeypatch, length, states):
    """A number kept of every episode (or of every row of the only one) would take twice the bound."""
    monkeypatch.setattr("o2td.evaluation.survey.SAMPLE", 60)
    monkeypatch.setattr("o2td.evaluation.importance.LARGEST", 100)
    monkeypatch.setattr("o2td.evaluation.returns._MOST", 100)
    monkeypatch.setattr("o2td.evaluation.starts.Starts.MEMORY", 100)
    peak(2 * CHUNK, length, states)  # compiles, and imports what is imported late
    assert peak(4 * ROWS, length, states) - peak(ROWS, length, states) < 4 * 3 * ROWS

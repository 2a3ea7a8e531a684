"""What `evaluate` costs, as ratios within one run: no machine's seconds are in here."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from benchmarks.evaluate_speed import drifting
from o2td import evaluation

pytestmark = pytest.mark.slow


def seconds(log: Any) -> float:
    begun = time.process_time()
    evaluation.evaluate(log, 0.95)
    return time.process_time() - begun


def product(rows: int, d: int = 265) -> float:
    """Processor time of one product of as many rows of features."""
    from threadpoolctl import threadpool_limits

    z, right = np.ones((2000, d)), np.ones((2000, d + 1))
    with threadpool_limits(1):
        begun = time.process_time()
        for _ in range(rows // 2000):
            z.T @ right
        return time.process_time() - begun


def test_more_columns_cost_no_more_than_a_few_times_as_much() -> None:
    seconds(drifting(1000, 2))  # compiles
    found = {columns: seconds(drifting(10_000, columns)) for columns in (6, 10, 11, 12, 16, 40)}
    assert max(found.values()) < 4.0 * found[6], found


def test_rows_cost_little_more_than_the_products_of_their_features() -> None:
    seconds(drifting(1000, 2))
    short, long = drifting(100_000, 6), drifting(300_000, 6)
    before = product(200_000)
    more = seconds(long) - seconds(short)
    # The panel has four systems of 265 features; the rest is features, traces, influence, reading.
    assert more < 9.0 * (before + product(200_000)) / 2.0

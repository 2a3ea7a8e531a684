"""The logged policy's own value: its returns, or a baseline corrected by them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from o2td.evaluation.logged import LoggedColumn, LoggedValue

from .logs import line_log
from .study import traced


def test_an_episode_adds_its_return_or_its_start_and_its_errors() -> None:
    _, found = traced(line_log(30, 4))
    rng, block = np.random.default_rng(1), found.episodes
    opens = np.arange(block.count) % 2 == 0
    first, delta = rng.normal(size=block.count), rng.normal(size=len(block.rows))
    other = replace(found, episodes=replace(block, opens=opens), first=[first], delta=[delta])
    returns, errors = [], []
    for e, (low, high) in enumerate(zip(block.first[:-1], block.first[1:], strict=True)):
        gone = np.cumprod(np.r_[1.0, block.rows.discount[low : high - 1]])
        returns.append(1.5 * gone @ block.rows.reward[low:high])
        errors.append(2.0 * (first[e] - 0.25) * opens[e] + 1.5 * gone @ delta[low:high])
    np.testing.assert_allclose(LoggedColumn(-1, 0.0, 2.0, 1.5).of(other), returns, rtol=1e-9)
    column = LoggedColumn(0, 0.25, 2.0, 1.5)
    np.testing.assert_allclose(column.of(other), errors, rtol=1e-9)
    np.testing.assert_allclose(column.alone(2, [np.array([1.0, 2.0])]), [1.5, 3.5])
    np.testing.assert_array_equal(LoggedColumn(-1, 0.0, 2.0, 1.5).alone(3, []), np.zeros(3))


@pytest.mark.parametrize("cut", [False, True])
def test_the_value_is_the_mean_return_or_the_baselines_with_what_corrects_it(cut: bool) -> None:
    weighed = SimpleNamespace(units=12, count=10, totals=SimpleNamespace(opened=8.0))
    influences = SimpleNamespace(
        correct=lambda baseline: 4, spread=lambda column: SimpleNamespace(mean=0.5)
    )
    study: Any = SimpleNamespace(weighed=weighed, influences=influences)
    made: Any = LoggedValue()
    made.column = 0
    made.baseline = SimpleNamespace(mean=3.0) if cut else None
    column = made.make_column(study)
    assert (column.start, column.each) == (1.5, 1.2)
    assert (column.baseline, column.base) == ((4, 3.0) if cut else (-1, 0.0))
    assert made.value(study) == (3.5 if cut else 0.5)
    weighed.totals.opened = 0.0
    assert made.make_column(study).start == 12.0

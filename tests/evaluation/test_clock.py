"""Ends by the clock."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.coverage_common import mountain_car
from benchmarks.honesty.tables import gridworld, marked
from o2td.evaluation.log_tests.clock import clock_step, seen

from .study import studied


def test_a_clock_is_found_with_its_step_and_not_where_it_is_marked() -> None:
    task = gridworld(0.6)
    log = task.sample(256, np.random.default_rng(0))
    said = {mark: studied(marked(log, mark), 0.98) for mark in ("terminated", "truncated")}
    assert clock_step(seen(said["terminated"]))[0] == 25
    assert clock_step(seen(said["truncated"]))[0] is None


def test_a_clock_of_observations_is_told_from_ends_that_happen_to_coincide() -> None:
    """Episodes of mountain car end at the goal, and the longest two may be equally long."""
    log = mountain_car(60, [3, 54])
    step = log.groupby("episode").cumcount()
    length = step.groupby(log.episode).max()
    second = length.drop(length.idxmax()).idxmax()
    late = length.max() - length[second]
    begin = np.flatnonzero(log.episode == second)[0]
    tied = pd.concat([log.iloc[:begin], log.iloc[[begin] * late], log.iloc[begin:]])
    steps, chance = clock_step(seen(studied(tied, 0.99)))
    assert steps is None
    assert chance > 0.1
    cut = log[step < 150].copy()
    cut["terminated"] |= ~cut.duplicated("episode", keep="last")
    assert clock_step(seen(studied(cut, 0.99)))[0] == 150

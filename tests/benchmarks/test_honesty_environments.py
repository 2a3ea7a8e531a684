"""Gymnasium's tables in the honesty study have the values that the library computes."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.honesty.environments import DISCOUNT, TASKS, environment
from o2td import domains, exact


@pytest.mark.parametrize("name", TASKS)
def test_the_truth_is_the_value_of_the_librarys_own_problem(name):
    task = environment(name, 0.5, 0.1)
    made, options, _ = TASKS[name]
    states = len(task.start)
    problem = domains.from_gymnasium(
        made, task.behavior[:states], task.target[:states], DISCOUNT, **options
    )
    assert task.value() == pytest.approx(float(problem.start @ exact.value(problem)), rel=1e-9)


@pytest.mark.parametrize("name", TASKS)
def test_policies_see_only_what_is_shown(name):
    task = environment(name, 0.9, 0.3, horizon=60, hidden=True)
    assert len(np.unique(task.shown)) < len(task.start)
    log = task.sample(20, np.random.default_rng(0))
    assert log.groupby(["state", "action"]).behavior_prob.nunique().max() == 1
    assert log.groupby("episode").size().max() <= 60

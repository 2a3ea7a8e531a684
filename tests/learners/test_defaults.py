"""Every learner at its defaults, with nothing tuned, is closer than predicting zero."""

from __future__ import annotations

import numpy as np
import pytest

import o2td
from o2td import domains
from o2td.registry import LEARNERS

PROBLEMS = {
    "garnet": domains.garnet(seed=(99, 0)),
    "on-policy": domains.garnet(seed=(99, 0), on_policy=True),
    "Collision": domains.collision(seed=(99, 0)),
    "random walk": domains.random_walk(),
    "Boyan chain": domains.boyan_chain(),
}
# On this stream, not in the limit (0.5 of zero's error): noise, as on four of forty other draws.
WORSE = {("GTD2", "Collision")}
DISCOUNTED = [name for name in LEARNERS if LEARNERS[name].discounted]


@pytest.mark.parametrize("name", DISCOUNTED)
def test_it_beats_predicting_zero(name):
    worse = set()
    for where, problem in PROBLEMS.items():
        rows = problem.sample(5000, seed=5)
        learner = LEARNERS[name]().partial_fit(rows)
        assert learner.status.kind == "ok", where
        error = o2td.metrics.RMSE(problem)
        if not error.value(learner.theta) < error.value(np.zeros(problem.d)):
            worse.add((name, where))
    assert worse <= WORSE


@pytest.mark.parametrize("where", PROBLEMS)
def test_true_online_td_without_traces_is_td_at_its_defaults_too(where):
    rows = PROBLEMS[where].sample(900, seed=8)
    found, plain = o2td.TrueOnlineTD().partial_fit(rows), o2td.TD().partial_fit(rows)
    np.testing.assert_allclose(found.theta, plain.theta, rtol=1e-10, atol=1e-12)

"""Sums over many steps by squaring agree with the recursions that follow each step."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from o2td import evaluation
from o2td.evaluation import steps_ahead
from o2td.evaluation.steps_ahead import crossed, values_ahead, visits_ahead


def _by_hand(chain, gain, start, steps):
    values, visits = [np.zeros(len(gain))], [start]
    for _ in range(steps):
        values.append(gain + chain @ values[-1])
        visits.append(visits[-1] @ chain)
    cross = sum(np.outer(visits[k], values[steps - k - 1]) for k in range(steps))
    return values[-1], np.sum(visits[:steps], axis=0), cross


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.999, 1.0])
@pytest.mark.parametrize("steps", [1, 2, 3, 7, 8, 100, 1001])
@pytest.mark.parametrize("followed", [0, 4096])
def test_squaring_agrees_with_following_each_step(discount, steps, followed, monkeypatch):
    monkeypatch.setattr(steps_ahead, "_FOLLOWED", followed)
    rng = np.random.default_rng(steps)
    chain = discount * rng.dirichlet(np.ones(5), 5)
    chain[4] *= 0.3
    gain, start = rng.normal(size=5), rng.dirichlet(np.ones(5))
    found = (
        values_ahead(chain, gain, steps),
        visits_ahead(chain, start, steps),
        crossed(chain, gain, start, steps),
    )
    for one, by_hand in zip(found, _by_hand(chain, gain, start, steps), strict=True):
        scale = max(float(np.abs(by_hand).max()), 1.0)
        np.testing.assert_allclose(one, by_hand, rtol=1e-12, atol=1e-13 * scale)


def _log(observed: bool) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    rows = []
    for episode in range(40):
        x = rng.normal()
        for step in range(4):
            action = int(rng.integers(2))
            row = {"episode": episode, "step": step, "action": action, "reward": rng.normal() + x}
            row |= {"obs_0": x} if observed else {"state": int(rng.integers(3))}
            row |= {
                "terminated": step == 3,
                "behavior_prob": 0.5,
                "target_prob": 0.3 + 0.4 * action,
            }
            rows.append(row)
            x = 0.5 * x + action - 0.5
    return pd.DataFrame(rows)


@pytest.mark.parametrize("observed", [False, True])
def test_answers_over_a_moderate_horizon_agree_whichever_way_steps_are_followed(
    observed, monkeypatch
):
    asked = {"discount": 0.95, "methods": ["tstep"], "lanes": 20, "horizon": 300}
    plain = evaluation.evaluate(_log(observed), **asked)["tstep"]
    monkeypatch.setattr(steps_ahead, "_FOLLOWED", 0)
    squared = evaluation.evaluate(_log(observed), **asked)["tstep"]
    assert plain.value is not None
    for name in ("value", "low", "high", "standard_error"):
        assert getattr(squared, name) == pytest.approx(getattr(plain, name), rel=1e-12)


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_a_billion_steps_take_no_longer_than_a_thousand(observed, discount):
    asked = {"discount": discount, "methods": ["tstep"], "lanes": 20}
    far = evaluation.evaluate(_log(observed), horizon=10**9, **asked)["tstep"]
    near = evaluation.evaluate(_log(observed), horizon=4000, **asked)["tstep"]
    assert far.value == pytest.approx(near.value, rel=1e-9)
    assert far.standard_error == pytest.approx(near.standard_error, rel=1e-9)


def test_values_that_explode_over_many_steps_are_no_answer():
    rng, rows = np.random.default_rng(0), []
    for episode in range(60):
        x = rng.normal(size=2)
        for step in range(6):
            action = int(rng.integers(2))
            ahead = 1.3 * x + 0.1 * action
            row = {"episode": episode, "step": step, "action": action, "reward": x[0] + action}
            row |= {"obs_0": x[0], "obs_1": x[1], "next_obs_0": ahead[0], "next_obs_1": ahead[1]}
            row |= {"terminated": False, "truncated": step == 5, "behavior_prob": 0.5}
            rows.append(row | {"target_prob": 0.3 + 0.4 * action})
            x = ahead
    asked = {"discount": 0.9, "methods": ["tstep"], "lanes": 20, "horizon": 10**9}
    found = evaluation.evaluate(pd.DataFrame(rows), **asked)["tstep"]
    assert (found.value, found.verdict) == (None, "cannot answer")
    assert "the estimate is not finite" in found.reason

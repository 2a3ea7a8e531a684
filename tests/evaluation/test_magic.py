"""The blend of fit and histories: by estimated bias and variance, and no worse than its parts."""

from __future__ import annotations

import numpy as np
import pytest

from o2td import evaluation
from o2td.evaluation.estimators.magic import Spread, _blend, _lengths

from .test_doubts import eight_steps


def parts_of(lanes: np.ndarray) -> list[Spread]:
    return [Spread.of(row) for row in lanes]


def test_the_blend_has_the_least_estimated_error_on_the_simplex():
    rng = np.random.default_rng(0)
    mixing = np.array([[0.3, 0.0, 0.0], [0.2, 0.6, 0.0], [0.1, 0.3, 1.5]])
    lanes = mixing @ rng.normal(size=(3, 400))
    means = np.array([2.0, 0.8, 0.0])
    weights, bias = _blend(means, lanes, parts_of(lanes))
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= 0.0).all()
    assert bias[-1] == 0.0
    form = np.cov(lanes, bias=True) + np.outer(bias, bias)
    grid = [
        (a, b, 1.0 - a - b) for a in np.linspace(0, 1, 101) for b in np.linspace(0, 1.0 - a, 101)
    ]
    least = min(float(np.array(x) @ form @ np.array(x)) for x in grid)
    assert float(weights @ form @ weights) <= least * (1.0 + 1e-6)


@pytest.mark.parametrize(("gap", "first"), [(0.0, 1.0), (50.0, 0.0)])
def test_a_sharp_fit_that_agrees_is_kept_and_a_wrong_one_is_left(gap, first):
    rng = np.random.default_rng(1)
    lanes = np.stack([0.01 * rng.normal(size=300), rng.normal(size=300)])
    weights, _ = _blend(np.array([gap, 0.0]), lanes, parts_of(lanes))
    assert weights[0] == pytest.approx(first, abs=0.02)


def test_histories_are_followed_as_far_as_their_weights_reach():
    assert _lengths(np.array([100.0, 80.0, 50.0, 20.0, 9.0, 3.0])) == [0, 1, 2, 4]
    assert _lengths(np.array([5.0])) == [0]
    assert _lengths(np.full(250, 99.0))[-1] == 250


def test_it_is_right_where_the_fit_is_wrong_and_sharper_than_histories():
    found = {"magic": 0, "lstd": 0}
    for seed in range(4):
        log, truth = eight_steps(seed)
        answer = evaluation.evaluate(log, discount=1.0, methods="lstd,magic,wdr,is", influence=True)
        for name in found:
            found[name] += answer[name].low <= truth <= answer[name].high
        assert answer["magic"].standard_error < answer["is"].standard_error
        values = answer.influence["magic"].to_numpy()
        assert np.std(values) / np.sqrt(len(values)) == pytest.approx(
            answer["magic"].standard_error, rel=0.2
        )
    assert found["lstd"] == 0
    assert found["magic"] >= 3


def test_where_the_fit_is_right_the_blend_stays_near_it():
    rng = np.random.default_rng(5)
    log, _ = eight_steps(0, 300)
    log["state"], log["terminated"] = 0, rng.random(len(log)) < 0.3
    log = log[log.groupby("episode").terminated.cumsum() - log.terminated == 0]
    log = log.assign(truncated=(log.step == 7) & ~log.terminated, next_state=0)
    log["reward"] = rng.normal(size=len(log))
    answer = evaluation.evaluate(log, discount=0.9, methods="lstd,magic,wdr")
    lstd, magic = answer["lstd"], answer["magic"]
    assert abs(lstd.value - magic.value) < lstd.standard_error
    assert magic.standard_error < 1.3 * answer["wdr"].standard_error
    assert answer.recommended.method == "lstd"

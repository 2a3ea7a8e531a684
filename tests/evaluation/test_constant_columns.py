"""A column of observations that never changes says nothing, and changes no answer."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.evaluation import evaluate
from tests.evaluation import golden


def answers(behavior: bool, **options):
    """The same log with and without a column that is always 7."""
    log = golden.line(40)
    if not behavior:
        log = log.drop(columns=["behavior_prob"])
    names = [name for name in log.columns if name.startswith(("obs", "next_obs"))]
    first = [name for name in names if name.startswith("obs")]
    k = len(first)
    wider = log.assign(**{f"obs_{k}": 7.0})
    if any(name.startswith("next_obs") for name in names):
        wider[f"next_obs_{k}"] = 7.0
    return evaluate(log, discount=0.9, **options), evaluate(wider, discount=0.9, **options)


@pytest.mark.parametrize("behavior", [True, False])
def test_given_features_give_the_same_answer_and_tests_of_the_log_say_the_same(behavior):
    features = lambda x: np.column_stack([np.ones(len(x)), x[:, 0], x[:, 0] ** 2])  # noqa: E731
    plain, wider = answers(behavior, features=features, methods=["lstd", "wis", "dr"])
    for one, two in zip(plain.estimates, wider.estimates, strict=True):
        assert one.method == two.method
        if one.value is not None:
            assert two.value == pytest.approx(one.value, rel=1e-6)
            assert (two.low, two.high) == pytest.approx((one.low, one.high), rel=1e-4)
    told = [{one["name"]: one for one in answer.as_dict()["tests"]} for answer in (plain, wider)]
    assert told[0].keys() == told[1].keys()
    for name, found in told[0].items():
        other = told[1][name]
        assert other["verdict"] == found["verdict"], name
        assert (other["figure"] is None) == (found["figure"] is None), name
        if found["figure"] is not None:
            assert other["figure"] == pytest.approx(found["figure"], rel=1e-6, abs=1e-9), name


def test_chosen_features_do_without_it():
    _, wider = answers(True)
    best = wider.recommended
    assert best.value is not None
    assert np.isfinite([best.low, best.high, best.approximation_error]).all()
    listed = wider.features["candidates"]
    assert len(listed) > 3


def test_wrong_probabilities_are_found_beside_it():
    """A column that never changes must not hide that actions were taken more often than logged."""
    log = golden.line(40).assign(behavior_prob=lambda log: np.where(log["action"] == 0, 0.1, 0.9))
    verdicts = []
    for given in (log, log.assign(obs_1=7.0, next_obs_1=7.0)):
        answer = evaluate(given, discount=0.9, features="fourier:1", methods=["lstd", "wis"])
        (found,) = [one for one in answer.as_dict()["tests"] if one["name"] == "propensities"]
        verdicts.append((found["verdict"], found["figure"]))
    assert verdicts[0][0] != "trust"
    assert verdicts[1][0] == verdicts[0][0]

"""Policies people have: a callable, predict_proba, an array by state (modules: `test_modules`)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from o2td import sources
from o2td.errors import InputError
from o2td.sources.policies import _of_scores, action_order, probabilities_of, softmax

ROWS = 400
WEIGHTS = np.array([[0.5, -0.5, 0.0], [0.0, 1.0, -1.0]])


def _log(**more):
    rng = np.random.default_rng(0)
    log = {"episode": np.arange(ROWS) // 8, "action": rng.integers(0, 3, ROWS)}
    log |= {"obs_0": rng.normal(size=ROWS), "obs_1": rng.normal(size=ROWS), "reward": 1.0}
    log |= {"terminated": np.arange(ROWS) % 8 == 7, "behavior_prob": 1 / 3}
    return pd.DataFrame(log | more)


def _chances(x):
    return softmax(np.asarray(x) @ WEIGHTS)


def test_a_callable(joined):
    log = _log()
    got = joined(sources.open_logs(log, discount=0.9, target=_chances), 64)
    x = log[["obs_0", "obs_1"]].to_numpy()
    want = 3 * _chances(x)[np.arange(ROWS), log["action"]]
    np.testing.assert_allclose(got["rho"], want, rtol=1e-12)


def test_a_policy_that_never_takes_some_actions(joined):
    log = _log()
    source = sources.open_logs(log, discount=0.9, target=lambda x: np.eye(3)[(x[:, 0] > 0) * 2])
    want = np.where(log["action"] == 2 * (log["obs_0"] > 0), 3.0, 0.0)
    np.testing.assert_allclose(joined(source)["rho"], want)


def test_a_classifier_with_its_own_order_of_names(joined):
    names = np.array(["wait", "act", "stop"])
    log = _log()
    log["action"] = names[log["action"]]
    x = log[["obs_0", "obs_1"]].to_numpy()
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, log["action"])
    assert list(model.classes_) == ["act", "stop", "wait"]
    source = sources.open_logs(log, discount=0.9, target=model)
    taken = [list(model.classes_).index(name) for name in log["action"]]
    want = 3 * model.predict_proba(x)[np.arange(ROWS), taken]
    np.testing.assert_allclose(joined(source)["rho"], want)
    assert "coded action: act = 0, stop = 1, wait = 2" in str(source.info)


def test_numbers_of_actions_that_do_not_begin_at_0(joined):
    log = _log()
    log["action"] = np.array([10, 25, 50])[log["action"]]
    x = log[["obs_0", "obs_1"]].to_numpy()
    model = LogisticRegression().fit(x, log["action"])
    got = joined(sources.open_logs(log, discount=0.9, target=model))
    taken = np.searchsorted([10, 25, 50], log["action"])
    np.testing.assert_allclose(got["rho"], 3 * model.predict_proba(x)[np.arange(ROWS), taken])
    assert sources.open_logs(_log(), discount=0.9, target=model.fit(x, taken)).info.codings == {}


def test_an_array_by_state_and_a_classifier_of_states(joined):
    rng = np.random.default_rng(1)
    state = rng.integers(0, 5, ROWS)
    log = _log(state=state).drop(columns=["obs_0", "obs_1"])
    table = rng.dirichlet(np.ones(3), 5)
    got = joined(sources.open_logs(log, discount=0.9, target=table))
    np.testing.assert_allclose(got["rho"], 3 * table[state, log["action"]])
    model = LogisticRegression().fit(state[:, None], log["action"])
    got = joined(sources.open_logs(log, discount=0.9, target=model))
    want = model.predict_proba(state[:, None])[np.arange(ROWS), log["action"]]
    np.testing.assert_allclose(got["rho"], 3 * want)


REFUSED = {
    "logits": (lambda x: np.asarray(x) @ WEIGHTS, "return probabilities that sum to 1"),
    "words": (lambda x: [["left", "right"]] * len(x), "is not an array of numbers"),
    "table of words": (np.array([["left", "right"]]), "is not an array of numbers"),
    "actions": (np.zeros(5, dtype=int), r"an array of shape \(5,\); pass \(states, actions\)"),
    "states": (np.full((5, 3), 1 / 3), "an array of probabilities needs a log with states"),
    "shape": (lambda x: np.full(len(x), 0.5), r"shape \(\d+,\) for \d+ rows; return \(rows, act"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_policy(name):
    policy, said = REFUSED[name]
    with pytest.raises(InputError, match=f"target: .*{said}"):
        sources.open_logs(_log(), discount=0.9, target=policy).scan()


def test_continuous_actions_without_propensities():
    log = _log(action=np.random.default_rng(0).normal(size=ROWS)).drop(columns="behavior_prob")
    said = r"column action, .*holds real numbers, .*add a column behavior_logprob .*target_logprob"
    with pytest.raises(InputError, match=said):
        sources.open_logs(log, discount=0.9, target=_chances).scan()
    with pytest.raises(InputError, match=said):
        sources.open_logs(log.assign(target_prob=0.5), discount=0.9).scan()
    two = log.rename(columns={"action": "action_0"}).assign(action_1=0.5, target_logprob=0.0)
    with pytest.raises(InputError, match=r"columns action_0, action_1 hold real numbers"):
        sources.open_logs(two, discount=0.9, densities=True).scan()


@pytest.mark.parametrize("width", [1.0, 1.0 + 1e-9])
def test_scores_that_sum_to_one_are_probabilities_and_others_logits(width):
    scores = np.array([[0.25, 0.75], [0.5, 0.5]]) * width
    found = _of_scores(scores, 1e-6)
    np.testing.assert_allclose(found, [[0.25, 0.75], [0.5, 0.5]], rtol=1e-12)
    logits = np.log([[1.0, 3.0], [2.0, 2.0]])
    np.testing.assert_allclose(_of_scores(logits, 1e-6), [[0.25, 0.75], [0.5, 0.5]])


def test_policies_and_orders_that_are_none():
    states = np.array([0, 1])
    with pytest.raises(InputError, match=r"an array of shape \(2,\); pass \(states, actions\)"):
        probabilities_of([0.5, 0.5], states, "target")
    with pytest.raises(InputError, match="an array of probabilities needs a log with states"):
        probabilities_of([[0.5, 0.5]], np.zeros((2, 1)), "target")
    with pytest.raises(InputError, match="actions must be one list of what the log calls"):
        action_order(None, None, [["a"], ["b"]])
    assert action_order(None, None, np.array(["a", "b"])) == ["a", "b"]

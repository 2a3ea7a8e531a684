"""Segments, distributions of returns, more episodes, horizons; and what a verdict on width is about."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from o2td import evaluation
from o2td.errors import InputError

from .test_compare import END, GAMMA, POLICIES, P, R, made_log


def state_values(policy):
    ahead = GAMMA * (1.0 - END) * np.einsum("sa,sat->st", policy, P)
    return np.linalg.solve(np.eye(2) - ahead, (policy * R).sum(axis=1))


@pytest.fixture(scope="module")
def answer():
    log = made_log(300, 5)
    return evaluation.evaluate(log, GAMMA, target=POLICIES["B"], methods="lstd", segments="state")


def test_segments_are_the_values_of_their_states(answer):
    for one in answer.segments:
        assert one.value == pytest.approx(float(answer.values(np.array([int(one.segment)]))[0]))
        assert one.low < one.value < one.high
    assert sum(one.starts for one in answer.segments) == 300


def test_segments_average_to_the_whole(answer):
    mean = sum(one.value * one.starts for one in answer.segments) / 300
    assert mean == pytest.approx(answer.recommended.value)


def test_segments_by_a_function_and_in_the_page(answer):
    log = made_log(300, 5)

    def named(states):
        return np.where(states == 0, "zero", "one")

    found = evaluation.evaluate(log, GAMMA, target=POLICIES["B"], methods="lstd", segments=named)
    values = {one.segment: one.value for one in found.segments}
    assert values["zero"] == pytest.approx({s.segment: s.value for s in answer.segments}["0"])
    assert "By segment of start states" in found._page().decode()
    assert [one["segment"] for one in found.as_dict()["segments"]] == list(values)


def test_intervals_of_segments_cover():
    truth, hits = state_values(POLICIES["B"]), []
    for seed in range(15):
        log = made_log(100, 900 + seed)
        found = evaluation.evaluate(
            log, GAMMA, target=POLICIES["B"], methods="lstd", segments="state", seed=seed
        )
        hits += [one.low <= truth[int(one.segment)] <= one.high for one in found.segments]
    assert sum(hits) >= 25


@pytest.mark.parametrize("wrong", ["nothing", 3, "reward"])
def test_a_segment_that_is_no_column_is_refused(wrong):
    with pytest.raises(InputError, match="segments"):
        evaluation.evaluate(made_log(20), GAMMA, target="behavior", segments=wrong)


def test_what_may_be_a_segment_is_named_as_the_log_calls_it():
    log = pd.DataFrame(
        {"user": ["a", "b"] * 20, "kind": ["old", "new"] * 20, "action": [0, 1] * 20, "reward": 1.0}
    ).assign(behavior_prob=0.5)
    asked = {"target": "behavior", "segments": "user"}
    with pytest.raises(InputError, match=r"policy sees; name one of kind, or this one too"):
        evaluation.evaluate(log, columns={"observation": ["kind"]}, **asked)
    with pytest.raises(
        InputError, match=r"policy sees; name it one, columns=\{\"observation\": …\}"
    ):
        evaluation.evaluate(log, **asked)


def test_too_many_segments_are_refused():
    log = pd.DataFrame({"state": range(60), "reward": 1.0, "rho": 1.0})
    with pytest.raises(InputError, match="more than 20"):
        evaluation.evaluate(log, segments="state", methods="lstd")


def test_an_order_of_actions_that_nothing_says_is_named_under_the_verdict():
    log = pd.DataFrame({"action": ["push", "email"] * 50, "reward": [1.0, 0.0] * 50})
    log = log.assign(state=0, behavior_prob=0.5)
    chances = [[0.9, 0.1]]
    answers = {order: evaluation.evaluate(log, target=chances, actions=order) for order in
               (None, ("push", "email"))}  # fmt: skip
    assert answers[None].recommended.value == pytest.approx(0.1)
    assert "(email, push); if they are not, pass actions=[…]" in answers[None].reasons[-1]
    assert answers["push", "email"].recommended.value == pytest.approx(0.9)
    assert not any("alphabetical" in reason for reason in answers["push", "email"].reasons)
    both = evaluation.compare(log, policies={"A": chances}, actions=["push", "email"])
    assert both.policies[0].value == pytest.approx(0.9)


# -- returns ---------------------------------------------------------------------------------------


def bandit(episodes=800, seed=0):
    rng = np.random.default_rng(seed)
    action = rng.integers(2, size=episodes)
    reward = action + rng.standard_normal(episodes)
    rho = np.where(action == 1, 1.6, 0.4)
    return pd.DataFrame({"state": 0, "action": action, "reward": reward, "rho": rho})


def test_returns_of_the_logged_policy_are_plain_quantiles():
    log = bandit()
    log["rho"] = 1.0
    answer = evaluation.evaluate(log, methods="lstd")
    middle, worst = answer.returns(quantiles=[0.5], cvar=0.25)
    assert middle.value == pytest.approx(np.median(log.reward), abs=0.01)
    tail = np.sort(log.reward)[:200].mean()
    assert worst.value == pytest.approx(tail, abs=1e-9)
    assert middle.logged == pytest.approx(middle.value, abs=0.01)


def test_a_tail_moves_with_the_target():
    low, worst = evaluation.evaluate(bandit(), methods="lstd").returns(quantiles=[0.2], cvar=0.2)
    assert low.low <= low.value <= low.high
    assert low.value > low.logged
    assert worst.value > worst.logged
    assert worst.value < low.value


def test_returns_are_refused_where_weights_are_hopeless_or_episodes_cut():
    n, steps = 60, 30
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "episode": np.repeat(np.arange(n), steps),
            "state": 0,
            "reward": rng.standard_normal(n * steps),
            "terminated": np.tile(np.arange(steps) == steps - 1, n),
            "rho": rng.choice([0.2, 1.8], n * steps),
        }
    )
    for found in evaluation.evaluate(frame, 1.0, methods="lstd").returns():
        assert found.verdict == "cannot answer"
        assert found.value is None
        assert found.reasons
    cut = frame.assign(terminated=False, rho=1.0, truncated=frame.terminated, next_state=0)
    for found in evaluation.evaluate(cut, 0.99, methods="lstd").returns():
        assert any("truncated episodes" in reason for reason in found.reasons)


@pytest.mark.parametrize("wrong", [{"quantiles": [0.0]}, {"quantiles": "a"}, {"cvar": 1.5}])
def test_shares_that_are_none_are_refused(answer, wrong):
    with pytest.raises(InputError):
        answer.returns(**wrong)


def test_an_answer_without_returns_says_so(answer):
    with pytest.raises(InputError, match="this answer was made without them"):
        replace(answer, _returns=None).returns()


# -- more episodes, horizons -----------------------------------------------------------------------


def test_so_many_more_episodes_make_the_interval_that_narrow():
    small = evaluation.evaluate(made_log(150, 7), GAMMA, target=POLICIES["B"], methods="lstd")
    half = (small.recommended.high - small.recommended.low) / 2.0
    assert small.episodes_for(half) == 0
    more = small.episodes_for(half / 2.0)
    assert more == pytest.approx(450, abs=2)
    large = evaluation.evaluate(
        made_log(150 + more, 8), GAMMA, target=POLICIES["B"], methods="lstd"
    )
    found = (large.recommended.high - large.recommended.low) / 2.0
    assert found == pytest.approx(half / 2.0, rel=0.3)
    assert small.episodes_for(0.01, of="lift") > 0
    with pytest.raises(InputError):
        small.episodes_for(-1.0)


def test_values_by_horizon_end_at_the_per_decision_estimate():
    answer = evaluation.evaluate(made_log(300, 9), GAMMA, target=POLICIES["A"], methods="wpdis")
    frame = (
        answer.by_horizon()
        .drop_nulls()
        .filter(pytest.importorskip("polars").col("value").is_not_nan())
    )
    last = frame["value"][-1]
    assert last == pytest.approx(answer["wpdis"].value, rel=0.1)
    assert frame["steps"][0] == 1


def test_page_and_notebook_show_what_the_first_steps_earn_where_there_are_several(tmp_path):
    said = "Value over the first steps"
    several = evaluation.evaluate(made_log(300, 9), GAMMA, target=POLICIES["A"], methods="lstd")
    assert said in several._repr_html_()
    assert said in several.report(tmp_path / "several.html").read_text()
    log = pd.DataFrame({"state": 0, "reward": [0.0, 1.0] * 60, "rho": [0.5, 1.5] * 60})
    single = evaluation.evaluate(log, methods="lstd")
    assert said not in single._repr_html_()
    assert said not in single.report(tmp_path / "single.html").read_text()


# -- words about width -----------------------------------------------------------------------------


def test_requirements_on_returns_are_about_the_same_figures():
    answer = evaluation.evaluate(made_log(600, 8), GAMMA, target=POLICIES["A"], methods="lstd")
    middle, worst = answer.returns([0.5], 0.2)
    assert answer.require(f"quantile(0.5) > {middle.low - 0.01}").holds is True
    assert answer.require(f"{middle.low - 0.01} > quantile(0.5)").holds is False
    assert answer.require(f"quantile(0.5) > {middle.value}").holds is None
    found = answer.require(f"cvar(0.2) > {worst.high + 0.01}")
    assert found.holds is False
    assert f"cvar(0.2) is {worst.value:.4g}" in found.words
    with pytest.raises(InputError, match=r"cvar\(2\) has no share between 0 and 1"):
        answer.require("cvar(2) > 0")
    with pytest.raises(InputError, match=r"cvar\(0.1.2\) has no share .*; write cvar\(0.1\)"):
        answer.require("cvar(0.1.2) > 0")
    with pytest.raises(InputError, match="'mean' is not known here"):
        answer.require("mean > 0")


def test_a_requirement_on_returns_that_weights_do_not_support_is_undecided():
    log = made_log(30, 3)
    far = np.array([[0.99, 0.01], [0.01, 0.99]])
    found = evaluation.evaluate(log, GAMMA, target=far, methods="lstd").require("cvar(0.01) > 0")
    assert found.holds is None
    assert "the log cannot answer" in found.words

"""Logs that do not hold the answer must not be trusted, whatever the method."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pytest

from o2td import evaluation

from .episodes import SmallChunks
from .logs import line_log
from .survey import surveyed

TRUSTED = "trust"


def words(answer: evaluation.Evaluation) -> dict[str, str]:
    return {row.method: row.verdict for row in answer.estimates}


def frame(episodes: int, steps: int, **columns: Any) -> pd.DataFrame:
    """Episodes of so many steps, cut there; more columns by name."""
    step = np.tile(np.arange(steps), episodes)
    rows = {"episode": np.repeat(np.arange(episodes), steps), "step": step, "terminated": False}
    return pd.DataFrame({**rows, "truncated": step == steps - 1, "rho": 1.0, **columns})


def chain(seed: int = 0) -> pd.DataFrame:
    """0 to 1 to 2 to 3, cut there: 1 at each of three steps, and nobody knows what follows."""
    rng = np.random.default_rng(seed)
    log = frame(200, 3, reward=1.0 + 0.1 * rng.normal(size=600))
    return log.assign(state=log.step, next_state=log.step + 1)


def in_sight(log: pd.DataFrame, width: float) -> pd.DataFrame:
    """The same with observations near the states' numbers."""
    rng = np.random.default_rng(1)
    here, after = (log[name] + width * rng.random(len(log)) for name in ("state", "next_state"))
    return log.drop(columns=["state", "next_state"]).assign(obs_0=here, next_obs_0=after)


# -- what no row leaves ----------------------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False])
def test_a_state_that_the_log_never_leaves_is_not_worth_nothing(known):
    log = chain() if known else chain().drop(columns="next_state")
    answer = evaluation.evaluate(log, discount=0.99)
    assert set(words(answer).values()) == {"cannot answer"}
    steps = 3 if known else 2
    share = 0.99**steps  # of 100 visits, those after the first ones
    assert answer.diagnostics["unlogged_share"] == pytest.approx(share)
    assert answer.diagnostics["support"] == pytest.approx(1.0 - share)
    assert f"about {share:.0%} of the target's visits" in answer.reasons[0]


def test_what_is_seldom_arrived_at_is_a_caution_or_no_doubt():
    again = chain().assign(next_state=lambda rows: rows.next_state % 3)
    sure = evaluation.evaluate(again, discount=0.9, methods="lstd,dr")
    assert sure.diagnostics["unlogged_share"] == 0.0
    assert sure["lstd"].verdict == TRUSTED
    found = []
    for every in (200, 10):
        lost = again.episode % every == 0
        log = again.assign(next_state=np.where(lost, again.step + 1, again.next_state))
        found.append(evaluation.evaluate(log, discount=0.9, methods="lstd"))
    few, some = found
    shares = [answer.diagnostics["unlogged_share"] for answer in found]
    assert 0.0 < shares[0] < 0.05 < shares[1] < 0.5
    assert not any("target's visits" in reason for reason in few.reasons)
    assert any("target's visits" in reason for reason in some.reasons)
    assert some.verdict == "caution"


@pytest.mark.parametrize("features", ["auto", "polynomial:1", "tiles:4x8"])
def test_regions_that_the_log_never_leaves_are_noticed_under_any_features(features):
    log = in_sight(chain(), 0.2)
    answer = evaluation.evaluate(log, 0.99, features, methods="lstd,dr,wdr,pdis", lanes=50)
    assert set(words(answer).values()) == {"cannot answer"}
    assert answer.diagnostics["unlogged_share"] == pytest.approx(0.99**3, abs=0.01)


def test_a_drift_out_of_what_was_seen_is_noticed():
    rng = np.random.default_rng(0)
    place = 0.2 * rng.random(400)[:, None] + np.cumsum(
        np.column_stack([np.zeros(400), 0.02 + 0.01 * rng.normal(size=(400, 5))]), axis=1
    )
    here, after = place[:, :-1].ravel(), place[:, 1:].ravel()
    log = frame(400, 5, obs_0=here, next_obs_0=after, reward=(here > 0.5) * 1.0)
    answer = evaluation.evaluate(log, 0.99, methods="lstd,dr,pdis", lanes=50)
    assert not log.reward.any()  # the target is worth something once it is beyond
    assert set(words(answer).values()) == {"cannot answer"}


# -- what doubly robust estimates go on with -------------------------------------------------------


def test_doubly_robust_estimates_are_no_better_than_the_fit_that_they_go_on_with():
    rng = np.random.default_rng(0)
    log = frame(100, 5, reward=rng.normal(1.0, 1.0, 500)).assign(state=lambda rows: rows.step % 2)
    log["next_state"] = 1 - log.state
    for seen in (log.assign(reward=1.0), log, in_sight(log, 0.1)):
        answer = evaluation.evaluate(seen, discount=1.0, lanes=50)
        assert set(words(answer).values()) == {"cannot answer"}
        assert any("nothing terminates at discount 1" in reason for reason in answer.reasons)


def test_the_error_of_a_fit_counts_by_the_discount_that_is_left():
    log = line_log(200, 3, steps=4).assign(reward=lambda rows: np.abs(rows.obs_0))
    answer = evaluation.evaluate(log, 0.9, "fourier:0", methods="lstd,dr,wdr", lanes=50)
    lstd, left = answer["lstd"], surveyed(log).left()
    assert 0.5 < left < 0.9**4
    error = left * (lstd.approximation_error + (lstd.high - lstd.low) / 2.0)
    for method in ("dr", "wdr"):
        assert answer[method].approximation_error == pytest.approx(error)
        assert answer[method].verdict != TRUSTED
    whole = line_log(200, 3, steps=400)
    answer = evaluation.evaluate(whole, 0.9, "fourier:0", methods="lstd,dr", lanes=50)
    assert answer["dr"].approximation_error == 0.0


# -- few rows, rare rewards ------------------------------------------------------------------------


def test_few_episodes_that_carry_all_are_a_doubt_about_every_method():
    log = pd.DataFrame({"episode": np.arange(2000), "state": 0, "terminated": True, "rho": 1.0})
    log["reward"] = 1000.0 * (log.episode < 2)
    answer = evaluation.evaluate(log, discount=0.9, methods="all")
    assert TRUSTED not in words(answer).values()
    for method in ("is", "wis", "pdis", "wpdis", "dr", "wdr", "sotd", "lstd"):
        assert "about 2 episodes carry all of the variation" in answer[method].reasons


def test_weights_of_histories_that_average_less_than_one_are_a_doubt():
    """Without the episodes of largest weight nothing else looks wrong."""
    rng, episodes = np.random.default_rng(3), 600
    log = frame(episodes, 3, state=0, next_state=0, reward=rng.normal(size=3 * episodes))
    log["rho"] = np.where(rng.random(len(log)) < 0.5, 1.4, 0.6)
    log = log.assign(terminated=log.truncated, truncated=False)
    heavy = log.groupby("episode").rho.prod() > 2.7  # an eighth of the episodes
    light = log[~log.episode.map(heavy)]
    said = "instead of 1: the log lacks the rare histories"
    for some, doubted in ((log, False), (light, True)):
        answer = evaluation.evaluate(some, discount=0.9, methods="wis,pdis,dr,lstd", lanes=50)
        for method in ("wis", "pdis", "dr"):
            assert any(said in reason for reason in answer[method].reasons) == doubted
        assert not any(said in reason for reason in answer["lstd"].reasons)


def test_weights_of_whole_episodes_come_after_those_of_their_steps():
    rng = np.random.default_rng(0)
    log = pd.DataFrame({"episode": np.arange(400), "state": 0, "terminated": True})
    log = log.assign(rho=rng.choice([0.5, 1.5], size=400), reward=rng.normal(size=400))
    answer = evaluation.evaluate(log, discount=0.9, methods="is,pdis", lanes=50)
    assert words(answer) == {"is": TRUSTED, "pdis": TRUSTED}
    assert answer["is"].value == pytest.approx(answer["pdis"].value, rel=1e-12)
    assert answer.recommended.method == "pdis"


def test_weights_of_whole_episodes_rest_on_no_more_episodes_than_those_of_their_steps():
    """Five episodes have a step of large weight, and their last step takes it away."""
    rng, episodes = np.random.default_rng(0), 400
    log = frame(episodes, 2, state=0, next_state=0, reward=rng.normal(size=2 * episodes))
    log = log.assign(terminated=log.truncated, truncated=False)
    rare = (log.episode < 5) & (log.step == 0)
    log["rho"] = np.where(rare, 20.0, np.where(log.episode < 5, 0.01, 1.0))
    answer = evaluation.evaluate(log, discount=0.9, methods="is,pdis", lanes=50, horizon=2)
    assert answer["pdis"].reasons == ["about 6 episodes carry all of the variation"]
    assert answer["is"].verdict == "caution"
    assert "weights of whole episodes do not make it more" in " ".join(answer["is"].reasons)


def test_a_reward_that_was_never_seen_may_be_rare():
    log = pd.DataFrame({"episode": np.arange(500), "state": 0, "terminated": True, "rho": 1.0})
    answer = evaluation.evaluate(log.assign(reward=0.0), discount=0.9)
    assert TRUSTED not in words(answer).values()
    assert "rarer than one in 500" in answer.reasons[0]
    same = evaluation.evaluate(log.assign(reward=1.0), discount=0.9).recommended
    assert same.covers(1.0 - 1.0 / 500.0)  # one in 500 had nothing


@pytest.mark.parametrize(("rows", "word"), [(2, "cannot answer"), (20, "caution"), (60, TRUSTED)])
def test_few_rows_that_the_target_could_have_taken(rows, word):
    rng = np.random.default_rng(0)
    log = pd.DataFrame({"episode": np.arange(600), "state": 0, "terminated": True})
    used = log.episode < rows
    log = log.assign(rho=np.where(used, 600.0 / rows, 0.0), reward=rng.normal(size=600))
    answer = evaluation.evaluate(log, discount=0.9, methods="lstd")
    assert answer.diagnostics["effective_rows"] == pytest.approx(rows)
    assert any("effective rows" in reason for reason in answer.reasons) == (word != TRUSTED)
    assert answer.verdict == word


# -- rows without a successor ----------------------------------------------------------------------


def ending(episodes: int, steps: int, seed: int = 0) -> pd.DataFrame:
    """One state, 1 at every step, each the last with chance 0.1; cut after `steps`."""
    rng = np.random.default_rng(seed)
    last = np.minimum(rng.geometric(0.1, episodes), steps + 1)
    length = np.minimum(last, steps)
    at = np.repeat(np.arange(episodes), length)
    step = np.concatenate([np.arange(n) for n in length])
    ends = step == last[at] - 1
    rows = pd.DataFrame({"episode": at, "step": step, "state": 0, "reward": 1.0, "rho": 1.0})
    rows["reward"] += rng.normal(size=len(rows))
    return rows.assign(terminated=ends, truncated=(step == length[at] - 1) & ~ends)


@pytest.mark.parametrize(("steps", "word"), [(2, "cannot answer"), (4, "caution")])
def test_dropping_last_rows_that_go_on_makes_episodes_seem_to_end_early(steps, word):
    log, truth = ending(4000, steps), 1.0 / (1.0 - 0.9 * 0.9)
    answer = evaluation.evaluate(log, discount=0.9, methods="lstd,dr,sotd,o2td")
    lstd = answer["lstd"]
    assert lstd.high < truth
    short = surveyed(log).hastened(answer.diagnostics["dropped"])
    assert lstd.value * (1.0 + short) == pytest.approx(truth, rel=0.05)  # as much as it says
    assert f"values may be {short:.1%} too small" in lstd.reason
    assert words(answer)["dr"] != TRUSTED
    assert answer.verdict == word
    whole = evaluation.evaluate(log.assign(next_state=0), discount=0.9, methods="lstd")
    assert whole.verdict == TRUSTED
    assert whole["lstd"].covers(truth)


def test_dropping_the_last_rows_of_a_log_that_never_ends_is_no_selection():
    log = frame(200, 5, state=0, reward=np.random.default_rng(0).normal(size=1000))
    answer = evaluation.evaluate(log, discount=0.9, methods="lstd")
    assert answer.diagnostics["dropped"] == 200
    assert answer.verdict == TRUSTED


def test_action_values_lose_the_rows_whose_next_probabilities_are_not_known():
    log = ending(4000, 2).assign(next_state=0, action=lambda rows: rows.index % 2)
    log = log.assign(behavior_prob=0.5, target_prob_0=0.5, target_prob_1=0.5).drop(columns="rho")
    answer = evaluation.evaluate(log, discount=0.9, methods="lstd,lstdq", lanes=50)
    assert words(answer) == {"lstd": TRUSTED, "lstdq": "cannot answer"}
    assert "too small" in answer["lstdq"].reason


# -- starts of which nothing else is known ---------------------------------------------------------


def cut_early(episodes: int, seed: int, ends: float = 0.0) -> pd.DataFrame:
    """Three states in any order, reward by state and action; episodes are cut after 1 to 4 steps.

    What follows the last step is not written, so that those of one step have only their start.
    """
    rng = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    for e in range(episodes):
        # Most of those that start in 2, where values are highest, are cut at once.
        state = int(rng.integers(0, 3))
        steps = 1 if state == 2 and rng.random() < 0.8 else int(rng.integers(2, 5))
        for t in range(steps):
            action, ended = int(rng.random() < 0.5), bool(rng.random() < ends)
            last = ended or t == steps - 1
            chances = (0.5, (0.3, 0.7)[action], 0.3, 0.7)
            place = (float(state), float(state == 2))
            reward = 5.0 * (state == 2) + action + 0.1 * rng.normal()
            rows.append((e, t, state, *place, action, reward, ended, last and not ended, *chances))
            if last:
                break
            state = int(rng.integers(0, 3))
    names = ["episode", "step", "state", "obs_0", "obs_1", "action", "reward", "terminated"]
    names += ["truncated", "behavior_prob", "target_prob", "target_prob_0", "target_prob_1"]
    return pd.DataFrame(rows, columns=names).drop(columns="target_prob")


@pytest.mark.parametrize("seen", ["state", "obs"])
def test_starts_whose_only_row_is_dropped_count(seen):
    log = cut_early(400, 0)
    starts = log.groupby("episode").state.first().to_numpy()
    alone = int((log.groupby("episode").size() == 1).sum())
    given = log.drop(columns=["obs_0", "obs_1"] if seen == "state" else ["state"])
    fits = ("lstd", "lstdq", "lsetd", "plugin", "sotd", "o2td", "tdrc")
    options: dict[str, Any] = {} if seen == "state" else {"features": "polynomial:1"}
    for method in fits if seen == "state" else fits[:3]:
        answer = evaluation.evaluate(given, discount=0.9, methods=method, lanes=50, **options)
        assert answer.diagnostics["lone_starts"] == alone > 80
        inputs: Any = starts
        if seen == "obs":
            inputs = np.column_stack([starts, starts == 2]).astype(float)
        chances = np.tile([0.3, 0.7], (len(starts), 1)) if method == "lstdq" else None
        assert answer.values(inputs, chances).mean() == pytest.approx(answer[method].value)
        assert "missing from the mean" not in answer[method].reason


def test_with_them_intervals_hold_the_truth_and_are_trusted():
    step = np.array([0.7, 0.7, 5.7])
    truth = float((step + 0.9 * step.mean() / 0.1).mean())
    found = [
        evaluation.evaluate(
            cut_early(300, seed).drop(columns=["obs_0", "obs_1"]), discount=0.9, methods="lstd"
        ).recommended
        for seed in range(20)
    ]
    assert sum(row.verdict == TRUSTED for row in found) >= 19  # a test of the log errs at times
    assert sum(row.covers(truth) for row in found) >= 17


@pytest.mark.parametrize("method", ["lstd", "wpdis", "lstdq"])
def test_their_influence_is_what_leaving_them_out_changes(method):
    log = cut_early(60, 1).drop(columns=["obs_0", "obs_1"])
    options: dict[str, Any] = {"discount": 0.9, "methods": method, "lanes": 0}
    whole = evaluation.evaluate(log, **options)[method]
    without = [
        evaluation.evaluate(log[log.episode != e], **options)[method].value for e in range(60)
    ]
    spread = np.array(without) - np.mean(without)
    jackknife = float(np.sqrt(59 / 60 * (spread @ spread)))
    assert whole.standard_error == pytest.approx(jackknife, rel=0.2)


def test_histories_cannot_count_them_and_say_so():
    log = cut_early(400, 2, ends=0.4).drop(columns=["obs_0", "obs_1"])
    answer = evaluation.evaluate(log, discount=0.1, methods="lstd,wpdis,wdr")
    said = {row.method: " ".join(row.reasons) for row in answer.estimates}
    assert "episodes lost their only row" not in said["lstd"]
    assert "and they are missing from the mean" in said["wpdis"]
    assert "and nothing corrects their part of the mean" in said["wdr"]


def test_the_same_starts_however_the_log_is_read():
    log = cut_early(150, 3, ends=0.05).drop(columns="state")
    options: dict[str, Any] = {"features": "polynomial:1", "lanes": 40}
    whole = evaluation.evaluate(log, discount=0.9, **options)
    for rows in (1, 7, 64):
        again = evaluation.evaluate(SmallChunks(log, 0.9, rows), **options)
        assert again.diagnostics["lone_starts"] == whole.diagnostics["lone_starts"] > 0
        for row in whole.estimates:
            other = again[row.method]
            assert other.value == pytest.approx(row.value, rel=1e-9)
            assert (other.low, other.high) == pytest.approx((row.low, row.high), rel=1e-7)


@pytest.mark.parametrize("seen", ["state", "obs"])
def test_a_start_that_no_row_leaves_is_not_worth_nothing(seen):
    log = cut_early(300, 4).drop(columns=["obs_0", "obs_1"])
    single = log.groupby("episode").step.transform("size") == 1
    log.loc[single, "state"] = 7
    if seen == "obs":
        log = log.rename(columns={"state": "obs_0"}).astype({"obs_0": float})
    features = "auto" if seen == "state" else "polynomial:1"
    answer = evaluation.evaluate(log, discount=0.9, methods="lstd", features=features)
    assert answer.diagnostics["unlogged_share"] > 0.2
    assert answer.verdict != TRUSTED
    assert "no usable row starts from" in " ".join(answer.reasons)


def test_starts_beyond_what_is_held_are_told(monkeypatch):
    monkeypatch.setattr("o2td.sources.stream._WAITING", 5)
    log = cut_early(400, 5).drop(columns=["obs_0", "obs_1"])
    log = log.sort_values("episode", key=lambda e: e.map(e.value_counts()), kind="stable")
    answer = evaluation.evaluate(log, discount=0.9, methods="lstd")
    assert answer.diagnostics["lone_starts"] == 5
    assert "their start states are missing from the mean" in " ".join(answer.reasons)


# -- agreement -------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_a_fit_that_histories_contradict_is_not_recommended(noise):
    rng = np.random.default_rng(0)
    log = frame(300, 5, state=0, reward=1.0 + noise * rng.normal(size=1500), truncated=False)
    log["terminated"] = log.step == 4  # five steps always: the state does not tell which
    answer = evaluation.evaluate(log, discount=0.9)
    truth = (1.0 - 0.9**5) / 0.1
    best, lstd = answer.recommended, answer["lstd"]
    assert best.value == pytest.approx(truth, rel=1e-3)
    assert best.verdict == "caution"
    assert "a clock ends episodes at step 5" in best.reason
    assert evaluation.evaluate(log, discount=0.9, horizon=5).verdict == TRUSTED
    assert not any("standard errors away" in reason for reason in answer.reasons)
    assert lstd.value == pytest.approx(1.0 / (1.0 - 0.9 * 0.8), rel=1e-3)
    assert lstd.verdict == "caution"
    assert "more than 100 standard errors away" in lstd.reason


def eight_steps(seed: int, episodes: int = 4000) -> tuple[pd.DataFrame, float]:
    """Four states in a row, eight steps without a discount, and the target's value over these."""
    rng = np.random.default_rng([8, seed])
    states, steps, up = 4, 8, 0.6
    pays = np.linspace(-1.0, 1.0, states)
    chain = np.zeros((states, states))
    for s in range(states):
        for to, chance in ((max(s - 1, 0), 1.0 - up), (min(s + 1, states - 1), up), (s, 1.0)):
            chain[s, to] += chance / 2.0
    value = np.zeros(states)
    for _ in range(steps):
        value = pays + chain @ value
    state, rows = np.zeros(episodes, dtype=int), []
    for _ in range(steps):
        right = rng.random(episodes) < 0.5
        moved = np.clip(state + np.where(right, 1, -1), 0, states - 1)
        ahead = np.where(rng.random(episodes) < 0.5, moved, state)
        ratio = np.where(right, up, 1.0 - up) / 0.5
        rows.append((state, pays[state] + 0.3 * rng.normal(size=episodes), ratio))
        state = ahead
    columns = [np.stack(part, axis=1).ravel() for part in zip(*rows, strict=True)]
    log = frame(episodes, steps, truncated=False)
    log["state"], log["reward"], log["rho"] = columns
    log["terminated"] = log.step == steps - 1
    return log, float(value[0])


def test_estimates_of_the_same_episodes_judge_each_other_by_their_joint_errors(monkeypatch):
    """Without the tests of the log: what LSTD and the histories say has to be enough."""
    monkeypatch.setattr(import_module("o2td.evaluation.evaluate"), "LOG_TESTS", {})
    monkeypatch.setattr("o2td.evaluation.study.clock_step", lambda view: (None, 1.0))
    right = {"recommended": 0, "lstd": 0, "dr": 0}
    for seed in range(5):
        log, truth = eight_steps(seed)
        answer = evaluation.evaluate(log, discount=1.0, methods="lstd,is,wis,pdis,wpdis,dr,wdr")
        assert answer["lstd"].verdict == "caution"
        assert "standard errors" in answer["lstd"].reason
        chosen = {"recommended": answer.recommended, "lstd": answer["lstd"], "dr": answer["dr"]}
        for name, row in chosen.items():
            right[name] += row.low <= truth <= row.high
    assert right["lstd"] == 0
    assert right["dr"] >= 4
    assert right["recommended"] >= 4


def test_a_fit_is_tested_along_the_steps_that_weights_still_reach():
    """Three states look alike, and at length 40 no whole history has any weight left."""
    rng = np.random.default_rng(3)
    episodes, steps = 600, 40
    hidden = np.zeros(episodes, dtype=int)
    rows = []
    for step in range(steps):
        action = (rng.random(episodes) < 0.5).astype(int)
        reward = np.where(hidden == action, 1.0, -1.0) * (step < 3)
        rows.append((reward, np.where(action == 1, 0.9, 0.1) / 0.5))
        hidden = action
    log = frame(episodes, steps, truncated=False)
    log["reward"], log["rho"] = (np.stack(part, axis=1).ravel() for part in zip(*rows, strict=True))
    log["state"], log["terminated"] = log.step, log.step == steps - 1
    answer = evaluation.evaluate(log, discount=0.99, methods="lstd,wdr")
    assert answer["wdr"].verdict == "cannot answer"
    assert "over the first" in answer["lstd"].reason


def test_histories_that_are_known_to_miss_rewards_do_not_veto() -> None:
    """Episodes cut after twelve steps: histories lack what follows, which is no disagreement.

    The walk is deterministic given its actions, so the corrections of the first steps are a matter
    of rounding and must not be read as a contradiction either.
    """
    rng, last = np.random.default_rng(7), 4
    columns: dict[str, list[float]] = {
        name: [] for name in ("episode", "step", "state", "action", "reward", "truncated")
    }
    for episode in range(400):
        state = 0
        for step in range(12):
            action = int(rng.integers(2))
            following = min(state + 1, last) if action else max(state - 1, 0)
            reward = float(following == last) + 0.1 * action
            row = (episode, step, state, action, reward, step == 11)
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)
            state = following
    log = {name: np.asarray(values) for name, values in columns.items()}
    log["terminated"] = np.zeros(len(log["step"]), bool)
    log["behavior_prob"] = np.full(len(log["step"]), 0.5)
    policy = np.tile([0.2, 0.8], (last + 1, 1))
    found = evaluation.evaluate(log, discount=0.9, target=policy)
    P, R = np.zeros((last + 1, last + 1)), np.zeros(last + 1)
    for state in range(last + 1):
        for action, following in enumerate((max(state - 1, 0), min(state + 1, last))):
            P[state, following] += policy[state, action]
            R[state] += policy[state, action] * (float(following == last) + 0.1 * action)
    truth = np.linalg.solve(np.eye(last + 1) - 0.9 * P, R)[0]
    assert found.verdict == "trust"
    assert found.recommended.covers(truth)

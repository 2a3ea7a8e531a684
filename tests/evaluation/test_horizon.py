"""Values over a number of steps, and states with a part of their past."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pandas as pd
import pytest

from benchmarks.honesty.tables import (
    graph,
    gridworld,
    marked,
    model_fail,
    model_win,
    toy_mountain_car,
)
from o2td import domains, evaluation
from o2td.cli import main
from o2td.errors import InputError
from o2td.evaluation.horizon import FOLDS, Cells, ModelSystem, ended
from o2td.features import Tabular

from .episodes import block_of
from .lanes import counts_of, fold_of


def by_hand(log: pd.DataFrame, steps: int, discount: float, size: int) -> float:
    """The T-step value of the mean rewards and transitions by state and action, written out."""
    names = [name for name in log.columns if name.startswith("target_prob_")]
    policy = log.groupby("state")[names].first()
    clock = log.terminated & (log.step == steps - 1)
    ahead = np.zeros(size)
    for _ in range(steps):
        value = np.zeros(size)
        for (state, action), rows in log.groupby(["state", "action"]):
            inner = rows[~clock[rows.index]]
            follow = np.where(inner.terminated, 0.0, ahead[inner.next_state])
            onward = discount * follow.mean() if len(inner) else 0.0
            tried = sorted(log.action[log.state == state].unique())
            chance = policy.loc[state].to_numpy()
            value[state] += chance[action] / chance[tried].sum() * (rows.reward.mean() + onward)
        ahead = value
    return float(ahead[log.state[log.step == 0]].mean())


def test_steps_are_those_of_the_model_written_out() -> None:
    task = model_win()
    log = marked(task.sample(60, np.random.default_rng(0)), "terminated")
    found = evaluation.evaluate(log, discount=0.98, methods=["tstep"])["tstep"]
    assert found.value == pytest.approx(by_hand(log, 20, 0.98, 3), rel=1e-12)


def test_untried_actions_are_left_out_and_not_taken_for_nothing() -> None:
    task = gridworld(0.2)
    log = marked(task.sample(40, np.random.default_rng(0)), "terminated")
    found = evaluation.evaluate(log, discount=0.98, methods=["tstep"])["tstep"]
    assert found.value == pytest.approx(by_hand(log, 25, 0.98, 64), rel=1e-12)


def test_influence_agrees_with_resampling() -> None:
    task = gridworld(0.6)
    log = marked(task.sample(300, np.random.default_rng(0)), "terminated")
    resampled = evaluation.evaluate(log, discount=0.98, methods=["tstep"])["tstep"]
    traced = evaluation.evaluate(log, discount=0.98, methods=["tstep"], lanes=0)["tstep"]
    assert resampled.value == traced.value
    assert traced.standard_error == pytest.approx(resampled.standard_error, rel=0.2)


def test_a_walk_is_exact_where_actions_lead_where_they_lead() -> None:
    task = toy_mountain_car(0.45, 0.6)
    log = marked(task.sample(128, np.random.default_rng(1)), "terminated")
    answer = evaluation.evaluate(log, discount=0.99)
    assert answer.recommended.method == "tstep"
    assert answer.recommended.value == pytest.approx(task.value(250), rel=1e-4)


def test_a_clock_that_was_found_leaves_the_question_open_and_a_horizon_closes_it() -> None:
    task = gridworld(0.6)
    log = marked(task.sample(256, np.random.default_rng(2)), "terminated")
    found = evaluation.evaluate(log, discount=0.98)
    asked = evaluation.evaluate(log, discount=0.98, horizon=25)
    assert (found.verdict, asked.verdict) == ("caution", "trust")
    assert found.recommended.method == asked.recommended.method == "tstep"
    assert found.recommended.value == pytest.approx(asked.recommended.value)
    assert "horizon=25" in found.reasons[0]
    assert asked.recommended.covers(task.value(25))
    assert asked["lstd"].verdict == "cannot answer"


@pytest.mark.parametrize("mark", ["terminated", "truncated"])
def test_a_shorter_horizon_counts_the_first_steps_alone(mark: str) -> None:
    task = model_win()
    log = marked(task.sample(4000, np.random.default_rng(3)), mark)
    answer = evaluation.evaluate(log, discount=0.98, horizon=4)
    short = evaluation.evaluate(log[log.step < 4], discount=0.98, methods=["pdis"], horizon=4)
    assert answer["pdis"].value == pytest.approx(short["pdis"].value, rel=1e-9)
    assert answer["tstep"].covers(task.value(4))


def test_the_past_joins_the_state_where_states_look_alike() -> None:
    for task, episodes in ((model_fail(), 1024), (graph(observations=6, sparse=True), 1024)):
        log = marked(task.sample(episodes, np.random.default_rng(4)), "terminated")
        answer = evaluation.evaluate(log, discount=0.98)
        assert answer.recommended.method == "stacked"
        assert answer.recommended.covers(task.value(task.horizon))
        assert not answer["lstd"].covers(task.value(task.horizon))


def test_more_of_the_past_might_move_the_answer_unless_episodes_have_no_more() -> None:
    for length, whole in ((2, True), (8, False)):
        task = graph(length, observations=2, sparse=True)
        log = marked(task.sample(1024, np.random.default_rng(4)), "terminated")
        answer = evaluation.evaluate(log, discount=0.98, methods="stacked,lstd", lanes=50)
        assert (answer["stacked"].approximation_error < 1e-6) == whole


def test_the_past_is_not_trusted_where_no_history_confirms_it() -> None:
    """A slippery cliff walk that shows the column alone: memory reaches further than one row."""
    table = domains.from_gymnasium("CliffWalking-v1", discount=0.97, is_slippery=True)
    best, states = table.target.argmax(axis=1), len(table.target)
    policy = {share: np.full((states, 4), share / 4) for share in (0.5, 0.1)}
    for share, chances in policy.items():
        chances[np.arange(states), best] += 1.0 - share
    rng, rows = np.random.default_rng(1), []
    env = gymnasium.make("CliffWalking-v1", is_slippery=True, max_episode_steps=60)
    for episode in range(400):
        state, _ = env.reset(seed=episode)
        ended = cut = False
        while not (ended or cut):
            action = int(rng.choice(4, p=policy[0.5][state]))
            ahead, reward, ended, cut, _ = env.step(action)
            chances = (policy[0.5][state, action], policy[0.1][state, action])
            rows.append((episode, state % 12, action, float(reward), ended, cut, *chances))
            state = ahead
    names = "episode state action reward terminated truncated behavior_prob target_prob"
    log = pd.DataFrame(rows, columns=names.split())
    answer = evaluation.evaluate(log, discount=0.97)
    assert answer["stacked"].verdict == "caution"
    assert answer.verdict != "trust"
    assert not answer["stacked"].covers(-52.53)  # the exact value


def test_a_complete_state_needs_no_past() -> None:
    task = graph()
    log = marked(task.sample(256, np.random.default_rng(0)), "terminated")
    listed = [one.method for one in evaluation.evaluate(log, discount=0.98).estimates]
    assert "stacked" not in listed
    assert "tstep" not in listed


@pytest.mark.parametrize("horizon", [0, -3, 2.5, True, "ten"])
def test_a_horizon_is_a_number_of_steps(horizon: object) -> None:
    log = marked(model_fail().sample(20, np.random.default_rng(0)), "terminated")
    with pytest.raises(InputError, match="horizon"):
        evaluation.evaluate(log, discount=0.9, horizon=horizon)  # type: ignore[arg-type]


def test_the_command_takes_a_horizon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = marked(model_win().sample(200, np.random.default_rng(0)), "terminated")
    log.to_parquet(tmp_path / "log.parquet")
    call = ["evaluate", str(tmp_path / "log.parquet"), "--discount", "0.98", "--json"]
    assert main([*call, "--horizon", "20"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["estimates"][0]["method"] == "tstep"
    assert answer["audit"]["horizon"] == 20
    assert {"clock", "memory"} <= {test["name"] for test in answer["tests"]}


def _model(blocks, lanes: int = 12) -> ModelSystem:
    system = ModelSystem(Cells(Tabular(3).fit()), 2, 20, 0.98, lanes)
    for one in blocks:
        system.add(one, fold_of(one.key, FOLDS), counts_of(one.key, lanes))
    return system


def _won(episodes: int = 40) -> pd.DataFrame:
    return marked(model_win().sample(episodes, np.random.default_rng(3)), "terminated")


def test_lanes_are_the_model_of_resampled_episodes_and_folds_of_the_rest() -> None:
    log = _won()
    block = block_of(log, 0.98)
    system, counts = _model([block]), counts_of(block.key, 12)
    found = system.lane_values()
    for lane in (0, 1, 7, 11):
        picked = np.repeat(np.arange(block.count), counts[:, lane].astype(int))
        parts = [log[log.episode == log.episode.unique()[e]] for e in picked]
        again = pd.concat([p.assign(episode=k) for k, p in enumerate(parts)], ignore_index=True)
        assert found[lane] == pytest.approx(by_hand(again, 20, 0.98, 3), rel=1e-9), lane
    kept = fold_of(block.key, FOLDS) != 2
    rest = log[log.episode.isin(log.episode.unique()[kept])].reset_index(drop=True)
    members = np.arange(FOLDS) != 2
    value = float(system.start(members) @ system.solve(members).theta)
    assert value == pytest.approx(by_hand(rest, 20, 0.98, 3), rel=1e-9)


def test_parts_of_a_log_merge_to_the_model_of_the_whole() -> None:
    block = block_of(_won(), 0.98)
    half = np.arange(block.count) < 13
    whole, added = _model([block]), _model([block.pick(half), block.pick(~half)])
    merged, other = _model([block.pick(half)]), _model([block.pick(~half)])
    merged.merge(other)
    for one in (added, merged):
        np.testing.assert_array_equal(one.cell, whole.cell)
        np.testing.assert_array_equal(one.pair, whole.pair)
        np.testing.assert_allclose(one.lane_values(), whole.lane_values(), rtol=1e-12)
        np.testing.assert_allclose(one.solve().theta, whole.solve().theta, rtol=1e-12)
        np.testing.assert_allclose(one.policy, whole.policy)
        assert one.endless() == pytest.approx(whole.endless(), rel=1e-12)


def test_shortened_episodes_end_at_their_last_step_only() -> None:
    log = _won(5)
    block = block_of(log.assign(terminated=False, truncated=log.step == 19), 0.98)
    short = ended(block, 7)
    assert np.diff(short.first).tolist() == [7] * 5
    last = np.arange(35) % 7 == 6
    assert short.rows.terminated.tolist() == last.tolist()
    assert not short.rows.truncated.any()
    np.testing.assert_array_equal(short.rows.discount, np.where(last, 0.0, 0.98))
    same = ended(block, 20)
    assert same.rows.terminated.sum() == 5
    assert not same.rows.truncated.any()


def test_without_discount_a_model_that_never_ends_has_no_value() -> None:
    log = _won(20)
    block = block_of(log.assign(terminated=False, truncated=log.step == 19), 1.0)
    system = ModelSystem(Cells(Tabular(3).fit()), 2, 20, 1.0)
    system.add(block, fold_of(block.key, FOLDS), None)
    assert system.endless() == np.inf
    ends = block_of(log, 1.0)
    system = ModelSystem(Cells(Tabular(3).fit()), 2, None, 1.0)
    system.add(ends, fold_of(ends.key, FOLDS), None)
    assert np.isfinite(system.endless())


def test_last_rows_beyond_the_horizon_are_not_missing() -> None:
    """Episodes of six steps whose last row has no successor say all about up to six steps."""
    rng = np.random.default_rng(0)
    log = pd.DataFrame(
        {"episode": np.repeat(np.arange(200), 6), "step": np.tile(np.arange(6), 200), "state": 0}
    ).assign(action=rng.integers(0, 2, 1200), terminated=rng.random(1200) < 0.1, behavior_prob=0.5)
    log["reward"] = log.action.astype(float)
    log = log[log.groupby("episode").terminated.cumsum() - log.terminated == 0]
    asked = {"discount": 1.0, "target": np.array([[0.4, 0.6]]), "methods": ["wpdis"]}
    said = "the last rows of truncated episodes were dropped"
    for horizon, missing in ((3, False), (6, False), (7, True)):
        found = evaluation.evaluate(log, horizon=horizon, **asked)["wpdis"]
        assert any(reason.startswith(said) for reason in found.reasons) == missing


@pytest.mark.parametrize("several", [False, True])
def test_the_last_step_of_the_horizon_needs_no_final_observation(several: bool) -> None:
    """Its reward counts as if the episode had terminated there."""
    log = _won(20)
    last = log.step == 19
    asked: dict[str, Any] = {"discount": 1.0, "horizon": 20}
    answers = []
    for ends in ({"terminated": False, "truncated": last}, {"terminated": last}):
        marked = log.drop(columns=["next_state"], errors="ignore").assign(**ends)
        if several:
            both = evaluation.compare(marked, policies={"A": [[0.5, 0.5]] * 3}, **asked)
            answers.append(both.policies[0].as_dict())
        else:
            answers.append(evaluation.evaluate(marked, **asked).recommended.as_dict())
    assert answers[0] == answers[1]

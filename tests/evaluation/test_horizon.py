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
        for name in ("own", "squares", "opening"):
            np.testing.assert_allclose(getattr(one, name), getattr(whole, name), rtol=1e-12)
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


def _wandering(seed: int, episodes: int = 30, ends: float = 0.15) -> pd.DataFrame:
    """Walks among four states by three actions, of which one is rare, to at most seven rows."""
    rng = np.random.default_rng(seed)
    policy = rng.dirichlet(np.ones(3), 4)
    rows = []
    for episode in range(episodes):
        state = int(rng.integers(4))
        for step in range(7):
            action = int(rng.choice(3, p=[0.6, 0.37, 0.03]))
            ahead, over = int(rng.integers(4)), bool(rng.random() < ends)
            row = {"episode": episode, "step": step, "state": state, "action": action}
            row |= {"next_state": ahead, "reward": rng.normal() + state, "behavior_prob": 0.5}
            row |= {f"target_prob_{a}": policy[state, a] for a in range(3)}
            row |= {"terminated": over or step == 6, "truncated": False}
            rows.append(row)
            if over:
                break
            state = ahead
    return pd.DataFrame(rows)


def _system(
    log: pd.DataFrame, steps: int | None, actions: int = 3, lanes: int = 0, counts: Any = None
) -> tuple[ModelSystem, Any]:
    block = block_of(log, 0.9)
    system = ModelSystem(Cells(Tabular(4).fit()), actions, steps, 0.9, lanes)
    system.add(block, fold_of(block.key, FOLDS), counts)
    return system, block


@pytest.mark.parametrize("actions", [1, 3])
@pytest.mark.parametrize("steps", [None, 7, 3])
@pytest.mark.parametrize("known", [True, False])
def test_influence_is_the_derivative_by_an_episodes_weight(
    monkeypatch: pytest.MonkeyPatch, actions: int, steps: int | None, known: bool
) -> None:
    monkeypatch.setattr("o2td.evaluation.horizon.own_fit", lambda n, squares: np.ones_like(n))
    log = _wandering(2)
    if not known:
        log["next_state"] = np.where(log.terminated, -1, log.next_state)
    if actions == 1:
        log = log.drop(columns=["behavior_prob", *[f"target_prob_{a}" for a in range(3)]])
        log["rho"] = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(log))
    system, block = _system(log, steps, actions)
    theta = system.solve().theta
    value = float(system.start() @ theta)
    light = system.light()
    first, moved = light.influence(block, theta, system.adjoint())
    np.testing.assert_allclose(first, theta[log.state[block.first[:-1]]])
    influence = (first - value) / block.count + moved
    assert np.abs(influence.sum()) < 1e-9
    size = 1e-5
    counts = np.ones((block.count, 2 * block.count))
    for e in range(block.count):
        counts[e, 2 * e : 2 * e + 2] += [size, -size]
    found, _ = _system(log, steps, actions, 2 * block.count, counts)
    lanes = found.lane_values()
    assert lanes is not None
    slopes = (lanes[::2] - lanes[1::2]) / (2.0 * size)
    np.testing.assert_allclose(influence, slopes, rtol=1e-4, atol=1e-7)


def test_influence_is_enlarged_by_what_each_mean_takes_from_its_own_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, asked = _wandering(3), []
    system, _ = _system(log, 7)
    plain = {}
    for factor in (1.0, 3.0):

        def fitted(n: Any, squares: Any, by: float = factor) -> Any:
            asked.append((n, squares))
            return np.full_like(n, by)

        monkeypatch.setattr("o2td.evaluation.horizon.own_fit", fitted)
        plain[factor] = system.adjoint()
    rows = np.zeros((4, 3))
    np.add.at(rows, (log.state, log.action), 1.0)
    np.testing.assert_array_equal(asked[0][0], rows)
    np.testing.assert_array_equal(asked[0][1], rows)
    for columns, by in (
        (slice(0, 3), 3.0),
        (slice(3, 6), 1.0),
        (slice(6, 12), 3.0),
        (slice(12, 16), 1.0),
    ):
        np.testing.assert_allclose(plain[3.0][:, columns], by * plain[1.0][:, columns], rtol=1e-12)


@pytest.mark.parametrize("steps", [None, 5])
def test_visits_that_end_beyond_the_log_or_take_actions_never_tried_by_plain_loops(
    steps: int | None,
) -> None:
    log = _wandering(5, 20)
    log = log[(log.state != 3) & ~((log.state == 1) & (log.action == 2))]
    log = log[log.groupby("episode").cumcount() == log.step].reset_index(drop=True)
    log.loc[log.index[:3], "terminated"] = False
    log["truncated"] = ~log.terminated & ~log.duplicated("episode", keep="last")
    system, block = _system(log, steps)
    policy = log.groupby("state")[[f"target_prob_{a}" for a in range(3)]].first()
    rows = block.rows
    move, missed, gone = np.zeros((4, 4)), np.zeros(4), np.ones(4)
    for state in range(4):
        here = log.state == state
        tried = sorted(log.action[here].unique())
        if not tried:
            continue
        gone[state] = 0.0
        chance = policy.loc[state].to_numpy()
        missed[state] = 1.0 - chance[tried].sum()
        for action in tried:
            mine = np.flatnonzero(here & (log.action == action))
            last = (
                (steps is not None) & rows.terminated[mine] & (rows.step[mine] == (steps or 0) - 1)
            )
            known = mine[~last | (rows.next_state[mine] >= 0)]
            for t in known:
                cut = steps is not None and rows.terminated[t] and rows.step[t] == steps - 1
                if not rows.terminated[t] or cut:
                    share = chance[action] / chance[tried].sum() / len(known)
                    move[state, rows.next_state[t]] += 0.9 * share
    at = np.bincount(log.state[block.first[:-1]], minlength=4) / block.count
    visits = np.zeros(4)
    for _ in range(3000 if steps is None else steps):
        visits, at = visits + at, at @ move
    ahead = 4.0
    outside = visits @ gone * (ahead if steps is None else min(ahead, 5.0))
    inside = visits @ (1.0 - gone)
    assert outside > 0.0
    assert system.unlogged(ahead) == pytest.approx(outside / (inside + outside), rel=1e-6)
    if steps is not None:
        least = visits @ gone * 5.0
        assert system.unlogged(40.0) == pytest.approx(least / (inside + least), rel=1e-6)
    lost = visits @ missed * ahead
    rest = (visits * (1.0 - missed)).sum()
    assert system.untried(ahead) == pytest.approx(lost / (rest + lost), rel=1e-6)


def test_what_a_model_is_called_and_when_lanes_are_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = _wandering(6)
    counts = counts_of(block_of(log, 0.9).key, 5)
    system, _ = _system(log, 4, lanes=5, counts=counts)
    assert system.label == f"{system.basis.name}, 4 steps"
    assert _system(log, None)[0].label == system.basis.name
    found = system.solve()
    assert (found.status, found.rank) == ("ok", 4)
    assert (found.condition, found.residual) == (1.0, 0.0)
    assert _system(log, 4)[0].lane_values() is None
    monkeypatch.setattr("o2td.evaluation.horizon._DENSE", 80)
    assert system.lane_values() is not None
    monkeypatch.setattr("o2td.evaluation.horizon._DENSE", 79)
    assert system.lane_values() is None

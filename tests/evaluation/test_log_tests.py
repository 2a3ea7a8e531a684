"""Every test of the log finds the defect that it is for, and leaves sound logs alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.honesty import continuous
from benchmarks.honesty.cells import CELLS
from benchmarks.honesty.defects import DEFECTS
from benchmarks.honesty.tables import (
    graph,
    gridworld,
    marked,
    model_fail,
    random_table,
    toy_mountain_car,
)
from o2td import domains, evaluation

from .study import failed

FOUND_BY = {
    "rewards one row late": "alignment",
    "rewards one row early": "alignment",
    "actions one row late": "alignment",
    "next state of another row": "alignment",
    "steps out of order": "alignment",
    "ratios of another row's action": "alignment",
    "columns of probabilities swapped": "alignment",
    "last rows of failures not logged": "ends",
    "termination marked as truncation": "ends",
    "truncation marked as termination": "clock",
    "rewards that depend on the time, fixed horizon": "clock",
    "long episodes missing": "ends",
    "rewards drift": "drift",
    "behaviour drifts, old probabilities logged": "propensities",
    "every episode twice": "independence",
    "twenty users, unnamed": "independence",
    "an action never tried in some states": "support",
    "rewards with a heavy tail": "tails",
}


@pytest.mark.parametrize("defect", FOUND_BY)
def test_a_defect_is_found_and_said(defect: str) -> None:
    log, discount, _ = DEFECTS[defect](np.random.default_rng([7, 1]))
    found = failed(log, discount)
    assert FOUND_BY[defect] in found
    assert found[FOUND_BY[defect]].sentence
    assert found[FOUND_BY[defect]].remedy


def test_sound_logs_pass() -> None:
    alarms = []
    for seed in range(30):
        rng = np.random.default_rng([seed, 5])
        task = random_table(rng)
        alarms += list(failed(marked(task.sample(300, rng), "truncated"), task.discount))
    assert len(alarms) <= 4, alarms  # nine tests that aim at one alarm in 200 logs each


@pytest.mark.parametrize("seed", range(3))
def test_states_that_hide_something_are_found(seed: int) -> None:
    for task in (graph(observations=6), graph(observations=6, sparse=True), model_fail()):
        log = marked(task.sample(512, np.random.default_rng(seed)), "terminated")
        assert "memory" in failed(log, task.discount)


def test_support_follows_the_target_to_where_nothing_was_tried() -> None:
    """The walk of 22 states: no row is beyond the states that the behaviour reaches."""
    task = toy_mountain_car(0.2, 0.8)
    log = marked(task.sample(128, np.random.default_rng(0)), "truncated")
    assert failed(log, 0.99)["support"].figure > 0.2
    answer = evaluation.evaluate(log, discount=0.99, methods=["lstd", "lstdq"])
    assert answer.verdict != "trust"


def test_one_episode_that_meets_a_clock_gives_it_away_by_a_round_length() -> None:
    """The same log with a limit of 247 steps cannot tell it from an end that is rare."""
    for horizon, told in ((250, True), (247, False)):
        task, seed, met = toy_mountain_car(0.6, 0.45, horizon=horizon), 0, 0
        while met != 1:
            log, seed = task.sample(128, np.random.default_rng([seed, 12])), seed + 1
            met = int(log.clock.sum())
        found = failed(marked(log, "terminated"), 0.99)
        assert ("clock" in found) == told


def test_rows_out_of_order_are_named() -> None:
    log, discount, _ = DEFECTS["steps out of order"](np.random.default_rng([8, 1]))
    found = failed(log, discount)["alignment"]
    assert "rows seem to be out of order" in found.sentence
    assert {"history", "hybrid"} <= set(found.kinds)  # weighted histories need the order, too


def test_a_log_that_names_next_states_shows_its_order() -> None:
    """States that look alike are no rows out of order, with or without a column of next states."""
    for seed in range(3):
        log, discount, _ = DEFECTS["states that look alike"](np.random.default_rng([8, seed]))
        for shown in (log, log.drop(columns="next_state")):
            found = failed(shown, discount)
            assert "memory" in found
            assert "alignment" not in found


def test_rounded_probabilities_that_do_not_sum_to_one_are_found() -> None:
    rng = np.random.default_rng(5)
    task = gridworld(0.6, 0.4)
    behavior = np.full_like(task.behavior, 0.25)
    behavior[:, :2] = [0.33, 0.17]  # round numbers that sum to 1 are no defect
    log = marked(replace(task, behavior=behavior).sample(200, rng), "truncated")
    assert "propensities" not in failed(log, 0.98)
    log["behavior_prob"] = log.behavior_prob.round(1)
    assert "sum to 1" in failed(log, 0.98)["propensities"].sentence


def test_hidden_velocity_is_found_and_a_full_observation_is_not() -> None:
    rng = np.random.default_rng(3)
    assert "memory" in failed(continuous.hidden_car(60, rng), 0.99)
    assert "memory" not in failed(continuous.pendulum(40, rng), 0.95)


def test_figures_reach_the_answer() -> None:
    log, discount, _ = DEFECTS["rewards one row late"](np.random.default_rng(2))
    answer = evaluation.evaluate(log, discount=discount, methods=["lstd"])
    assert answer.verdict != "trust"
    names = [test.name for test in answer.tests]
    assert names == sorted(names)
    assert "alignment" in names
    assert any("one row late" in reason for reason in answer.reasons)


def _changing(rows: int, seed: int) -> pd.DataFrame:
    """Decisions of a policy that changes while it logs, as one that learns does."""
    rng = np.random.default_rng(seed)
    state = rng.integers(0, 3, rows)
    chance = np.clip(np.linspace(0.3, 0.9, rows) + rng.normal(scale=0.1, size=rows), 0.05, 0.95)
    action = (rng.random(rows) < chance).astype(int)
    prob = np.where(action == 1, chance, 1.0 - chance)
    reward = (rng.random(rows) < 0.2 + 0.2 * action).astype(float)
    return pd.DataFrame(
        {
            "state": state,
            "action": action,
            "reward": reward,
            "behavior_prob": prob,
            "target_prob": 0.5,
        }
    )


def test_a_policy_that_changes_while_it_logs_is_no_defect_and_a_shifted_column_is() -> None:
    found = [
        evaluation.evaluate(_changing(4000, seed), methods=["lstd", "wis"]) for seed in range(5)
    ]
    assert [answer.verdict for answer in found] == ["trust"] * 5
    log = _changing(4000, 5)
    log["behavior_prob"] = np.roll(log.behavior_prob, 1)
    answer = evaluation.evaluate(log, methods=["lstd", "wis"])
    assert answer.verdict == "caution"
    assert any("belong to other actions" in reason for reason in answer.recommended.reasons)


def test_every_cell_has_logs_of_its_own_for_each_purpose() -> None:
    cell = CELLS["random table"]
    one, two = cell.log("settle", 0)[0], cell.log("report", 0)[0]
    assert len(one) != len(two) or not one.equals(two)
    assert one.equals(cell.log("settle", 0)[0])


def _battery(days: int, hidden: bool = False) -> pd.DataFrame:
    """Days of the battery trader, whose observations are its charge and, unless hidden, the price."""
    steps = domains.energy_storage(horizon=96).rollout(96 * days, seed=1)
    log = {name: getattr(steps, name) for name in ("episode", "step", "action", "reward")}
    for name in ("terminated", "truncated", "behavior_prob", "target_prob"):
        log[name] = getattr(steps, name)
    for k in range(1 if hidden else 2):
        log[f"obs_{k}"] = steps.observation[:, k]
        log[f"next_obs_{k}"] = steps.next_observation[:, k]
    return pd.DataFrame(log)


def test_eight_times_as_many_days_do_not_turn_trust_into_caution() -> None:
    """A full battery bends the dynamics; that is no memory, and a hidden price is."""
    words, widths = [], []
    for days in (60, 480):
        answer = evaluation.evaluate(_battery(days), 0.95, methods="lstd", lanes=0)
        words.append(answer.verdict)
        widths.append(answer.recommended.high - answer.recommended.low)
    assert words == ["trust", "trust"]
    assert widths[1] < 0.5 * widths[0]
    hidden = evaluation.evaluate(_battery(120, hidden=True), 0.95, methods="lstd", lanes=0)
    assert [test.name for test in hidden.tests if not test.passed] == ["memory"]

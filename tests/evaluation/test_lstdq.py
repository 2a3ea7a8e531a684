"""LSTDQ on tables too large for equations of all states and actions."""

from __future__ import annotations

from itertools import count

import numpy as np
import pandas as pd
import pytest

from o2td import evaluation

STATES, ACTIONS, DISCOUNT = 150, 8, 0.9  # 1,200 pairs


def wide_log(episodes: int = 400, seed: int = 5) -> tuple[pd.DataFrame, np.ndarray]:
    """Walks through a random table, and the target policy (S, A); behaviour not logged."""
    rng = np.random.default_rng(seed)
    after = rng.integers(STATES, size=(STATES, ACTIONS))
    pays = rng.normal(size=(STATES, ACTIONS))
    target = rng.dirichlet(np.full(ACTIONS, 0.2), STATES)
    rows = []
    for episode in range(episodes):
        state = int(rng.integers(20))
        for step in count():
            tries = rng.random() < 0.5
            action = int(rng.integers(ACTIONS) if tries else target[state].argmax())
            ends = bool(rng.random() < 0.1)
            ahead = int(after[state, action])
            rows.append((episode, step, state, action, pays[state, action], ahead, ends))
            if ends:
                break
            state = ahead
    names = ["episode", "step", "state", "action", "reward", "next_state", "terminated"]
    log = pd.DataFrame(rows, columns=names)
    for action in range(ACTIONS):
        log[f"target_prob_{action}"] = target[log.state, action]
    return log, target


def by_hand(log: pd.DataFrame, target: np.ndarray) -> tuple[float, float]:
    """The value of the tried actions' model, and the share of visits to actions never tried."""
    tries, gain = np.zeros((STATES, ACTIONS)), np.zeros((STATES, ACTIONS))
    flow = np.zeros((STATES, ACTIONS, STATES))
    for row in log.itertuples():
        tries[row.state, row.action] += 1.0
        gain[row.state, row.action] += row.reward
        flow[row.state, row.action, row.next_state] += not row.terminated
    policy = target * (tries > 0)
    policy /= np.maximum(policy.sum(axis=1, keepdims=True), 1e-300)
    mean = policy / np.maximum(tries, 1.0)
    chain = DISCOUNT * np.einsum("sa,sat->st", mean, flow)
    start = np.bincount(log.state[log.step == 0], minlength=STATES) / log.episode.nunique()
    value = np.linalg.solve(np.eye(STATES) - chain, (mean * gain).sum(axis=1))
    visits = np.linalg.solve(np.eye(STATES) - chain.T, start)
    missed = visits * (target * (tries == 0)).sum(axis=1)
    ahead = 1.0 / (1.0 - DISCOUNT * (1.0 - log.terminated.mean()))
    return float(start @ value), float(
        missed.sum() * ahead / ((visits - missed).sum() + missed.sum() * ahead)
    )


@pytest.fixture(scope="module")
def asked() -> tuple[evaluation.Evaluation, float, float]:
    """The default answer, the value by hand, and the untried share by hand."""
    log, target = wide_log()
    return evaluation.evaluate(log, discount=DISCOUNT, lanes=40), *by_hand(log, target)


def test_a_large_table_is_solved_in_its_states(asked) -> None:
    answer, value, _ = asked
    assert answer["lstdq"].value == pytest.approx(value, rel=1e-7)
    assert answer["lstdq"].low < value < answer["lstdq"].high


def test_actions_never_tried_count_as_visits_beyond_the_log(asked) -> None:
    answer, _, untried = asked
    log, _ = wide_log()
    returns = (log.reward * DISCOUNT**log.step).groupby(log.episode).sum()
    assert untried > 0.01
    expected = untried * returns.std(ddof=0)
    assert answer["lstdq"].approximation_error == pytest.approx(expected, rel=0.01)


def test_nobody_is_asked_about_ratios_that_lstdq_does_not_use(asked) -> None:
    answer, _, _ = asked
    assert any("ratios average" in reason for reason in answer["lstd"].reasons)
    assert not any("ratios average" in reason for reason in answer["lstdq"].reasons)

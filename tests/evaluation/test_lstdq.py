"""LSTDQ on tables too large for equations of all states and actions, and on chosen features."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pandas as pd
import pytest

from o2td import evaluation
from o2td.evaluation.candidates import candidates

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


# -- on chosen features ----------------------------------------------------------------------------


def pushes(x: np.ndarray) -> np.ndarray:
    """Probabilities of stepping down and up, (n, 2)."""
    up = 1.0 / (1.0 + np.exp(-2.0 * x))
    return np.column_stack([1.0 - up, up])


def drifting(rows: int = 400) -> pd.DataFrame:
    """A point on a line, pushed at random until an end by chance; too few rows for bases around rows."""
    rng, log = np.random.default_rng(11), []
    while len(log) < rows:
        x, step, ends, episode = float(rng.uniform(-1.0, 1.0)), 0, False, len(log)
        while not ends:
            action, ends = int(rng.integers(2)), bool(rng.random() < 0.2)
            after = 0.9 * x + 0.2 * (2 * action - 1) + 0.05 * float(rng.standard_normal())
            log.append((episode, step, x, after, action, np.sin(3.0 * x) + action, ends))
            x, step = after, step + 1
    names = ["episode", "step", "obs_0", "next_obs_0", "action", "reward", "terminated"]
    found = pd.DataFrame(log, columns=names).assign(behavior_prob=0.5)
    found[["target_prob_0", "target_prob_1"]] = pushes(found.obs_0.to_numpy())
    return found


def solved_by_hand(log: pd.DataFrame, features: Any, ridge: float) -> float:
    """LSTDQ's value at the starts from plain matrices."""
    here, ahead = (features.transform(log[[name]].to_numpy()) for name in ("obs_0", "next_obs_0"))
    n, d = here.shape
    policy = log[["target_prob_0", "target_prob_1"]].to_numpy()
    after = np.vstack([policy[1:], policy[:1]]) * DISCOUNT * ~log.terminated.to_numpy()[:, None]
    taken = np.zeros((n, 2, d))
    taken[np.arange(n), log.action] = here
    taken = taken.reshape(n, -1)
    later = (after[:, :, None] * ahead[:, None, :]).reshape(n, -1)
    A = taken.T @ (taken - later)
    A += ridge * np.abs(np.diagonal(A)).mean() * np.eye(2 * d)
    first = (log.step == 0).to_numpy()
    start = (policy[first][:, :, None] * here[first][:, None, :]).reshape(first.sum(), -1)
    return float(start.mean(axis=0) @ np.linalg.solve(A, taken.T @ log.reward.to_numpy()))


def test_on_chosen_features_it_is_a_mean_of_fits_on_those_of_least_loss() -> None:
    log = drifting()
    answer = evaluation.evaluate(log, DISCOUNT, methods=["lstd", "lstdq"], lanes=20, seed=3)
    listed = pd.DataFrame(answer.features["candidates"])
    kept = listed[listed.verdict.str.startswith("kept")]
    rank = kept.kernel_bellman_loss.rank() + kept.returns_error.rank()
    best = kept[kept.trace == 0.0].loc[rank[kept.trace == 0.0].sort_values(kind="stable").index][:3]
    inputs = log[["obs_0"]].to_numpy()
    maps = list(candidates(inputs, 3, len(log)))
    assert len(listed) == 2 * len(maps)  # without and with a trace
    values = [solved_by_hand(log, maps[k // 2], max(best.ridge[k], 1e-5)) for k in best.index]
    apart = np.abs(values - np.median(values))
    near = np.array(values)[apart <= 4.0 * 1.4826 * np.median(apart)]  # an odd one is left out
    assert len(near) >= 2
    assert f"mean of {len(near)} fits" in answer["lstdq"].about
    assert answer["lstdq"].value == pytest.approx(near.mean(), rel=1e-5)
    assert answer["lstdq"].approximation_error >= np.ptp(near) / 2.0 - 1e-9

"""Copies of episodes and correlated neighbours, by plain loops."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from o2td.evaluation.log_tests import independence
from o2td.evaluation.log_tests.independence import Seen, _chance, _copies, _neighbours

from .episodes import block_of


def episodes_of(rewards: list[list[float]], action: int = 0) -> pd.DataFrame:
    """One state and one action: a reward's surprise is its distance from their mean."""
    rows = [
        {"episode": e, "step": t, "reward": reward, "truncated": t == len(each) - 1}
        for e, each in enumerate(rewards)
        for t, reward in enumerate(each)
    ]
    log = pd.DataFrame(rows)
    return log.assign(state=0, next_state=0, action=action, terminated=False, rho=1.0)


def neighbours(rewards: list[list[float]]) -> float:
    return _neighbours(Seen(block_of(episodes_of(rewards))))


@pytest.mark.parametrize(("seed", "count"), [(0, 40), (1, 13), (2, 9)])
def test_correlation_with_the_next_episodes_by_plain_loops(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    rewards = [list(rng.normal(size=rng.integers(1, 5))) for _ in range(count)]
    every = np.concatenate(rewards)
    low, high = np.quantile(every, [0.001, 0.999])
    mean = np.clip(every, low, high).mean()
    each = [sum(np.clip(one, low, high) - mean) / np.sqrt(len(one)) for one in rewards]
    each = [one - np.mean(each) for one in each]
    total = own = 0.0
    for i in range(count):
        for j in range(i + 1, min(i + min(5, count // 4), count - 1) + 1):
            total += each[i] * each[j]
            own += (each[i] * each[j]) ** 2
    assert neighbours(rewards) == pytest.approx(total / np.sqrt(own), rel=1e-9)


def test_surprises_far_apart_and_equal_rewards_are_no_correlation() -> None:
    """Opposite surprises with nothing near them: every product is 0."""
    rewards = [[0.0] for _ in range(40)]
    assert neighbours(rewards) == 0.0
    for place in (3, 21):
        rewards[place], rewards[place + 9] = [1.0], [-1.0]
    assert neighbours(rewards) == 0.0


def test_pairs_of_equal_episodes_are_counted_and_chance_bounds_them() -> None:
    """Episodes are equal only in everything, the order of rows included; four of them are six pairs."""
    rng = np.random.default_rng(4)
    rewards = [list(rng.normal(size=4)) for _ in range(30)]
    rewards[7] = rewards[2]
    rewards[11] = rewards[20] = rewards[21] = rewards[15]
    rewards[8] = rewards[3][::-1]
    log = episodes_of(rewards).assign(state=lambda rows: np.arange(len(rows)), behavior_prob=0.5)
    log = log.drop(columns="rho").assign(target_prob=0.5)
    recurs = log.state.to_numpy().copy()
    for copy, one in ((7, 2), (11, 15), (20, 15), (21, 15)):
        recurs[4 * copy : 4 * copy + 4] = recurs[4 * one : 4 * one + 4]
    log["state"] = recurs
    log["next_state"] = np.where(log.truncated, recurs, np.roll(recurs, -1))
    copies, expected = _copies(Seen(block_of(log)))
    assert copies == 0  # each has 29 / 16 expected copies by its actions: chance may repeat them
    assert expected == 0.0
    log["behavior_prob"] = 0.1
    copies, expected = _copies(Seen(block_of(log)))
    assert copies == 1 + 6
    assert expected <= 30 * 29 * 0.1**4 / 2.0 + 1e-12
    other = log.copy()
    other.loc[28:31, "action"] = [0, 1, 0, 0]
    assert _copies(Seen(block_of(other)))[0] == 6


@pytest.mark.parametrize("alarming", [False, True])
@pytest.mark.parametrize("logged", [False, True])
def test_an_episodes_chance_is_at_most_that_of_its_actions_and_of_what_recurs(
    monkeypatch: pytest.MonkeyPatch, alarming: bool, logged: bool
) -> None:
    """In a state, as often as action, next state and reward come together there."""
    rng = np.random.default_rng(8)
    rewards = [list(rng.choice([0.0, 1.0], rng.integers(1, 4))) for _ in range(40)]
    log = episodes_of(rewards)
    n = len(log)
    log = log.assign(state=rng.integers(0, 2, n), action=rng.integers(0, 2, n))
    log["next_state"] = np.where(log.truncated, 1, np.roll(log.state, -1))
    log["terminated"] = log.truncated & (log.episode % 2 == 0)
    log["truncated"] &= ~log.terminated
    if logged:
        chances = rng.choice([0.2, 0.9, 1e-9], n, p=[0.5, 0.48, 0.02])
        log = log.drop(columns="rho").assign(behavior_prob=chances, target_prob=0.5)
    dependent = [Alarm(alarming)]
    monkeypatch.setattr(independence, "own_dependence", lambda view: dependent)
    view = Seen(block_of(log))
    ahead = np.where(log.terminated, -1, log.next_state)
    each = []
    for _, rows in log.groupby("episode"):
        actions = recurs = 0.0
        for t in rows.index:
            if logged:
                actions += np.log(max(log.behavior_prob[t], 1e-300))
            there = log.state == log.state[t]
            alike = there & (log.action == log.action[t]) & (ahead == ahead[t])
            recurs += np.log((alike & (log.reward == log.reward[t])).sum() / there.sum())
        each.append(min(0.0, actions, 0.0 if alarming else recurs))
    np.testing.assert_allclose(_chance(view), np.exp(each), rtol=1e-9)


class Alarm:
    """A dependence on the past, or none."""

    def __init__(self, alarming: bool) -> None:
        self.alarming = alarming


@pytest.mark.parametrize(("chance", "verdict"), [(0.002, "caution"), (0.004, "trust")])
def test_equal_episodes_alarm_at_half_of_the_chance_of_a_test(
    monkeypatch: pytest.MonkeyPatch, chance: float, verdict: str
) -> None:
    """Copies are one of two things that this test looks for."""
    rng = np.random.default_rng(9)
    view = Seen(block_of(episodes_of([list(rng.normal(size=3)) for _ in range(60)])))
    monkeypatch.setattr(independence, "seen", lambda study: view)
    monkeypatch.setattr(independence, "poisson_chance", lambda copies, expected: chance)
    monkeypatch.setattr(independence, "_neighbours", lambda view: 0.0)
    found = independence.Independence().find(SimpleNamespace(users=False))
    assert found.verdict == verdict

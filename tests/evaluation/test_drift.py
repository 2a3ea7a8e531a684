"""Transitions that drift where sums over all states hide it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from o2td.evaluation.log_tests.drift import Seen, _by_pair, _effects, chi_square_chance

from .episodes import block_of


def ring(seed: int, drift: float, episodes: int = 200, steps: int = 10) -> pd.DataFrame:
    """Four states: even ones turn one way and odd ones the other, each more often with time."""
    rng = np.random.default_rng([seed, 3])
    time = np.linspace(-1.0, 1.0, episodes)
    state, rows = rng.integers(0, 4, episodes), []
    for step in range(steps):
        up = rng.random(episodes) < 0.5 + drift * time * np.where(state % 2, 1.0, -1.0)
        ahead = (state + np.where(up, 1, 3)) % 4
        part = {"episode": np.arange(episodes), "step": step, "state": state, "next_state": ahead}
        rows.append(pd.DataFrame({**part, "action": rng.integers(0, 2, episodes)}))
        state = ahead
    log = pd.concat(rows).sort_values(["episode", "step"], ignore_index=True)
    return log.assign(reward=0.0, terminated=False, truncated=log.step == steps - 1, rho=1.0)


def chance(log: pd.DataFrame) -> float:
    view = Seen(block_of(log))
    return _by_pair(view, np.linspace(-1.0, 1.0, view.count))


def test_trends_that_cancel_over_states_are_found_pair_by_pair():
    assert all(chance(ring(seed, 0.25)) < 1e-6 for seed in range(3))


def test_without_a_trend_the_chance_is_as_chance_has_it():
    found = np.array([chance(ring(seed, 0.0)) for seed in range(100, 160)])
    assert (found < 0.05).mean() < 0.15
    assert 0.3 < np.median(found) < 0.7


def plain_chance(log: pd.DataFrame) -> float:
    """The same by plain loops: next states with less than eight rows of a pair count as one."""
    place = np.linspace(-1.0, 1.0, log.episode.nunique())[log.episode]
    statistic = freedom = 0.0
    for _, rows in log.assign(place=place).groupby(["state", "action"]):
        n, x = len(rows), (rows.place - rows.place.mean()).to_numpy()
        ahead = np.where(rows.terminated, -1, rows.next_state)
        kinds, count = np.unique(ahead, return_counts=True)
        often = kinds[count >= 8]
        cells = [ahead == one for one in often]
        if len(often) < len(kinds):
            cells.append(~np.isin(ahead, often))
        for mine in cells:
            if mine.sum() >= 8 and mine.sum() < n and (x @ x) > 0.0:
                statistic += x[mine].sum() ** 2 * (n - 1.0) / (mine.sum() * (x @ x))
                freedom += (len(cells) - 1.0) / len(cells)
    return chi_square_chance(statistic, freedom) if freedom else 1.0


@pytest.mark.parametrize("seed", range(4))
def test_trends_pair_by_pair_by_plain_loops(seed: int) -> None:
    log = ring(seed, 0.05, episodes=20 + 15 * seed, steps=6)
    rng = np.random.default_rng(seed)
    log["terminated"] = log.truncated & (rng.random(len(log)) < 0.7)
    log["truncated"] &= ~log.terminated
    log["next_state"] = np.where(rng.random(len(log)) < 0.04, 7, log.next_state)
    assert chance(log) == pytest.approx(plain_chance(log), rel=1e-6)


def test_one_next_state_only_shows_no_trend() -> None:
    log = ring(0, 0.0, episodes=40)
    assert chance(log.assign(state=0, next_state=0, action=0)) == 1.0


def test_what_may_change_along_a_log_is_summed_by_episode_and_named() -> None:
    log = ring(1, 0.0, episodes=60, steps=8)
    rng = np.random.default_rng(2)
    log["reward"] = rng.normal(size=len(log))
    log["terminated"], log["truncated"] = log.truncated & (log.episode % 3 > 0), False
    view = Seen(block_of(log))
    y, names = _effects(view)
    assert names == [
        *["rewards given state and action"] * 2, "ends given state and action",
        *["transitions"] * 4, *["start states"] * (y.shape[1] - 7),
    ]  # fmt: skip
    assert y.shape == (60, len(names))

    def summed(column: pd.Series) -> np.ndarray:
        left = column - column.groupby([log.state, log.action]).transform("mean")
        return np.asarray(left.groupby(log.episode).sum() / np.sqrt(8.0))

    low, high = np.quantile(log.reward, [0.001, 0.999])
    clipped = log.reward.clip(low, high)
    np.testing.assert_allclose(y[:, 0], summed(clipped), atol=1e-9)
    np.testing.assert_allclose(y[:, 1], summed(clipped.abs()), atol=1e-9)
    np.testing.assert_allclose(y[:, 2], summed(log.terminated * 1.0), atol=1e-9)
    np.testing.assert_allclose(y[:, 3:7].sum(axis=1), 0.0, atol=1e-9)
    ends = {1.0 * row for row in y[:, 7:].ravel()}
    assert ends <= {0.0, 1.0}
    seen = log.drop(columns=["state", "next_state"])
    seen = seen.assign(obs_0=rng.normal(size=480), obs_1=rng.normal(size=480))
    y, names = _effects(Seen(block_of(seen)))
    assert names[3:] == ["transitions"] * 2 + ["start states"] * 2
    assert y.shape == (60, 7)
    starts = seen.groupby("episode")[["obs_0", "obs_1"]].first()
    np.testing.assert_allclose(y[:, 5:], starts)

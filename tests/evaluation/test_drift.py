"""Transitions that drift where sums over all states hide it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from o2td.evaluation.log_tests.drift import Seen, _by_pair

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

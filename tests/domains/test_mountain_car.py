"""The car moves as in Gymnasium, and its value is what its steps cost."""

from __future__ import annotations

import numpy as np
import pytest

from o2td import domains
from o2td.domains.mountain_car import _move


def test_car_moves_as_in_gymnasium() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("MountainCar-v0").unwrapped
    env.reset(seed=0)
    rng = np.random.default_rng(1)
    states = np.column_stack([rng.uniform(-1.2, 0.6, 3000), rng.uniform(-0.07, 0.07, 3000)])
    states[:100] = [[-1.2, 0.0]] * 50 + [[-1.19, -0.07]] * 50
    states[100:200, 0] = rng.uniform(0.45, 0.5, 100)
    ended = 0
    for state in states:
        action = int(rng.integers(3))
        env.state = tuple(state)
        _, reward, terminated, _, _ = env.step(action)
        position, velocity, stopped = _move(*state, action)
        assert (position, velocity, stopped) == (*env.state, terminated)
        assert reward == -1.0
        ended += terminated
    assert ended > 50


def test_car_follows_gymnasium_for_whole_episodes() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    rows = domains.mountain_car(epsilon_behavior=0.3).rollout(2000, seed=6)
    env = gymnasium.make("MountainCar-v0")
    for t in range(len(rows)):
        if rows.start[t]:
            env.reset(seed=0)
            env.unwrapped.state = tuple(rows.observation[t])
        _, _, terminated, truncated, _ = env.step(int(rows.action[t]))
        assert (terminated, truncated and not terminated) == (rows.terminated[t], rows.truncated[t])
        np.testing.assert_array_equal(env.unwrapped.state, rows.next_observation[t])
    assert rows.terminated.any()


def test_car_starts_and_pushes_with_its_motion() -> None:
    rows = domains.mountain_car().rollout(5000, seed=0)
    begun = rows.observation[rows.start]
    assert ((begun[:, 0] >= -0.6) & (begun[:, 0] <= -0.4) & (begun[:, 1] == 0.0)).all()
    assert len(begun) > 20
    np.testing.assert_array_equal(rows.action, np.where(rows.observation[:, 1] >= 0.0, 2, 0))
    assert (domains.mountain_car().sample(500).rho == 1.0).all()


def test_car_value_is_the_discounted_number_of_steps() -> None:
    problem = domains.mountain_car(discount=0.9)
    rows = problem.rollout(2000, seed=3)
    first = np.flatnonzero(rows.start)[:5]
    length = np.diff(np.flatnonzero(rows.start))[:5]
    value = problem.rollout_value(rows.observation[first], runs=2)
    np.testing.assert_allclose(value.mean, -(1 - 0.9**length) / 0.1, rtol=1e-6)
    np.testing.assert_array_equal(value.standard_error, 0.0)
    undiscounted = domains.mountain_car(discount=1.0).rollout_value(rows.observation[first], runs=2)
    np.testing.assert_array_equal(undiscounted.mean, -length)

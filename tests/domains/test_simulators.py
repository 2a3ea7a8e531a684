"""The two domains with compiled simulators: dynamics, constants, and both ways of running them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2td import domains
from o2td.domains.energy_storage import GAP, LEVELS, LOWEST, _next_price, _trade
from o2td.domains.mountain_car import _move
from o2td.simulated import SimulatedProblem

MADE = {
    "car, on-policy": domains.mountain_car,
    "car": lambda: domains.mountain_car(epsilon_target=0.1, epsilon_behavior=0.4, horizon=90),
    "storage": lambda: domains.energy_storage(horizon=300),
    "storage, soft": lambda: domains.energy_storage(epsilon_target=0.2),
}


@pytest.fixture(params=MADE)
def problem(request: pytest.FixtureRequest) -> SimulatedProblem:
    return MADE[request.param]()


def plain(problem: SimulatedProblem) -> SimulatedProblem:
    """The same problem without its compiled functions."""
    return SimulatedProblem(
        problem.reset,
        problem.step,
        problem.behavior,
        problem.target,
        problem.features,
        problem.discount,
        horizon=problem.horizon,
    )


def test_compiled_and_plain_rows_are_the_same(problem: SimulatedProblem) -> None:
    for double, scheme in ((False, "sequential"), (True, "iid")):
        one = problem.sample(700, seed=(2, 7), scheme=scheme, double=double)
        two = plain(problem).sample(700, seed=(2, 7), scheme=scheme, double=double)
        for name in (
            "phi",
            "next_phi",
            "reward",
            "discount",
            "rho",
            "start",
            "next_phi_2",
            "rho_2",
        ):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    first, second = problem.rollout(400, seed=1), plain(problem).rollout(400, seed=1)
    for one_column, two_column in zip(first.columns, second.columns, strict=True):
        np.testing.assert_array_equal(one_column, two_column)


def test_compiled_and_plain_returns_are_the_same(problem: SimulatedProblem) -> None:
    x = problem.observations(3, seed=4, every=20)
    one = problem.rollout_value(x, runs=3, seed=5, steps=50)
    two = plain(problem).rollout_value(x, runs=3, seed=5, steps=50)
    np.testing.assert_allclose(one.mean, two.mean, rtol=1e-12)
    np.testing.assert_allclose(one.standard_error, two.standard_error, atol=1e-12)


def test_observations_stay_within_bounds(problem: SimulatedProblem) -> None:
    x = problem.observations(20_000, seed=0)
    assert (x >= problem.bounds[:, 0]).all()
    assert (x <= problem.bounds[:, 1]).all()


def test_actions_follow_the_behavior(problem: SimulatedProblem) -> None:
    """Counts of a binary event, five standard deviations: a false alarm in 10^6."""
    rows = problem.rollout(50_000, seed=8)
    likely = rows.behavior_prob > 0.5
    chance = np.array([problem.behavior(x).max() for x in rows.observation[::50]])
    expected, n = chance.mean(), len(rows)
    assert abs(likely.mean() - expected) <= 5 * np.sqrt(expected * (1 - expected) / n) + 1e-12
    batch = problem.transitions_of(rows)
    np.testing.assert_array_equal(batch.rho, rows.target_prob / rows.behavior_prob)


# -- mountain car ----------------------------------------------------------------------------------


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


# -- energy storage --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("charge", "price", "action", "u", "after", "money"),
    [
        (0.5, 1.0, 1, 0.9, 0.5, 0.0),
        # moves 1 unit: 0.5 -> 0.6, mean 0.55, wear 0.02 (1 + 8 * 0.1^4)
        (0.5, 1.0, 2, 0.5, 0.6, -1 / 0.95 - 0.02 * 1.0008),
        (0.5, 1.2, 0, 0.5, 0.4, 0.95 * 1.2 - 0.02 * 1.0008),
        # full and empty: nothing moves, nothing is paid
        (1.0, 1.0, 2, 0.5, 1.0, 0.0),
        (0.0, 1.6, 0, 0.5, 0.0, 0.0),
        # room for half a unit only
        (0.95, 0.4, 2, 0.5, 1.0, -0.4 * 0.5 / 0.95 - 0.02 * 0.5 * (1 + 8 * 0.95**4)),
    ],
)
def test_trades(
    charge: float, price: float, action: int, u: float, after: float, money: float
) -> None:
    assert _trade(charge, price, action, u) == pytest.approx((after, money))


def test_prices_are_the_documented_chain(fits: Any) -> None:
    rng = np.random.default_rng(0)
    for level in range(LEVELS):
        seen = np.array([_next_price(LOWEST + GAP * level, u) for u in rng.random(5000)])
        counts = np.bincount(np.rint((seen - LOWEST) / GAP).astype(int), minlength=LEVELS)
        side = np.sign(level - 3)
        up, down = {0: (0.2, 0.2), -1: (0.25, 0.15), 1: (0.15, 0.25)}[int(side)]
        expected = np.zeros(LEVELS)
        expected[min(level + 1, LEVELS - 1)] += up
        expected[max(level - 1, 0)] += down
        expected[level] += 1 - up - down
        fits(counts.astype(float), expected * 5000)


def test_storage_never_ends_and_its_thresholds_earn() -> None:
    problem = domains.energy_storage()
    rows = problem.rollout(5000, seed=0)
    assert not rows.terminated.any()
    assert rows.start.sum() == 1
    assert len(np.unique(rows.observation[:, 0])) > 2000
    middle = np.array([[0.5, 1.0]])
    value = problem.rollout_value(middle, runs=2000, seed=1)
    noisy = domains.energy_storage(epsilon_target=0.5).rollout_value(middle, runs=2000, seed=2)
    spread = np.hypot(value.standard_error[0], noisy.standard_error[0])
    assert value.mean[0] > noisy.mean[0] + 5 * spread
    assert value.mean[0] > 5 * value.standard_error[0]
    idle = domains.energy_storage(buy_below=0.0, sell_above=9.0)
    assert idle.rollout_value(middle, runs=2).mean[0] == 0.0

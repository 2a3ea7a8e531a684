"""The two domains with compiled simulators: dynamics, constants, and both ways of running them."""

from __future__ import annotations

import numpy as np
import pytest

from o2td import domains
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


# -- energy storage --------------------------------------------------------------------------------

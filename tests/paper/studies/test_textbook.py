"""Problems from textbooks and Gymnasium: their published numbers."""

from __future__ import annotations

import numpy as np
import pytest

from o2td import domains, exact
from o2td.paper.studies import textbook


def returned(moves: int, discount: float) -> float:
    """The value of a path that costs 1 a move."""
    return -float(np.sum(discount ** np.arange(moves)))


@pytest.mark.parametrize(
    ("problem", "start", "value"),
    [
        (textbook.cliff(0, 0), 36, returned(17, 0.95)),
        (textbook.windy_gridworld(1, 0), 30, returned(15, 1.0)),
        (textbook.windy_gridworld(5, 0), 30, returned(7, 1.0)),  # with king's moves
        (textbook.maze(1, 0), 18, 0.95**13),
    ],
)
def test_paths_are_as_long_as_in_the_book(problem, start, value):
    np.testing.assert_allclose(exact.value(problem)[start], value, rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("FrozenLake-v1", {"map_name": "4x4"}, textbook.frozen_lake(1, 0)),
        ("FrozenLake-v1", {"map_name": "8x8"}, textbook.frozen_lake(5, 0)),
        ("Taxi-v4", {}, textbook.taxi(5, 0)),
    ],
)
def test_tables_are_those_of_gymnasium(name, options, problem):
    pytest.importorskip("gymnasium")
    other = domains.from_gymnasium(name, discount=0.99, **options)
    found, expected = (one.start @ exact.value(one) for one in (problem, other))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_blackjack_has_the_value_of_the_book():
    """Example 5.4: sum 13 with a usable ace against a deuce, by a hundred million episodes."""
    values = exact.value(textbook.blackjack(0, 0))
    assert values[((13 - 12) * 10 + 2 - 1) * 2 + 1] == pytest.approx(-0.27726, abs=3e-4)


def test_bold_play_of_the_gambler():
    values = exact.value(textbook.gambler(1, 0))
    np.testing.assert_allclose(values[[25, 50, 75]], [0.4**2, 0.4, 0.4 + 0.6 * 0.4])


def test_a_day_of_car_rental_is_what_its_text_says():
    problem = textbook.car_rental(0, 0)
    rng, n = np.random.default_rng(0), 200_000
    first, second = 4, 2  # in the morning, after one car was moved from the first place
    rented = np.minimum(first, rng.poisson(3, n)), np.minimum(second, rng.poisson(4, n))
    earned = 10.0 * (rented[0] + rented[1]) - 2.0
    left = np.minimum(first - rented[0] + rng.poisson(3, n), 20)
    only = np.zeros_like(problem.target)
    only[:, 6] = 1.0
    s = 5 * 21 + 1
    np.testing.assert_allclose(problem.expected_reward(only)[s], earned.mean(), rtol=5e-3)
    reached = problem.transition_matrix(only)[s].reshape(21, 21)
    np.testing.assert_allclose(reached.sum(axis=1) @ np.arange(21), left.mean(), rtol=5e-3)

"""Decision processes from books and papers: their published numbers, or what their texts say."""

from __future__ import annotations

import numpy as np
import pytest

from o2td import exact
from o2td.paper.studies import operations


def moves(problem, action):
    """Transitions under one action."""
    only = np.zeros_like(problem.target)
    only[:, action] = 1.0
    return problem.transition_matrix(only)


def test_utilities_of_the_small_world_are_those_of_the_book():
    """Russell & Norvig (1995), figure 17.3."""
    values = exact.value(operations.small_world(1, 0)).round(3)
    np.testing.assert_array_equal(values[:3], [0.812, 0.868, 0.918])
    np.testing.assert_array_equal(values[[4, 6]], [0.762, 0.660])
    np.testing.assert_array_equal(values[8:], [0.705, 0.655, 0.611, 0.388])


def test_the_taxi_goes_to_stands():
    """Howard (1960): in every town, for discounts near 1."""
    problem = operations.taxicab(1, 0)
    np.testing.assert_array_equal(problem.target[:, 1], 1.0)
    gain = exact.value(operations.taxicab(1, 0)) * (1.0 - 0.95)
    np.testing.assert_allclose(gain, 13.345, rtol=0.05)  # per trip, in the long run


def test_three_discs_take_seven_moves():
    values = exact.value(operations.hanoi(1, 0))
    assert values[0] == values.min() == -7.0
    stays = moves(operations.hanoi(0, 0), 0).diagonal()
    assert stays[0] == 0.0  # the small disc may go anywhere


def test_the_longer_patience_pays_in_two_loops():
    problem = operations.double_loop(1, 0)
    assert problem.target[0, 1] == 1.0
    assert exact.value(problem)[0] == pytest.approx(2.0 * 0.95**4 / (1.0 - 0.95**5))


def test_the_arm_that_pays_most_is_rarely_found():
    problem = operations.six_arms(1, 0)
    assert problem.target[0, 5] == 1.0
    assert exact.value(problem)[6] == pytest.approx(6000.0 / 0.05)
    assert moves(problem, 5)[0, 6] == 0.01


def test_engines_age_by_a_little_over_half_a_step_a_month():
    problem = operations.bus_engines(0, 0)
    np.testing.assert_allclose(moves(problem, 0)[:80] @ np.arange(90) - np.arange(80), 0.6209)
    np.testing.assert_allclose(moves(problem, 1) @ np.arange(90), 0.6209)


def test_old_forests_are_kept():
    problem = operations.forest(1, 0)
    assert problem.target[19, 0] == 1.0
    np.testing.assert_allclose(moves(problem, 0)[:, 0], 0.1)


def test_stock_meets_half_of_the_largest_demand_on_average():
    problem = operations.inventory(0, 0)
    then = moves(problem, 0) @ np.arange(13)
    np.testing.assert_allclose(then[8:], np.arange(8, 13) - 4.0)
    np.testing.assert_allclose(moves(problem, 3)[0], moves(problem, 0)[12])

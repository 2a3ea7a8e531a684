"""Problems from published papers: their published numbers, or what their texts say."""

from __future__ import annotations

import numpy as np
import pytest

from o2td import exact
from o2td.paper.studies import FAMILIES, FRESH, LATER, SETTLED, TEXTBOOK, literature

UP = 255  # every machine of SysAdmin runs


def moves(problem, action):
    """Transitions under one action."""
    only = np.zeros_like(problem.target)
    only[:, action] = 1.0
    return problem.transition_matrix(only)


def test_every_family_has_its_group():
    assert (*SETTLED, *TEXTBOOK, *FRESH, *LATER) == tuple(FAMILIES)
    assert [len(group) for group in (SETTLED, TEXTBOOK, FRESH, LATER)] == [18, 7, 7, 8]


@pytest.mark.parametrize("family", FRESH + LATER)
def test_problems_of_a_family_differ(family):
    some = [FAMILIES[family](k, 0) for k in range(8)]
    for one in some:
        assert np.linalg.norm(exact.value(one)) > 0.0
    alike = {(one.d, one.target.tobytes(), one.behavior.tobytes()) for one in some}
    assert len(alike) >= 4


def test_a_turn_of_pig_that_holds_at_20_scores_8_14():
    """Neller & Presser (2004)."""
    assert exact.value(literature.pig(1, 0))[0] == pytest.approx(8.14, abs=0.005)


def test_deep_sea_returns_one_less_its_costs():
    assert exact.value(literature.deep_sea(1, 0))[0] == pytest.approx(1.0 - 0.01)
    fails = exact.value(literature.deep_sea(5, 0))[0]
    assert 0.9**9 - 0.01 < fails < 0.9**9


def test_swimming_up_the_river_is_best():
    problem = literature.river_swim(1, 0)
    np.testing.assert_array_equal(problem.target[:, 1], 1.0)
    upper = moves(problem, 1) @ np.arange(6)
    np.testing.assert_allclose(upper - np.arange(6), [0.6, 0.3, 0.3, 0.3, 0.3, -0.4])


def test_servers_become_free_independently():
    problem = literature.access_control(0, 0)
    free = np.arange(44) // 4
    for action, taken in ((0, 0), (1, np.minimum(free, 1))):
        left = free - taken
        then = moves(problem, action) @ free
        np.testing.assert_allclose(then, left + 0.06 * (10 - left))


def test_the_long_walk_is_symmetric():
    values = exact.value(literature.long_jumps(1, 0))[1:-1]
    np.testing.assert_allclose(values, -values[::-1], atol=1e-9)
    assert (np.diff(values) > 0.0).all()
    right = moves(literature.long_jumps(0, 0), 1)
    np.testing.assert_allclose(
        right[[1000, 951, 901, 900], 1001], [1.0, 0.51, 0.01, 0.0], atol=1e-12
    )
    np.testing.assert_allclose(right[1, 2:102], 0.01)


def test_machines_fail_and_recover_as_the_competition_states():
    problem = literature.administrator(0, 0)
    none, last = moves(problem, 8), moves(problem, 7)
    assert none[UP, UP] == pytest.approx(0.95**8)
    assert none[UP - 1, UP] == pytest.approx(0.1 * 0.95**6 * 0.7)
    assert last[UP - 1, UP] == pytest.approx(0.95**6 * 0.7)


def test_longer_queues_are_served_faster():
    problem = literature.service_rate(1, 0)
    served = np.argmax(problem.target, axis=1)
    assert (np.diff(served[:47]) >= 0).all()  # a full queue costs no more than one nearly full
    drift = np.stack([moves(problem, action) @ np.arange(51) for action in range(4)], axis=1)
    drift -= np.arange(51)[:, None]
    np.testing.assert_allclose(drift[1:-1], np.tile([0.0, -0.2, -0.4, -0.6], (49, 1)), atol=1e-12)

"""Objectives as quadratics, thresholds, and which transitions of an inactive state matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from o2td import Problem, chain, exact
from o2td.errors import InputError, NoAnswerError
from o2td.linear_algebra import compress, orthonormalizer

from .conftest import make_problem


def test_suboptimality_where_the_features_express_the_value() -> None:
    """Up to 1e-9 of the size of V nothing is between theta and the best; beyond that all is."""
    problem = make_problem(features=np.eye(12))
    best = exact.value(problem)
    size = np.sqrt(exact.state_distribution(problem) @ best**2)
    for share, expected in ((0.0, 1.0), (5e-10, 1.0), (2e-9, np.inf)):
        assert exact.suboptimality(problem, best + share * size) == expected
    nothing = make_problem(features=np.eye(12), reward=np.zeros((12, 3, 12)))
    assert exact.suboptimality(nothing, np.full(12, 5e-10)) == 1.0
    assert exact.suboptimality(nothing, np.full(12, 2e-9)) == np.inf


def test_suboptimality_is_a_ratio_of_errors() -> None:
    problem = make_problem(seed=4)
    best, theta = exact.best_approximation(problem), np.arange(4.0)
    expected = exact.rmse(problem, theta) / exact.rmse(problem, best)
    assert exact.suboptimality(problem, theta) == pytest.approx(expected)
    assert exact.suboptimality(problem, best) == 1.0


def followed(target: Any, discount: Any) -> Problem:
    """State 0 leads to 1 by its first action and to itself by its second; in 1 nothing is followed."""
    P = np.zeros((2, 2, 2))
    P[0, 0, 1] = P[0, 1, 0] = P[1, :, 0] = 1.0
    even = np.full((2, 2), 0.5)
    return Problem(P, np.ones(2), discount, even, [target, [0.0, 0.0]], np.eye(2))


def test_what_leads_to_a_state_that_is_not_followed() -> None:
    """Only a transition that the target takes and that has a discount would need its value."""
    with pytest.raises(InputError, match="followed in state 0 but not in its successor 1"):
        exact.value(followed([1.0, 0.0], 0.9))
    assert exact.value(followed([0.0, 1.0], 0.9))[0] == pytest.approx(10.0)
    ends = np.zeros((2, 2, 2))
    ends[0, 1, 0] = 0.9
    assert exact.value(followed([0.5, 0.5], ends))[0] == pytest.approx(1.0 / 0.55)


def test_a_projection_of_as_many_states_as_are_held_densely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chain, "DENSE_LIMIT", 5)
    rng = np.random.default_rng(0)
    Phi, X = rng.normal(size=(5, 2)), rng.normal(size=(5, 2))
    expected = Phi @ np.linalg.solve(X.T @ Phi, X.T)
    np.testing.assert_allclose(exact.oblique_projection(Phi, X), expected, rtol=1e-9)
    with pytest.raises(InputError, match="a projection of 6 states"):
        exact.oblique_projection(np.ones((6, 1)), np.ones((6, 1)))
    with pytest.raises(InputError, match="a row for each state"):
        exact.oblique_projection(np.ones((3, 1)), np.ones((4, 1)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_regressions_are_compressed(weighted: bool, sparse: bool) -> None:
    rng = np.random.default_rng(6)
    rows, value, weight = rng.normal(size=(30, 3)), rng.normal(size=30), rng.random(30)
    weight[:5] = 0.0
    given = csr_array(rows) if sparse else rows
    found = compress(given, value, weight) if weighted else compress(given, value)
    share = weight if weighted else np.ones(30)
    for theta in (np.zeros(3), np.array([1.0, -2.0, 3.0])):
        expected = share @ (rows @ theta - value) ** 2
        total = np.sum((found.R @ (theta - found.center)) ** 2) + found.constant
        assert total == pytest.approx(expected, rel=1e-12)
    basis = orthonormalizer(given, weight if weighted else None)
    unit = basis.T @ (rows.T @ (share[:, None] * rows)) @ basis
    np.testing.assert_allclose(unit, np.eye(3), atol=1e-12)


def test_a_behaviour_that_never_comes_to_where_the_target_is_followed() -> None:
    """State 0 is left for ever for state 1, in which no target is followed."""
    problem = followed([0.0, 1.0], 0.9)
    system = exact.bellman_system.BellmanSystem(problem)
    system.visits = np.array([0.0, 1.0])
    with pytest.raises(NoAnswerError, match="the behaviour visits no state in which the target"):
        _ = system.weight
    system = exact.bellman_system.BellmanSystem(problem)
    system.visits = np.array([0.25, 0.75])
    np.testing.assert_array_equal(system.weight, [1.0, 0.0])


def test_dann_s_form_needs_a_target_in_every_visited_state() -> None:
    problem = followed([0.0, 1.0], 0.9)
    with pytest.raises(InputError, match=r'form "dann" needs a target that is followed in every'):
        exact.rmsbe(problem, np.zeros(2), form="dann")


def test_dann_s_form_asks_nothing_of_states_that_are_never_visited() -> None:
    P = np.zeros((3, 2, 3))
    P[0, :, 1] = P[1, :, 0] = P[2, :, 0] = 1.0
    even = np.full((3, 2), 0.5)
    target = np.array([[0.7, 0.3], [0.2, 0.8], [0.0, 0.0]])
    start = np.array([1.0, 0.0, 0.0])
    problem = Problem(P, np.arange(3.0), 0.9, even, target, np.eye(3), start=start)
    assert exact.rmsbe(problem, exact.value(problem), form="dann") == pytest.approx(0.0)
    model = exact.model(problem)
    assert set(model.state) == {0, 1}
    assert (model.probability > 0.0).all()

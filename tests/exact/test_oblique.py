"""Oblique projections: which states count, whatever the size of X, and directions by their formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2td import Problem, exact
from o2td.errors import InputError, NoAnswerError
from o2td.exact import oblique

from .conftest import make_problem


def test_a_matrix_has_rows() -> None:
    with pytest.raises(InputError, match=r"X has no rows \(shape \(0, 2\)\); pass one for each"):
        oblique._matrix("X", np.zeros((0, 2)))
    np.testing.assert_array_equal(oblique._matrix("X", np.eye(2)), np.eye(2))


def never_entered(features: Any = None) -> Problem:
    """States 0 and 1 take turns; state 2 leads to 0, and nothing leads to it."""
    P = np.zeros((3, 1, 3))
    P[0, 0, 1] = P[1, 0, 0] = P[2, 0, 0] = 1.0
    one = np.ones((3, 1))
    phi = np.eye(3) if features is None else features
    return Problem(
        P, np.array([1.0, 2.0, 5.0]), 0.5, one, one, phi, start=np.array([1.0, 0.0, 0.0])
    )


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_a_state_that_is_never_visited_counts_where_x_weights_it(scale: float) -> None:
    problem, X = never_entered(), np.diag([1.0, 1.0, 0.5])
    theta = exact.oblique_fixed_point(problem, scale * X)
    np.testing.assert_allclose(theta, exact.value(problem), rtol=1e-12)
    assert exact.amplification(problem, scale * X) == np.inf
    phi = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    for weight in (0.0, 1e-15):  # rounding: the features of state 2 are not asked
        weighted = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, weight]])
        theta = exact.oblique_fixed_point(never_entered(phi), scale * weighted)
        np.testing.assert_allclose(theta, exact.value(problem)[:2], rtol=1e-12)
        assert exact.amplification(never_entered(phi), scale * weighted) == pytest.approx(1.0)


def test_a_direction_spans_as_many_dimensions_as_the_features() -> None:
    problem = make_problem(seed=3)
    X = exact.optimal_direction(problem)
    for given in (X[:, :3], np.column_stack([X, np.arange(12.0) ** 2])):
        with pytest.raises(NoAnswerError, match="they must be as many"):
            exact.amplification(problem, given)
        with pytest.raises(NoAnswerError, match="they must be as many"):
            exact.oblique_fixed_point(problem, given)


@pytest.mark.parametrize("trace", [0.0, 0.3, 1.0])
def test_directions_are_their_formulas(trace: float) -> None:
    interest = np.linspace(0.5, 2.0, 12)
    problem = make_problem(seed=2, interest=interest)
    phi, xi = problem.features, exact.state_distribution(problem)
    P = np.asarray(problem.discounted_matrix(problem.target))
    K = P / 0.9
    L, eye = np.eye(12) - P, np.eye(12)
    delta = L @ phi
    g = 0.9
    followon = np.linalg.solve(L.T, xi * interest)
    square = np.sum(phi**2, axis=1)
    along = np.sum(delta * phi, axis=1)
    moment = square - 2.0 * g * np.sum(phi * (K @ phi), axis=1) + g**2 * (K @ square)
    state, moments = along / np.sum(delta**2, axis=1), along / moment
    emphasis = trace * xi * interest + (1.0 - trace) * followon
    found = exact.directions(problem, trace)
    ahead = np.linalg.inv(eye - trace * P.T)
    for name, weight, own in (
        ("TD", xi, xi),
        ("ETD", followon, emphasis),
        ("O2TD", state * xi, state * xi),
    ):
        end = ", state" if name == "O2TD" else ""
        if trace:
            np.testing.assert_allclose(found[f"{name}(0){end}"], weight[:, None] * phi, rtol=1e-9)
        traced = ahead @ (own[:, None] * phi)
        np.testing.assert_allclose(found[f"{name}({trace:g}){end}"], traced, rtol=1e-8, atol=1e-12)
    traced = ahead @ ((moments * xi)[:, None] * phi)
    np.testing.assert_allclose(found[f"O2TD({trace:g}), moments"], traced, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found["residual gradient"], xi[:, None] * delta, rtol=1e-9)
    best = np.linalg.solve(L.T, xi[:, None] * phi)
    np.testing.assert_allclose(found["best"], best, rtol=1e-8, atol=1e-12)


def test_ratios_of_what_cancels_are_zero() -> None:
    """Features that never change: differences along the way are rounding, and the ends are not."""
    rng, n = np.random.default_rng(4), 40
    P = rng.dirichlet(np.ones(n), size=(n, 1))
    one, phi = np.ones((n, 1)), np.tile(rng.normal(size=3) * 0.7, (n, 1))
    discount = np.ones((n, 1, n))
    discount[0] = 0.0
    problem = Problem(P, np.ones((n, 1)), discount, one, one, phi)
    for found in oblique._omegas(problem, exact.bellman_system.system(problem)):
        assert found[0] == pytest.approx(1.0)
        np.testing.assert_array_equal(found[1:], 0.0)


@pytest.mark.parametrize("least", [0.0, 1e-14, 1e-12])
def test_a_projection_exists_up_to_a_share_of_the_largest_singular_value(least: float) -> None:
    for k in range(3):
        N = np.eye(3)
        N[k, k] = least
        if least < 1e-13:
            with pytest.raises(NoAnswerError, match="the oblique projection does not exist"):
                oblique._solve_angles(N, np.ones(3))
        else:
            found = oblique._solve_angles(N, np.arange(6.0).reshape(3, 2))
            np.testing.assert_allclose(N @ found, np.arange(6.0).reshape(3, 2), rtol=1e-9)
            found = oblique._solve_angles(N, np.ones(3))
            np.testing.assert_allclose(N @ found, np.ones(3), rtol=1e-9)


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**-600, 2.0**600, 2.0**1000])
def test_only_the_span_of_a_direction_counts(scale: float) -> None:
    problem = make_problem(seed=1)
    X = np.random.default_rng(4).integers(1, 1 << 20, (problem.n_states, problem.d)) / 2.0**20
    found = exact.oblique_fixed_point(problem, X * scale)
    wanted = exact.oblique_fixed_point(problem, X)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_a_direction_of_the_smallest_numbers_counts() -> None:
    problem = make_problem(seed=1)
    X = np.random.default_rng(4).integers(1, 50, (problem.n_states, problem.d)).astype(float)
    found = exact.oblique_fixed_point(problem, np.ldexp(X, -1074))
    np.testing.assert_array_equal(np.ldexp(np.ldexp(X, -1074), 1074), X)
    np.testing.assert_allclose(found, exact.oblique_fixed_point(problem, X), rtol=1e-9)

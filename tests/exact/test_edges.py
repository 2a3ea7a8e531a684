"""Problems on the edge: each gets a clear error or a documented answer, never a NaN."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import o2td
from o2td import Problem, exact, metrics
from o2td.errors import InputError, NoAnswerError

from .conftest import make_problem

ONE = np.ones((3, 1))
LINE = np.zeros((3, 1, 3))
LINE[[0, 1], 0, [1, 2]] = 1.0


def test_duplicated_features_get_the_minimum_norm() -> None:
    plain = make_problem(seed=1, features=np.random.default_rng(0).standard_normal((12, 3)))
    twice = make_problem(seed=1, features=np.hstack([plain.features, plain.features[:, :1]]))
    theta, single = exact.best_approximation(twice), exact.best_approximation(plain)
    np.testing.assert_allclose(theta[[1, 2]], single[[1, 2]], rtol=1e-9)
    np.testing.assert_allclose(theta[[0, 3]], single[0] / 2.0, rtol=1e-9)
    for name, X in exact.directions(twice).items():
        landed = twice.features @ exact.oblique_fixed_point(twice, X)
        assert np.isfinite(landed).all()
        if not name.startswith("O2TD"):  # a second copy of a feature changes lengths
            other = exact.oblique_fixed_point(plain, exact.directions(plain)[name])
            np.testing.assert_allclose(landed, plain.features @ other, rtol=1e-8, atol=1e-9)
        assert exact.amplification(twice, X) >= 1.0
    assert exact.mspbe(twice, theta) == pytest.approx(exact.mspbe(plain, single), rel=1e-9)


def test_more_features_than_states() -> None:
    problem = make_problem(seed=2, features=np.random.default_rng(0).standard_normal((12, 20)))
    theta = exact.best_approximation(problem)
    np.testing.assert_allclose(problem.features @ theta, exact.value(problem), rtol=1e-9)
    assert exact.suboptimality(problem, theta) == 1.0
    assert exact.suboptimality(problem, np.zeros(20)) == np.inf
    for X in exact.directions(problem).values():
        landed = problem.features @ exact.oblique_fixed_point(problem, X)
        np.testing.assert_allclose(landed, exact.value(problem), rtol=1e-6)


def test_features_that_are_all_zero() -> None:
    problem = make_problem(features=np.zeros((12, 2)))
    np.testing.assert_array_equal(exact.best_approximation(problem), [0.0, 0.0])
    assert np.isfinite(exact.rmse(problem, [1.0, 1.0]))
    with pytest.raises(NoAnswerError, match="features are zero"):
        exact.oblique_fixed_point(problem, np.ones((12, 2)))


def test_no_discount_with_proper_termination() -> None:
    problem = Problem(LINE, -np.ones(3), 1.0, ONE, ONE, np.eye(3), terminal=[2])
    np.testing.assert_array_equal(exact.value(problem), [-2.0, -1.0, 0.0])
    # Started evenly in 0 and 1: the first is visited in half of the episodes, the second in all.
    np.testing.assert_allclose(exact.state_distribution(problem), [1 / 3, 2 / 3, 0.0])


def test_no_discount_without_termination_has_no_value() -> None:
    P = LINE.copy()
    P[2, 0, 2] = 1.0
    problem = Problem(P, -np.ones(3), 1.0, ONE, ONE, np.eye(3))
    with pytest.raises(NoAnswerError, match="discount below 1"):
        exact.value(problem)
    np.testing.assert_array_equal(exact.state_distribution(problem), [0.0, 0.0, 1.0])


def test_a_target_that_never_ends_though_the_behaviour_does() -> None:
    P = np.zeros((2, 2, 2))
    P[0, 0, 0] = P[0, 1, 1] = 1.0
    behavior, target = np.full((2, 2), 0.5), np.array([[1.0, 0.0], [1.0, 0.0]])
    problem = Problem(P, np.ones(2), 1.0, behavior, target, np.eye(2), terminal=[1])
    with pytest.raises(NoAnswerError, match="from state 0"):
        exact.value(problem)


def test_an_unreachable_state_has_a_value_and_no_weight() -> None:
    P = np.zeros((3, 1, 3))
    P[[0, 1, 2], 0, [1, 0, 0]] = 1.0
    problem = Problem(P, np.array([1.0, 0, 5.0]), 0.5, ONE, ONE, np.eye(3), start=[1.0, 0, 0])
    np.testing.assert_allclose(exact.state_distribution(problem), [0.5, 0.5, 0.0])
    V = exact.value(problem)
    assert V[2] == pytest.approx(5.0 + 0.5 * V[0])
    for name, X in exact.directions(problem).items():
        theta = exact.oblique_fixed_point(problem, X)
        np.testing.assert_allclose(theta, [V[0], V[1], 0.0], atol=1e-12, err_msg=name)
        assert exact.amplification(problem, X) == pytest.approx(1.0)
    # A direction that weights it can be fooled by it without limit.
    assert exact.amplification(problem, np.eye(3)) == np.inf
    assert exact.mse(problem, [V[0], V[1], 99.0]) < 1e-20


def test_two_closed_classes_have_no_distribution() -> None:
    problem = Problem(np.eye(3)[:, None], np.zeros(3), 0.9, ONE, ONE, np.eye(3))
    for ask in (exact.state_distribution, exact.best_approximation, exact.model):
        with pytest.raises(NoAnswerError, match="state 0 or with state 1"):
            ask(problem)


def test_a_direction_orthogonal_to_the_features_is_refused() -> None:
    problem = make_problem(seed=1, discount=0.0, features=np.eye(12)[:, :2])
    with pytest.raises(NoAnswerError, match="orthogonal"):
        exact.oblique_fixed_point(problem, np.eye(12)[:, 2:4])
    with pytest.raises(NoAnswerError, match="orthogonal"):
        exact.oblique_projection(np.eye(3)[:, :1], np.eye(3)[:, 1:2])
    with pytest.raises(NoAnswerError, match="as many"):
        exact.oblique_projection(np.eye(3)[:, :1], np.eye(3)[:, :2])
    with pytest.raises(InputError, match="12 states"):
        exact.oblique_fixed_point(problem, np.ones((5, 2)))
    with pytest.raises(InputError, match="oblique_fixed_point"):
        exact.oblique_projection(np.ones((3000, 1)), np.ones((3000, 1)))


def test_support_and_probabilities_are_checked_by_the_problem() -> None:
    P = np.full((2, 2, 2), 0.5)
    even, first = np.full((2, 2), 0.5), np.array([[1.0, 0.0], [1.0, 0.0]])
    with pytest.raises(InputError, match="action 1 in state 0"):
        Problem(P, np.zeros(2), 0.9, first, even, np.eye(2))
    with pytest.raises(InputError, match=r"sums to 0\.9"):
        Problem(P * 0.9, np.zeros(2), 0.9, even, even, np.eye(2))


def test_a_problem_can_be_forgotten() -> None:
    import gc
    import weakref

    problem = make_problem()
    exact.value(problem)
    watch = weakref.ref(problem)
    del problem
    gc.collect()
    assert watch() is None


def large_problem(n: int, seed: int = 0, csr: bool = False) -> Any:
    rng = np.random.default_rng(seed)
    row, matrices = np.repeat(np.arange(n), 4), []
    for _ in range(2):
        column, data = rng.integers(0, n, 4 * n), rng.random(4 * n)
        P = sp.coo_array((data, (row, column)), shape=(n, n)).tocsr()
        matrices.append(sp.csr_array(sp.diags_array(1.0 / P.sum(axis=1)) @ P))
    behavior, target = np.full((n, 2), 0.5), rng.dirichlet(np.ones(2), n)
    features: Any = np.column_stack([rng.standard_normal((n, 5)), np.ones(n)])
    if csr:
        features = sp.csr_array(
            (np.ones(2 * n), (np.repeat(np.arange(n), 2), rng.integers(0, 20, 2 * n))), (n, 20)
        )
    return Problem(matrices, rng.random((n, 2)), 0.95, behavior, target, features)


@pytest.mark.parametrize(
    ("n", "seconds"), [(5_000, 10.0), pytest.param(100_000, 120.0, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("csr", [False, True])
def test_sparse_problems(n: int, seconds: float, csr: bool) -> None:
    begin = time.process_time()  # of this process alone: other work on the machine does not count
    problem = large_problem(n, csr=csr)
    V, xi = exact.value(problem), exact.state_distribution(problem)
    P = problem.discounted_matrix(problem.target)
    assert not isinstance(P, np.ndarray)
    residual = problem.expected_reward(problem.target) + P @ V - V
    assert np.abs(residual).max() < 1e-10 * np.abs(V).max()
    theta = exact.best_approximation(problem)
    error = problem.features @ theta - V
    np.testing.assert_allclose(problem.features.T @ (xi * error), 0.0, atol=1e-12)
    for name, X in exact.directions(problem).items():
        landed = exact.oblique_fixed_point(problem, X)
        assert exact.suboptimality(problem, landed) <= exact.amplification(problem, X) + 1e-6, name
    np.testing.assert_allclose(landed, theta, atol=1e-8)
    assert exact.mspbe(problem, theta) <= exact.msbe(problem, theta)
    assert time.process_time() - begin < seconds


def test_the_value_needs_no_long_run() -> None:
    """Two states that are never left: where the behaviour ends is chance, what it earns is not."""
    one = np.ones((2, 1))
    P = np.eye(2)[:, None, :]
    problem = Problem(P, np.array([1.0, 2.0]), 0.5, one, one, np.eye(2))
    np.testing.assert_allclose(exact.value(problem), [2.0, 4.0])
    with pytest.raises(NoAnswerError, match="depends on chance"):
        exact.state_distribution(problem)
    with pytest.raises(NoAnswerError, match="depends on chance"):
        exact.best_approximation(problem)


def test_features_too_many_for_a_dense_matrix_are_refused_before_memory_is() -> None:
    n = 20_000
    at = np.arange(n)
    ahead = sp.csr_array((np.ones(n), (at, (at + 1) % n)), shape=(n, n))
    one, theta = np.ones((n, 1)), np.zeros(n)
    problem = Problem([ahead], np.ones(n), 0.5, one, one, sp.eye_array(n).tocsr())
    assert exact.value(problem)[0] == pytest.approx(2.0)
    assert exact.mse(problem, theta) == pytest.approx(4.0)
    for asked in (
        lambda: exact.best_approximation(problem),
        lambda: exact.optimal_direction(problem),
        lambda: exact.mspbe(problem, theta),
        lambda: exact.fixed_point(problem, o2td.TD(0.1)),
        lambda: metrics.rmse(problem),
        lambda: metrics.held_out(problem.features, np.zeros(n)),
        lambda: metrics.held_out_rmspbe(problem.sample(10)),
    ):
        with pytest.raises(NoAnswerError, match="20000 features need dense matrices"):
            asked()

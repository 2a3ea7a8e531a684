from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import csr_array

from o2td import Problem, exact
from o2td.errors import InputError
from o2td.exact.objectives import quadratic

from .conftest import make_problem


def test_errors_against_their_definitions() -> None:
    problem = make_problem(seed=2)
    theta = np.random.default_rng(0).standard_normal(problem.d)
    Phi, xi = problem.features, exact.state_distribution(problem)
    V, Xi = exact.value(problem), np.diag(xi)
    residual = (
        problem.expected_reward(problem.target)
        + problem.discounted_matrix(problem.target) @ Phi @ theta
        - Phi @ theta
    )
    Pi = Phi @ np.linalg.inv(Phi.T @ Xi @ Phi) @ Phi.T @ Xi
    assert exact.mse(problem, theta) == pytest.approx(xi @ (Phi @ theta - V) ** 2, rel=1e-12)
    assert exact.msbe(problem, theta) == pytest.approx(xi @ residual**2, rel=1e-12)
    assert exact.mspbe(problem, theta) == pytest.approx(xi @ (Pi @ residual) ** 2, rel=1e-10)
    for name in ("mse", "msbe", "mspbe"):
        root = getattr(exact, f"r{name}")(problem, theta)
        assert root**2 == pytest.approx(getattr(exact, name)(problem, theta), rel=1e-12)


@pytest.mark.parametrize("expressible", [False, True])
def test_the_ratios_of_several_thetas_are_those_of_each(expressible: bool) -> None:
    problem = make_problem(seed=2, features=np.eye(12) if expressible else 4)
    best = exact.best_approximation(problem)
    several = np.stack([best, best + 1.0, 2.0 * best - 3.0], axis=1)
    ratios = exact.suboptimality(problem, several)
    each = [exact.suboptimality(problem, one) for one in several.T]
    assert ratios.tolist() == pytest.approx(each, rel=1e-12)
    assert ratios[0] == pytest.approx(1.0)
    assert (ratios[1:] > 1.0).all()
    assert np.isinf(ratios[1:]).all() == expressible


def test_the_td_limit_has_no_projected_error() -> None:
    problem = make_problem(seed=3)
    X = exact.directions(problem)["TD(0)"]
    assert exact.rmspbe(problem, exact.oblique_fixed_point(problem, X)) < 1e-12


def test_form_of_dann() -> None:
    """Operator of the behaviour, projection by the target's distribution, weight of xi."""
    problem = make_problem(seed=6)
    theta = np.random.default_rng(0).standard_normal((problem.d, 2))
    Phi, xi = problem.features, exact.state_distribution(problem)
    P_target = problem.transition_matrix(problem.target)
    mu = np.linalg.matrix_power(P_target, 4096)[0]
    D = np.diag(mu)
    Pi = Phi @ np.linalg.pinv(Phi.T @ D @ Phi) @ Phi.T @ D
    R, P = problem.expected_reward(problem.behavior), problem.discounted_matrix(problem.behavior)
    T = R[:, None] + P @ Phi @ theta
    expected = xi @ (Phi @ theta - Pi @ T) ** 2
    np.testing.assert_allclose(exact.mspbe(problem, theta, form="dann"), expected, rtol=1e-9)
    expected = xi @ (Phi @ theta - T) ** 2
    np.testing.assert_allclose(exact.msbe(problem, theta, form="dann"), expected, rtol=1e-12)


def test_the_two_forms_agree_on_policy() -> None:
    problem = make_problem(seed=7, on_policy=True)
    theta = np.ones(problem.d)
    for measure in (exact.mspbe, exact.msbe):
        assert measure(problem, theta, form="dann") == pytest.approx(measure(problem, theta))


def test_unknown_forms_and_wrong_shapes_are_refused() -> None:
    problem = make_problem()
    with pytest.raises(InputError, match="form"):
        exact.mspbe(problem, np.zeros(4), form="other")
    with pytest.raises(InputError, match=r"theta has shape \(3,\)"):
        exact.mse(problem, np.zeros(3))
    with pytest.raises(InputError, match="finite Problem"):
        exact.value("baird")  # type: ignore[arg-type]


def test_inactive_states_do_not_count() -> None:
    """The target is followed in states 0 and 1; leaving them has discount 0."""
    P = np.zeros((4, 1, 4))
    P[[0, 1, 2, 3], 0, [1, 2, 3, 0]] = 1.0
    target = np.array([[1.0], [1.0], [0.0], [0.0]])
    discount = np.zeros((4, 1, 4))
    discount[0, 0, 1] = 0.5
    reward = np.array([0.0, 1.0, 7.0, 7.0])
    features = np.array([[1.0], [0.0], [3.0], [5.0]])
    problem = Problem(P, reward, discount, np.ones((4, 1)), target, features)
    np.testing.assert_array_equal(exact.value(problem), [0.5, 1.0, 0.0, 0.0])
    np.testing.assert_allclose(exact.state_distribution(problem), 0.25)
    # Over the two active states, each with weight 1/2.
    assert exact.mse(problem, [0.0]) == pytest.approx(0.5 * (0.25 + 1.0))
    np.testing.assert_allclose(exact.best_approximation(problem), [0.5])
    with pytest.raises(InputError, match="discount 0"):
        exact.value(Problem(P, reward, 0.5, np.ones((4, 1)), target, features))


@pytest.mark.parametrize("dense_limit", [2000, 3])
def test_csr_features_agree_with_dense_ones(
    dense_limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((12, 4)) * (rng.random((12, 4)) < 0.6)
    dense = make_problem(seed=1, features=features)
    expected = _summary(dense)
    monkeypatch.setattr("o2td.chain.DENSE_LIMIT", dense_limit)
    for form in (features, sp.csr_array(features)):
        problem = make_problem(seed=1, features=form)
        for name, figure in _summary(problem).items():
            np.testing.assert_allclose(figure, expected[name], rtol=1e-8, atol=1e-10, err_msg=name)


def _summary(problem: Problem) -> dict[str, object]:
    theta = np.linspace(-1.0, 1.0, problem.d)
    found: dict[str, object] = {
        "value": exact.value(problem),
        "best": exact.best_approximation(problem),
    }
    for measure in (exact.mse, exact.msbe, exact.mspbe):
        found[measure.__name__] = measure(problem, theta)
    for form in (exact.msbe, exact.mspbe):
        found[f"{form.__name__} dann"] = form(problem, theta, form="dann")
    for name, X in exact.directions(problem).items():
        found[name] = exact.oblique_fixed_point(problem, X)
        found[f"amplification {name}"] = exact.amplification(problem, X)
    return found


@pytest.mark.parametrize("objective", ["mse", "msbe", "mspbe"])
@pytest.mark.parametrize("form", ["target", "dann"])
@pytest.mark.parametrize("sparse", [False, True])
def test_objectives_are_quadratics(objective: str, form: str, sparse: bool) -> None:
    features = np.random.default_rng(1).standard_normal((12, 4))
    problem = make_problem(seed=3, features=csr_array(features) if sparse else features)
    found = quadratic(problem, objective, form)
    options: dict[str, Any] = {} if objective == "mse" else {"form": form}
    for theta in (np.zeros(4), np.arange(4.0), found.center):
        expected = getattr(exact, objective)(problem, theta, **options)
        value = np.sum((found.R @ (theta - found.center)) ** 2) + found.constant
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-12)
    np.testing.assert_array_equal(found.R, np.triu(found.R))


def test_a_form_that_is_not_known_is_refused() -> None:
    with pytest.raises(InputError, match="form must be one of 'target', 'dann'"):
        quadratic(make_problem(), "msbe", "other")

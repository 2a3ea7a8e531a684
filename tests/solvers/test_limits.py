"""What infinite data would give: against large samples, against directions X, against the truth."""

from __future__ import annotations

import numpy as np
import pytest

import o2td
from o2td import exact

from .reference import garnet


def parts(problem):
    """`Phi`, `xi`, `L`, `R`, `P_gamma` of a problem, dense."""
    xi = exact.state_distribution(problem)
    K = problem.discounted_matrix(problem.target)
    return problem.features, xi, np.eye(len(xi)) - K, problem.expected_reward(problem.target), K


def fixed_point(problem, X):
    phi, _, L, R, _ = parts(problem)
    return np.linalg.solve(X.T @ L @ phi, X.T @ R)


@pytest.fixture(params=[False, True], ids=["continuing", "episodic"])
def problem(request):
    return garnet(5, states=10, d=3, discount=0.8, terminal=request.param)


@pytest.mark.parametrize("trace", [0.0, 0.6, 1.0])
def test_lstd_has_the_direction_of_td(problem, trace):
    phi, xi, L, _, K = parts(problem)
    X = np.linalg.solve(np.eye(len(xi)) - trace * K.T, xi[:, None] * phi)
    theta = o2td.LSTD(trace=trace, ridge=3.0).limit(exact.model(problem))
    np.testing.assert_allclose(theta, fixed_point(problem, X), rtol=1e-9)
    if trace == 1.0:
        best = exact.best_approximation(problem)
        np.testing.assert_allclose(theta, best, rtol=1e-9)
        np.testing.assert_allclose(X, np.linalg.solve(L.T, xi[:, None] * phi), atol=1e-12)


@pytest.mark.parametrize("decay", [None, 0.4])
def test_lsetd_has_the_direction_of_etd(problem, decay):
    phi, xi, _, _, K = parts(problem)
    inner, trace = problem.interest * xi, 0.5
    if decay is None:
        follow = np.linalg.solve(np.eye(len(xi)) - K.T, inner)
    else:
        alive = problem.transition_matrix(problem.target) * (K > 0.0)
        follow = np.linalg.solve(np.eye(len(xi)) - decay * alive.T, inner)
    weight = trace * inner + (1 - trace) * follow
    X = np.linalg.solve(np.eye(len(xi)) - trace * K.T, weight[:, None] * phi)
    theta = o2td.LSETD(trace=trace, decay=decay).limit(exact.model(problem))
    np.testing.assert_allclose(theta, fixed_point(problem, X), rtol=1e-9)


def test_monte_carlo_and_the_plug_in_reach_the_best_approximation(problem):
    best, model = exact.best_approximation(problem), exact.model(problem)
    for solver in (
        o2td.MonteCarlo(),
        o2td.MonteCarlo("trajectory", weighted=False),
        o2td.PluginOptimal(),
        o2td.PluginOptimal("ordinary"),
    ):
        np.testing.assert_allclose(solver.limit(model), best, rtol=1e-9)


def test_bellman_residuals_have_their_directions(problem):
    phi, xi, L, R, _ = parts(problem)
    model, D = exact.model(problem), L @ phi
    seen = xi > 0.0
    for sampling in ("double", "aggregated", "auto"):
        theta = o2td.BellmanResidual(sampling).limit(model)
        np.testing.assert_allclose(theta, fixed_point(problem, xi[:, None] * D), rtol=1e-9)
    flat = o2td.BellmanResidual("aggregated", weighted=False).limit(model)
    np.testing.assert_allclose(flat, np.linalg.lstsq(D[seen], R[seen], rcond=None)[0], rtol=1e-9)
    np.testing.assert_allclose(o2td.SOTD().limit(model), flat, rtol=1e-7)


SOLVERS = [
    o2td.LSTD(),
    o2td.LSTD(trace=0.5),
    o2td.LSETD(trace=0.3),
    o2td.SOTD(),
    o2td.SOTD("ordinary", start="td"),
    o2td.DiagonalSOTD(),
    o2td.BellmanResidual("single"),
    o2td.BellmanResidual("double"),
    o2td.BellmanResidual("aggregated"),
    o2td.MonteCarlo(),
    o2td.PluginOptimal(),
    o2td.DantzigTD(0.01),
    o2td.DantzigTD(0.01, denoise=True),
]


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_large_samples_come_near_the_limit(problem, solver):
    limit = solver.limit(exact.model(problem))
    errors = []
    for n in (4_000, 256_000):
        batch = problem.sample(n, seed=1, double=True)
        errors.append(np.linalg.norm(type(solver)(**solver.get_params()).fit(batch).theta - limit))
    size = np.linalg.norm(limit)
    assert errors[1] < 0.05 * size
    assert errors[1] < 0.5 * errors[0]


def test_the_averager_comes_near_its_limit():
    weights = np.random.default_rng(3).dirichlet(np.ones(3), size=10)
    problem = garnet(6, states=10, discount=0.8, features=weights)
    limit = o2td.Averager().limit(exact.model(problem))
    theta = o2td.Averager().fit(problem.sample(256_000, seed=0)).theta
    np.testing.assert_allclose(theta, limit, rtol=0.03, atol=0.03 * np.abs(limit).max())


def test_action_values_have_no_limit_on_a_model_of_states(problem):
    with pytest.raises(o2td.errors.NoAnswerError):
        o2td.LSTDQ().limit(exact.model(problem))

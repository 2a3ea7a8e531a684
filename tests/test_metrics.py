from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from o2td import Problem, Transitions, domains, exact, metrics
from o2td.errors import InputError

NAMES = ("rmse", "rmspbe", "rmsbe")


def problems() -> list[Problem]:
    twice = np.hstack([np.eye(3), np.eye(3)])
    ring, one = np.roll(np.eye(3), 1, axis=1)[:, None], np.ones((3, 1))
    return [
        domains.garnet(states=20, features=5, seed=1),
        domains.baird(),
        domains.four_rooms(target=1),
        domains.boyan_chain(states=13, discount=1.0),
        Problem(ring, np.arange(3.0), 0.9, one, one, twice, name="duplicated"),
    ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("problem", problems(), ids=lambda p: p.name)
def test_metrics_agree_with_exact(problem: Problem, name: str) -> None:
    metric = getattr(metrics, name)(problem)
    thetas = np.random.default_rng(0).standard_normal((problem.d, 4))
    expected = getattr(exact, name)(problem, thetas)
    np.testing.assert_allclose(metric.value(thetas), expected, rtol=1e-9, atol=1e-10)
    assert metric.value(thetas[:, 0]) == pytest.approx(expected[0], rel=1e-9)
    assert np.allclose(metric.R, np.triu(metric.R))
    assert getattr(metrics, name.upper()) is getattr(metrics, name)


@pytest.mark.parametrize("name", ["rmspbe", "rmsbe"])
def test_form_of_dann(name: str) -> None:
    problem = domains.garnet(states=20, features=5, seed=1)
    theta = np.arange(5.0)
    metric = getattr(metrics, name)(problem, form="dann")
    assert metric.value(theta) == pytest.approx(getattr(exact, name)(problem, theta, form="dann"))
    assert metric.value(theta) != pytest.approx(getattr(exact, name)(problem, theta))


def test_the_centre_is_the_best_theta() -> None:
    problem = domains.garnet(states=20, features=5, seed=1)
    metric = metrics.rmse(problem)
    np.testing.assert_allclose(metric.center, exact.best_approximation(problem), rtol=1e-10)
    assert metric.value(metric.center) == pytest.approx(np.sqrt(metric.constant))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_held_out_rows(layout: Any) -> None:
    rng = np.random.default_rng(0)
    phi, value, weight = rng.standard_normal((50, 3)), rng.standard_normal(50), rng.random(50)
    metric = metrics.held_out(layout(phi), value, weight)
    theta = rng.standard_normal(3)
    expected = np.sqrt(weight @ (phi @ theta - value) ** 2 / weight.sum())
    assert metric.value(theta) == pytest.approx(expected, rel=1e-12)
    even = metrics.held_out(layout(phi), value)
    assert even.value(theta) == pytest.approx(np.sqrt(np.mean((phi @ theta - value) ** 2)))


def test_held_out_rows_in_blocks_are_one_regression() -> None:
    """More rows than a block of QR holds."""
    rng = np.random.default_rng(1)
    phi, value = rng.standard_normal((1_200_000, 2)), rng.standard_normal(1_200_000)
    theta = np.array([0.5, -1.0])
    assert metrics.held_out(phi, value).value(theta) == pytest.approx(
        float(np.sqrt(np.mean((phi @ theta - value) ** 2))), rel=1e-12
    )


def test_projected_error_from_held_out_rows() -> None:
    """200,000 rows: within 4 % of the exact one, where the sampling error is about 1 %."""
    problem = domains.garnet(states=20, features=4, seed=3)
    exact_metric = metrics.rmspbe(problem)
    batch = problem.sample(200_000, seed=1, scheme="iid")
    sampled = metrics.held_out_rmspbe(batch)
    theta = np.ones(4)
    assert sampled.value(theta) == pytest.approx(exact_metric.value(theta), rel=0.04)
    dense = Transitions(batch.phi, batch.reward, batch.next_phi, batch.discount, batch.rho)
    assert metrics.held_out_rmspbe(dense).value(theta) == pytest.approx(sampled.value(theta))


def test_rows_that_end_may_hold_anything() -> None:
    phi, nothing = np.ones((2, 1)), np.full((2, 1), np.nan)
    batch = Transitions(phi, [0.0, 1.0], nothing, 0.0)
    np.testing.assert_allclose(metrics.held_out_rmspbe(batch).center, [0.5])


@pytest.mark.parametrize(
    ("phi", "value", "weight", "match"),
    [
        ([[1.0]], [1.0, 2.0], None, "value must be 1"),
        ([[1.0]], [np.nan], None, "value"),
        ([[np.inf]], [1.0], None, "phi"),
        ([[1.0]], [1.0], [-1.0], "non-negative"),
        ([[1.0]], [1.0], [0.0], "positive"),
    ],
)
def test_bad_rows_are_refused(phi: Any, value: Any, weight: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        metrics.held_out(phi, value, weight)


def test_wrong_shapes_are_refused() -> None:
    metric = metrics.held_out([[1.0]], [1.0])
    with pytest.raises(InputError, match="theta has shape"):
        metric.value(np.zeros(3))
    with pytest.raises(InputError, match="not finite"):
        metric.value([np.nan])
    with pytest.raises(InputError, match="empty"):
        metrics.held_out_rmspbe(Transitions(np.zeros((0, 1)), 0.0, np.zeros((0, 1)), 0.0))


def test_held_out_rows_are_transitions() -> None:
    with pytest.raises(InputError, match="batch must be held-out Transitions, got array"):
        metrics.held_out_rmspbe(np.ones((2, 2)))  # type: ignore[arg-type]


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_projected_error_of_held_out_rows_by_its_definition(layout: Any) -> None:
    rng = np.random.default_rng(8)
    phi, next_phi = rng.standard_normal((40, 3)), rng.standard_normal((40, 3))
    reward, rho = rng.standard_normal(40), rng.random(40) * 2.0
    discount = np.where(np.arange(40) % 7 == 0, 0.0, 0.8)
    batch = Transitions(layout(phi), reward, layout(next_phi), discount, rho)
    A = (rho[:, None] * phi).T @ (phi - discount[:, None] * next_phi) / 40
    b, C = phi.T @ (rho * reward) / 40, phi.T @ phi / 40
    metric = metrics.held_out_rmspbe(batch)
    for theta in (np.zeros(3), np.array([1.0, -1.0, 0.5])):
        left = b - A @ theta
        assert metric.value(theta) == pytest.approx(np.sqrt(left @ np.linalg.solve(C, left)))
    np.testing.assert_allclose(metric.center, np.linalg.solve(A, b), rtol=1e-9)


def test_rows_without_weight_are_allowed_and_do_not_count() -> None:
    assert metrics.held_out([[1.0], [1.0]], [3.0, 1.0], [0.0, 2.0]).value([1.0]) == 0.0


def test_values_whose_squares_overflow_are_refused_with_a_remedy():
    two = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    one = np.ones((2, 1))
    problem = Problem(two, np.array([1e200, 0.0]), 0.9, one, one, np.ones((2, 1)))
    with pytest.raises(InputError, match=r"rmse: squares of these values .* divide the rewards"):
        metrics.rmse(problem)

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import o2td
from o2td import Problem, domains, exact
from o2td.exact.dynamics import LinearDynamics, land
from o2td.registry import LEARNERS

from .conftest import make_problem


def iterate(A: Any, b: Any, x: Any, step: float, sweeps: int) -> Any:
    for _ in range(sweeps):
        x = x + step * (b - A @ x)
    return x


@given(st.integers(0, 100_000), st.integers(1, 6), st.integers(0, 2))
@settings(max_examples=60, deadline=None)
def test_the_limit_is_where_iteration_ends(seed: int, moving: int, still: int) -> None:
    """Random stable A with a null space of dimension `still`, from a random start."""
    rng = np.random.default_rng(seed)
    k = moving + still
    M = rng.standard_normal((moving, moving))
    block = M @ M.T + np.eye(moving) + (M - M.T)
    T = np.linalg.qr(rng.standard_normal((k, k)))[0] + 0.1 * rng.standard_normal((k, k))
    A = np.zeros((k, k))
    A[:moving, :moving] = block
    A = T @ A @ np.linalg.inv(T)
    b, start = A @ rng.standard_normal(k), rng.standard_normal(k)
    dynamics = LinearDynamics(A)
    x = dynamics.limit(b, start)
    assert dynamics.stable
    assert x is not None
    step = 0.3 * dynamics.max_step_size
    slow = np.abs(1.0 - step * dynamics.eigenvalues[:moving]).max()
    sweeps = min(200_000, int(np.log(1e-13) / np.log(slow)) + 200)
    np.testing.assert_allclose(iterate(A, b, start, step, sweeps), x, atol=1e-6)


def test_the_largest_step_size_is_sharp() -> None:
    A = np.array([[1.0, 2.0], [-2.0, 1.0]])  # eigenvalues 1 +- 2i
    dynamics = LinearDynamics(A)
    assert dynamics.max_step_size == pytest.approx(2.0 / 5.0)
    start = np.array([1.0, 0.0])
    below = iterate(A, np.zeros(2), start, 0.99 * dynamics.max_step_size, 3000)
    above = iterate(A, np.zeros(2), start, 1.01 * dynamics.max_step_size, 3000)
    assert np.linalg.norm(below) < 1e-3 < 1e3 < np.linalg.norm(above)


@pytest.mark.parametrize(
    ("A", "b", "exists"),
    [
        ([[-1.0, 0.0], [0.0, 1.0]], [1.0, 1.0], True),  # repelling
        ([[0.0, 1.0], [-1.0, 0.0]], [1.0, 0.0], True),  # turns for ever
        ([[0.0, 1.0], [0.0, 0.0]], [1.0, 0.0], True),  # drifts along its null space
        ([[1.0, 0.0], [0.0, 0.0]], [1.0, 1.0], False),  # pushed without end
    ],
)
def test_what_is_not_stable(A: Any, b: Any, exists: bool) -> None:
    dynamics = LinearDynamics(np.array(A))
    x = dynamics.limit(np.array(b), np.zeros(2))
    assert (x is not None) == exists
    if x is not None:
        assert not dynamics.stable
        assert dynamics.max_step_size == 0.0
        np.testing.assert_allclose(np.array(A) @ x, b, atol=1e-12)


def test_expected_etd_on_baird_from_theta_0() -> None:
    """Published: 1000 sweeps of expected ETD at 0.03 (see DOMAINS: Baird star)."""
    problem = domains.baird()
    landed = exact.fixed_point(problem, o2td.ETD(step_size=0.03))
    assert landed.stable
    expected = [1.692308] * 6 + [6.769231, -3.384615]
    np.testing.assert_allclose(landed.theta, expected, atol=5e-7)
    assert landed.rmse < 1e-10
    assert landed.suboptimality == 1.0
    elsewhere = exact.fixed_point(problem, o2td.ETD(initial_theta=np.zeros(8)))
    np.testing.assert_allclose(elsewhere.theta, 0.0, atol=1e-12)


def test_td_diverges_on_baird_and_gradient_td_does_not() -> None:
    problem = domains.baird()
    td = exact.fixed_point(problem, o2td.TD())
    assert not td.stable
    assert td.eigenvalues.real.min() < -0.01
    assert td.max_step_size == 0.0
    gtd2 = exact.fixed_point(problem, o2td.GTD2())
    assert gtd2.stable
    assert len(gtd2.eigenvalues) == 2 * problem.d
    assert gtd2.rmse < 1e-9


def test_baird_at_theta_0() -> None:
    problem = domains.baird()
    assert exact.rmse(problem, problem.initial_theta) == pytest.approx(5.318432, abs=5e-7)
    assert exact.rmspbe(problem, problem.initial_theta) == pytest.approx(8.221408, abs=5e-7)


def test_o2td_is_not_stable_on_the_three_state_cycle() -> None:
    """Cycle 0, 1, 2, gamma = 0.9, on-policy: eigenvalues 3.64 and -0.165; TD: 5.49 and 0.17."""
    P = np.roll(np.eye(3), 1, axis=1)[:, None]
    features = np.array([[-1.0, 2.0], [-2.0, 2.0], [2.0, 0.0]])
    one = np.ones((3, 1))
    problem = Problem(P, np.zeros(3), 0.9, one, one, features)
    o2td_limit = exact.fixed_point(problem, o2td.O2TD(omega="state"))
    assert not o2td_limit.stable
    np.testing.assert_allclose(np.sort(o2td_limit.eigenvalues.real), [-0.165, 3.64], atol=0.005)
    td = exact.fixed_point(problem, o2td.TD())
    assert td.stable
    np.testing.assert_allclose(np.sort(td.eigenvalues.real), [0.17, 5.49], atol=0.005)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("trace", [0.0, 0.9])
def test_learners_land_where_their_directions_say(seed: int, trace: float) -> None:
    """The equations of the learners and those of the theory were written apart."""
    problem = make_problem(seed=seed, terminal=seed % 2)
    X = exact.directions(problem, trace=0.9)
    expected = {
        "TD": X[f"TD({trace:g})"],
        "ETD": X[f"ETD({trace:g})"],
        "GTD2": X[f"TD({trace:g})"],
        "TDC": X[f"TD({trace:g})"],
    }
    for name, direction in expected.items():
        landed = exact.fixed_point(problem, LEARNERS[name](trace=trace))
        theta = exact.oblique_fixed_point(problem, direction)
        np.testing.assert_allclose(landed.theta, theta, rtol=1e-6, atol=1e-8, err_msg=name)
    for reading in ("state", "moments"):
        landed = exact.fixed_point(problem, o2td.O2TD(omega=reading, trace=trace))
        theta = exact.oblique_fixed_point(problem, X[f"O2TD({trace:g}), {reading}"])
        np.testing.assert_allclose(landed.theta, theta, rtol=1e-6, atol=1e-8, err_msg=reading)


@dataclass
class Pushed:
    """A learner that is driven along a direction in which nothing holds it."""

    initial_theta: Any = None

    def mean_dynamics(self, model: Any) -> Any:
        d = model.d

        @dataclass
        class Dynamics:
            A: Any
            b: Any

        return Dynamics(np.zeros((d, d)), np.ones(d))


def test_dynamics_without_a_fixed_point() -> None:
    landed = exact.fixed_point(make_problem(), Pushed())
    assert landed.theta is None
    assert not landed.stable
    assert landed.rmse == landed.suboptimality == np.inf


@pytest.mark.parametrize("k", [1e-8, 1e-6, 1e6, 1e8])
def test_unstable_by_the_small_eigenvalue_alone(k: float) -> None:
    """`D [[1, 2], [2, 1]] D` has a negative determinant, so one negative eigenvalue."""
    scale = np.array([1.0, k])
    dynamics = LinearDynamics(np.array([[1.0, 2.0], [2.0, 1.0]]) * scale * scale[:, None], scale)
    assert not dynamics.stable
    small, large = np.sort(np.abs(dynamics.eigenvalues.real))
    assert dynamics.eigenvalues.real.min() == pytest.approx(-small)
    assert small * large == pytest.approx(3.0 * k**2, rel=1e-12)


def test_what_only_drifts_is_not_stable_in_any_unit() -> None:
    for k in (1e-8, 1.0, 1e8):
        scale = np.array([1.0, k])
        for A in ([[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]):
            dynamics = LinearDynamics(np.array(A) * scale * scale[:, None], scale)
            assert not dynamics.stable
            assert dynamics.max_step_size == 0.0


def test_rounding_is_not_taken_for_a_feature() -> None:
    """A row of A that cancels to rounding is none, though as a small unit it would be one."""
    dynamics = LinearDynamics(np.array([[1.0, 0.5], [1e-17, 3e-17]]), np.ones(2))
    x = dynamics.limit(np.array([1.0, 0.0]), np.array([5.0, 4.0]))
    np.testing.assert_allclose(x, [-1.0, 4.0], atol=1e-12)
    assert dynamics.stable


def test_a_rotation_without_decay_is_not_stable() -> None:
    dynamics = LinearDynamics(np.array([[0.0, 1.0], [-1.0, 0.0]]), np.ones(1))
    np.testing.assert_allclose(sorted(dynamics.eigenvalues.imag), [-1.0, 1.0])
    assert (dynamics.stable, dynamics.max_step_size) == (False, 0.0)


def test_what_repels_has_the_smallest_norm_in_its_own_units() -> None:
    """A matrix whose square is 0: its one eigenvalue has too few eigenvectors."""
    A = np.array([[1.0, 1.0], [-1.0, -1.0]])
    for scale in ([1.0, 1.0], [1.0, 4.0], [8.0, 0.5]):
        dynamics = LinearDynamics(A, np.array(scale))
        assert not dynamics.stable
        found = dynamics.limit(np.array([3.0, -3.0]), np.array([7.0, 1.0]))
        np.testing.assert_allclose(found, [1.5, 1.5], rtol=1e-12)
        assert dynamics.limit(np.array([3.0, 3.0]), np.zeros(2)) is None


def test_where_there_is_no_fixed_point_no_step_size_converges_and_errors_are_infinite() -> None:
    problem = make_problem(features=2)
    dynamics = LinearDynamics(np.diag([1.0, 0.0]))
    found = land(problem, object(), dynamics, np.array([0.0, 1.0]))
    assert found.theta is None
    assert (found.stable, found.max_step_size) == (False, 0.0)
    assert found.rmse == found.rmspbe == found.suboptimality == np.inf
    np.testing.assert_array_equal(found.eigenvalues, [1.0, 0.0])

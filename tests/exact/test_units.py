"""Features in other units: the same limits in value space, and the stability of A itself.

The second way is exact arithmetic: the entries of A and b are rational numbers, so that limits come
from elimination, stability from Routh's table of the characteristic polynomial, and the largest step
size from that of `2 A^-1 / alpha - I`, whose eigenvalues have positive real parts if and only if
those of `I - alpha A` lie inside the unit circle.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import o2td
from o2td import Problem, domains, exact, metrics
from o2td.errors import InputError
from o2td.linear_algebra import orthonormalizer

from .conftest import make_problem

UNITS = (1e-8, 1e-7, 1e-4, 1.0, 1e3, 1e6, 1e7, 1e8)
LEARNERS = [
    o2td.TD(0.1),
    o2td.TD(0.1, trace=0.9),
    o2td.ETD(0.1),
    o2td.O2TD(0.1, omega="state"),
    o2td.O2TD(0.1, omega="moments"),
    o2td.GTD(0.1),
    o2td.GTD(0.1, second_step_size=0.0001),
    o2td.GTD(0.1, second_step_size=100.0),
    o2td.GTD2(0.1),
    o2td.GTD2(0.1, second_step_size=0.001),
    o2td.TDC(0.1),
    o2td.TDRC(0.1),
    o2td.HTD(0.1),
    o2td.GTD2MP(0.1),
]


def rational(array: Any) -> Any:
    return np.vectorize(Fraction, otypes=[object])(np.asarray(array, dtype=np.float64))


def eliminate(A: Any, B: Any) -> Any:
    """`A^-1 B` in rational numbers."""
    n = len(A)
    rows = np.hstack([A, B.reshape(n, -1)])
    for i in range(n):
        k = next(r for r in range(i, n) if rows[r, i] != 0)
        rows[[i, k]] = rows[[k, i]]
        rows[i] = rows[i] / rows[i, i]
        for r in range(n):
            if r != i:
                rows[r] = rows[r] - rows[r, i] * rows[i]
    return rows[:, n:].reshape(B.shape)


def characteristic(A: Any) -> list[Fraction]:
    """Coefficients of `det(x I - A)`, the leading one first (Faddeev and LeVerrier)."""
    n, unit = len(A), rational(np.eye(len(A)))
    M, found = 0 * unit, [Fraction(1)]
    for k in range(1, n + 1):
        M = A @ M + found[-1] * unit
        found.append(-np.trace(A @ M) / k)
    return found


def all_positive(A: Any) -> bool:
    """Whether every eigenvalue has a positive real part: Routh's table of `det(x I + A)`."""
    c = [x * (-1) ** k for k, x in enumerate(characteristic(A))]
    upper, lower = c[0::2], c[1::2]
    while lower:
        if upper[0] <= 0 or lower[0] <= 0:
            return False
        ratio, padded = upper[0] / lower[0], [*lower, Fraction(0)]
        upper, lower = lower, [u - ratio * v for u, v in zip(upper[1:], padded[1:], strict=False)]
    return True


def coefficients(eigenvalues: Any) -> Any:
    found = np.ones(1, dtype=complex)
    for value in eigenvalues:
        found = np.append(found, 0.0) - value * np.append(0.0, found)
    return found


@pytest.mark.parametrize("k", UNITS)
def test_td_on_a_chain(k: float) -> None:
    """On-policy TD is stable (Tsitsiklis & Van Roy 1997), whatever the unit of x."""
    P = np.zeros((5, 1, 5))
    for s in range(5):
        P[s, 0, s] = P[s, 0, (s + 1) % 5] = 0.5
    x, one = np.arange(1.0, 6.0), np.ones((5, 1))
    features = np.column_stack([np.ones(5), k * x])
    problem = Problem(P, x - 1.0, 0.9, one, one, features)
    point = exact.fixed_point(problem, o2td.TD(0.1))
    assert point.stable
    np.testing.assert_allclose(point.theta * [1.0, k], [160 / 11, 20 / 11], rtol=1e-12)
    assert point.rmse == pytest.approx(1.7778238159987765, rel=1e-12)
    assert point.rmspbe == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("k", UNITS)
@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_against_exact_arithmetic(learner: Any, k: float) -> None:
    unit = np.array([1.0, k, np.sqrt(k)])
    features = np.random.default_rng(3).standard_normal((8, 3)) * unit
    problem = make_problem(seed=3, states=8, features=features)
    mean, point = learner.mean_dynamics(exact.model(problem)), exact.fixed_point(problem, learner)
    A, b = rational(mean.A), rational(mean.b)
    theta = eliminate(A, b)[:3].astype(float)
    np.testing.assert_allclose(
        point.theta * unit, theta * unit, atol=1e-9 * abs(theta * unit).max()
    )
    assert point.stable == all_positive(A)
    expected = np.array([float(c) for c in characteristic(A)])
    np.testing.assert_allclose(coefficients(point.eigenvalues), expected, rtol=1e-7)
    if not point.stable:
        assert point.max_step_size == 0.0
        return
    inverse, still = eliminate(A, rational(np.eye(len(A)))), rational(np.eye(len(A)))
    for share, converges in ((0.999999, True), (1.000001, False)):
        step = Fraction(share * point.max_step_size)
        assert all_positive(2 / step * inverse - still) == converges


@pytest.mark.parametrize("k", UNITS)
@pytest.mark.parametrize("second", [0.1, 1e-4, 100.0])
def test_the_limit_of_gtd(k: float, second: float) -> None:
    """Its w is pulled to 0 by a term without unit; theta lands where that of TD does."""
    features = np.random.default_rng(3).standard_normal((8, 3)) * [1.0, k, np.sqrt(k)]
    problem = make_problem(seed=3, states=8, features=features)
    point = exact.fixed_point(problem, o2td.GTD(0.1, second_step_size=second))
    expected = exact.fixed_point(problem, o2td.TD(0.1))
    np.testing.assert_allclose(point.theta, expected.theta, rtol=1e-9)
    assert point.rmse == pytest.approx(expected.rmse, rel=1e-9)


FEATURES = np.random.default_rng(0).standard_normal((12, 3))
DEPENDENT = {
    "twice": lambda k: np.column_stack([FEATURES, k * FEATURES[:, 0]]),
    "sum": lambda k: np.column_stack([FEATURES, k * (FEATURES[:, 0] + FEATURES[:, 1])]),
    "apart": lambda k: np.column_stack(
        [FEATURES[:, :2], FEATURES[:, 0] + FEATURES[:, 1], k * FEATURES[:, 2]]
    ),
    "both": lambda k: np.column_stack(
        [FEATURES[:, [0, 0]], k * FEATURES[:, [1, 1]], FEATURES[:, 2]]
    ),
}


@pytest.mark.parametrize("k", [1e-8, 1e-6, 1.0, 1e6, 1e8])
@pytest.mark.parametrize("kind", DEPENDENT)
@pytest.mark.parametrize("build", [o2td.TD, o2td.ETD, o2td.GTD2, o2td.TDC, o2td.TDRC, o2td.HTD])
def test_dependent_features_in_other_units(build: Any, kind: str, k: float) -> None:
    """The limit is that of independent features; what no row moves stays at the start."""
    features = DEPENDENT[kind](k)
    start = np.random.default_rng(1).standard_normal(features.shape[1])
    point = exact.fixed_point(make_problem(seed=1, features=features), build(initial_theta=start))
    plain = exact.fixed_point(make_problem(seed=1, features=FEATURES), build())
    assert point.stable == plain.stable
    assert point.rmse == pytest.approx(plain.rmse, rel=1e-7)
    assert point.theta is not None
    still = {
        "twice": [[k, 0.0, 0.0, -1.0]],
        "sum": [[k, k, 0.0, -1.0]],
        "apart": [[1.0, 1.0, -1.0, 0.0]],
        "both": [[1.0, -1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0, 0.0]],
    }[kind]
    for direction in np.array(still):
        size = np.abs(direction) @ (np.abs(start) + np.abs(point.theta))
        assert direction @ point.theta == pytest.approx(direction @ start, abs=1e-7 * size)


@pytest.mark.parametrize("k", [1e-8, 1e-4, 1e4, 1e8])
def test_projections_and_errors_in_other_units(k: float) -> None:
    unit = np.array([1.0, k, 1.0 / k])
    plain = make_problem(seed=6, features=FEATURES)
    other = make_problem(seed=6, features=FEATURES * unit)
    best = exact.best_approximation(plain)
    np.testing.assert_allclose(exact.best_approximation(other) * unit, best, rtol=1e-10)
    theta = np.array([1.0, -2.0, 0.5])
    for error in (exact.rmse, exact.rmsbe, exact.rmspbe):
        assert error(other, theta / unit) == pytest.approx(error(plain, theta), rel=1e-10)
    one, two = exact.directions(plain), exact.directions(other)
    for name in ("TD(0)", "TD(0.9)", "ETD(0.9)", "residual gradient", "best"):
        found = exact.oblique_fixed_point(other, two[name]) * unit
        np.testing.assert_allclose(found, exact.oblique_fixed_point(plain, one[name]), rtol=1e-9)
        expected = exact.amplification(plain, one[name])
        assert exact.amplification(other, two[name]) == pytest.approx(expected, rel=1e-9)
    for objective in ("mse", "msbe", "mspbe"):
        centers = [getattr(metrics, f"r{objective}")(p).center for p in (plain, other)]
        np.testing.assert_allclose(centers[1] * unit, centers[0], rtol=1e-8)


def test_the_table_of_methods_in_other_units() -> None:
    unit = np.array([1.0, 1e-8, 1e7])
    plain, other = (
        {row.method: row for row in exact.analyze(make_problem(seed=6, features=x))}
        for x in (FEATURES, FEATURES * unit)
    )
    for method in ("TD", "TD(trace=0.9)", "ETD", "ETD(trace=0.9)", "GTD2", "TDC", "HTD", "TDRC"):
        one, two = plain[method], other[method]
        assert two.rmse == pytest.approx(one.rmse, rel=1e-8)
        assert two.suboptimality == pytest.approx(one.suboptimality, rel=1e-8)
        assert two.rmspbe == pytest.approx(one.rmspbe, rel=1e-8, abs=1e-10)
        assert two.amplification == pytest.approx(one.amplification, rel=1e-8)


def test_minimum_norm_where_features_differ_in_size() -> None:
    features = np.column_stack([FEATURES, 30.0 * FEATURES[:, 0], FEATURES @ [0.0, 0.01, 0.02]])
    problem = make_problem(seed=6, features=features)
    root = np.sqrt(exact.state_distribution(problem))[:, None]
    expected = np.linalg.pinv(root * features) @ (root[:, 0] * exact.value(problem))
    np.testing.assert_allclose(exact.best_approximation(problem), expected, rtol=1e-9)
    X = exact.directions(problem)["TD(0)"]
    A = X.T @ (features - problem.discounted_matrix(problem.target) @ features)
    b = X.T @ problem.expected_reward(problem.target)
    expected = np.linalg.pinv(A, rcond=1e-12) @ b
    np.testing.assert_allclose(exact.oblique_fixed_point(problem, X), expected, rtol=1e-7)


def test_a_column_of_rounding_adds_no_dimension() -> None:
    rows = np.column_stack([FEATURES, 1e-17 * FEATURES[:, 0] ** 2])
    assert orthonormalizer(rows).shape == (4, 4)  # a feature in a small unit
    assert orthonormalizer(rows, scale=np.ones(4)).shape == (4, 3)  # what is left of differences


def test_a_state_with_small_features_has_its_omega() -> None:
    """Directions and learners agree also where one state's only feature is small."""
    unit = np.ones(6)
    unit[2] = 1e-8
    P = np.zeros((6, 1, 6))
    P[np.arange(6), 0, np.arange(6)] = P[np.arange(6), 0, (np.arange(6) + 1) % 6] = 0.5
    P[1], P[2] = 0.0, 0.0
    P[1, 0, [2, 3]], P[2, 0, 2], P[2, 0, 3] = 0.5, 0.75, 0.25
    discount = np.where(np.arange(6)[None, None, :] == 3, 0.0, 0.5) * np.ones((6, 1, 6))
    one = np.ones((6, 1))
    problem = Problem(P, np.arange(6.0), discount, one, one, np.diag(unit))
    X = exact.directions(problem)["O2TD(0), state"]
    theta = exact.fixed_point(problem, o2td.O2TD(omega="state")).theta
    assert X[2, 2] > 0.0
    np.testing.assert_allclose(theta, exact.oblique_fixed_point(problem, X), rtol=1e-9)


@pytest.mark.parametrize("wrong", [np.ones(9), np.ones((1, 8)), [np.nan] * 8])
def test_a_start_that_is_not_one_number_a_feature(wrong: Any) -> None:
    with pytest.raises(InputError, match="initial_theta must be 8 finite numbers"):
        exact.fixed_point(domains.baird(), o2td.TD(initial_theta=wrong))


def test_one_number_starts_every_weight() -> None:
    one = exact.fixed_point(domains.baird(), o2td.ETD(initial_theta=2.0)).theta
    same = exact.fixed_point(domains.baird(), o2td.ETD(initial_theta=np.full(8, 2.0))).theta
    np.testing.assert_array_equal(one, same)

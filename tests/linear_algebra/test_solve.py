"""LAPACK's test matrices through the one solve: small backward error, or the right status."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from o2td.linear_algebra import EPS, backward_error, pseudo_inverse, solve, triangle

SIZES = [1, 2, 3, 5, 10, 16, 50]
TYPES = [
    "identity",
    "diagonal",
    "upper",
    "lower",
    "random",
    "first column zero",
    "last column zero",
    "half of the columns zero",
    "condition sqrt(0.1/eps)",
    "condition 0.1/eps",
    "near underflow",
    "near overflow",
]
SINGULAR = {"first column zero", "last column zero", "half of the columns zero"}


def with_condition(rng, n, condition):
    U, V = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    s = condition ** (-np.arange(n) / max(n - 1, 1))
    return U @ np.diag(s) @ V


def matrix(kind, n, seed=0):
    rng = np.random.default_rng([seed, n])
    A = with_condition(rng, n, 2.0)
    if kind == "identity":
        return np.eye(n)
    if kind == "diagonal":
        return np.diag(rng.random(n) + 0.5)
    if kind in ("upper", "lower"):
        return np.triu(A) + np.eye(n) if kind == "upper" else np.tril(A) + np.eye(n)
    if kind == "first column zero":
        A[:, 0] = 0.0
    if kind == "last column zero":
        A[:, -1] = 0.0
    if kind == "half of the columns zero":
        A[:, n // 2 :] = 0.0
    if kind.startswith("condition"):
        return with_condition(rng, n, np.sqrt(0.1 / EPS) if "sqrt" in kind else 0.1 / EPS)
    if kind == "near underflow":
        return A * (np.finfo(np.float64).tiny / EPS)
    if kind == "near overflow":
        return A * (np.finfo(np.float64).max * 0.1)
    return A


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("n", SIZES)
def test_lapack_types(kind, n):
    A = matrix(kind, n)
    x = np.random.default_rng(n).normal(size=n) / n
    b = A @ x
    answer = solve(A, b)
    assert answer.residual < 30 * EPS
    assert answer.residual == backward_error(A, answer.theta, b)
    if kind in SINGULAR:
        rank = int((A != 0).any(axis=0).sum())
        assert answer.status == ("minimum norm" if rank else "no data")
        assert answer.rank == rank
        assert answer.condition == np.inf
        np.testing.assert_allclose(answer.theta, np.linalg.pinv(A) @ b, rtol=1e-9, atol=1e-12)
    elif kind == "condition 0.1/eps":
        assert answer.status in ("ill-conditioned", "minimum norm") or n == 1
    else:
        assert answer.status == "ok"
        assert answer.rank == n
        np.testing.assert_allclose(answer.theta, x, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", ["random", "near underflow", "near overflow"])
def test_right_hand_sides_of_another_size_than_the_matrix(kind, n):
    A = matrix(kind, n)
    for size in (1e-200, 1.0, 1e200):
        b = np.random.default_rng(n).normal(size=n) * size
        answer = solve(A, b)
        ratio = np.log10(size) - np.log10(np.abs(A).max())
        assert (answer.status == "overflow") == (ratio > 308)
        # an answer below the range of floating point is zero, and its residual says so
        assert answer.residual < 30 * EPS or abs(ratio) > 300


def test_features_in_other_units_change_nothing_but_units():
    rng = np.random.default_rng(1)
    A, b = rng.normal(size=(6, 6)), rng.normal(size=6)
    units = 10.0 ** np.array([-150, -9, 0, 3, 80, 140])
    plain, scaled = solve(A, b), solve(A * units[:, None] * units, b * units)
    np.testing.assert_allclose(scaled.theta * units, plain.theta, rtol=1e-10)
    assert scaled.status == "ok"
    assert scaled.condition < 1e4


def test_a_singular_system_in_mixed_units_has_the_smallest_answer_in_those_units():
    rng = np.random.default_rng(2)
    phi = rng.normal(size=(40, 4))
    phi[:, 3] = phi[:, 1] + 2.0 * phi[:, 2]
    phi[:, 0] *= 1e-9
    A = phi.T @ phi
    answer = solve(A, A @ np.array([1e9, 1.0, 0.0, 0.0]))
    assert answer.status == "minimum norm"
    assert answer.rank == 3
    assert answer.theta[0] == pytest.approx(1e9, rel=1e-6)
    null = np.array([1.0, 2.0, -1.0])
    assert abs(answer.theta[1:] @ null) < 1e-6


def test_inconsistent_and_rectangular_systems_give_the_pseudo_inverse():
    rng = np.random.default_rng(3)
    low = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 6))
    for A in (low, rng.normal(size=(3, 5)), rng.normal(size=(5, 3))):
        b = rng.normal(size=len(A))
        np.testing.assert_allclose(solve(A, b).theta, np.linalg.pinv(A) @ b, rtol=1e-9, atol=1e-11)


def test_the_statuses_have_sentences():
    assert solve(np.zeros((2, 2)), np.zeros(2)).message.startswith("no informative rows")
    assert "smallest" in solve(np.ones((2, 2)), np.ones(2)).message
    assert solve(np.eye(1) * 1e-300, np.array([1e300])).status == "overflow"
    noted = solve(np.eye(1), np.ones(1), counts={"rows dropped": 3, "others": 0})
    assert noted.message == "solved; 3 rows dropped"
    assert noted.counts == {"rows dropped": 3}
    assert solve(np.zeros((0, 0)), np.zeros(0)).status == "ok"


def test_ridge_is_added_to_the_diagonal():
    A, b = np.ones((2, 2)), np.ones(2)
    np.testing.assert_allclose(solve(A, b, 0.5).theta, np.linalg.solve(A + 0.5 * np.eye(2), b))


def test_the_triangle_holds_norms_without_squaring_the_condition():
    rng = np.random.default_rng(4)
    D = rng.normal(size=(100, 3)) * np.array([1.0, 1e-9, 1e9])
    R = triangle(iter(np.array_split(D, 7)), 3)
    for x in np.eye(3):
        assert np.linalg.norm(R @ x) == pytest.approx(np.linalg.norm(D @ x), rel=1e-12)


def test_pseudo_inverses():
    rng = np.random.default_rng(5)
    for R in (rng.normal(size=(6, 2)) @ rng.normal(size=(2, 4)), rng.normal(size=(6, 4))):
        U, W = pseudo_inverse(R)
        np.testing.assert_allclose(W @ U.T, np.linalg.pinv(R), atol=1e-12)
        U, W = pseudo_inverse(R, 0.3)
        expected = np.linalg.solve(R.T @ R + 0.3 * np.eye(4), R.T)
        np.testing.assert_allclose(W @ U.T, expected, atol=1e-12)
    units = np.array([1.0, 1e-90, 1e90, 1e-20])
    U, W = pseudo_inverse(R * units)
    np.testing.assert_allclose(units[:, None] * (W @ U.T), np.linalg.pinv(R), atol=1e-12)
    U, W = pseudo_inverse(np.zeros((3, 2)))
    assert (U.shape, W.shape) == ((3, 0), (2, 0))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("n", SIZES)
def test_lapack_types_held_sparse(kind, n):
    A = matrix(kind, n)
    x = np.random.default_rng(n).normal(size=n) / n
    b = A @ x
    answer = solve(csr_array(A), b)
    if answer.status in ("ok", "ill-conditioned"):
        assert answer.residual < 30 * EPS
    if kind in SINGULAR:
        assert answer.status == ("minimum norm" if A.any() else "no data")
        np.testing.assert_allclose(answer.theta, np.linalg.pinv(A) @ b, rtol=1e-7, atol=1e-9)
    elif not kind.startswith("condition"):
        assert answer.status == "ok"
        np.testing.assert_allclose(answer.theta, x, rtol=1e-6)

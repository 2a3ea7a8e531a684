"""What a solution says of itself: status, rank, condition and residual, by hand and by definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from o2td.linear_algebra import backward_error, solve, solving

HADAMARD = np.array([[1.0, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
@pytest.mark.parametrize("shape", [(4, 4), (5, 2), (2, 5)])
@pytest.mark.parametrize("sizes", [(0, 0, 0), (250, -100, 3), (-250, 20, -290), (0, 3, 100)])
def test_the_backward_error_is_its_definition(
    kind: Any, shape: tuple[int, int], sizes: tuple[int, int, int]
) -> None:
    """In powers of ten of the matrix, theta and the right-hand side."""
    rng = np.random.default_rng(3)
    A, theta, b = rng.normal(size=shape), rng.normal(size=shape[1]), rng.normal(size=shape[0])
    a, t, c = (10.0**k for k in sizes)
    found = backward_error(kind(a * A), t * theta, c * b)
    up = 10.0 ** float(sizes[0] + sizes[1] - sizes[2])
    left = np.abs(b - up * A @ theta).max()
    scale = up * np.abs(A).sum(axis=1).max() * np.abs(theta).max() + np.abs(b).max()
    assert found == pytest.approx(left / scale, rel=1e-9)


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_backward_errors_of_nothing(kind: Any) -> None:
    A = kind(np.zeros((2, 2)))
    assert backward_error(A, np.zeros(2), np.zeros(2)) == 0.0
    assert backward_error(A, np.ones(2), np.ones(2)) == 1.0
    assert backward_error(kind(np.eye(2)), np.array([1.0, np.inf]), np.ones(2)) == np.inf


@pytest.mark.parametrize("unit", [1.0, 2.0**-40, 2.0**300])
def test_a_regular_system(unit: float) -> None:
    answer = solve(unit * HADAMARD, np.array([4.0, 0.0, 0.0, 8.0]))
    assert (answer.status, answer.rank, answer.residual) == ("ok", 4, 0.0)
    assert answer.condition == pytest.approx(4.0)
    np.testing.assert_array_equal(answer.theta * unit, [3.0, -1.0, -1.0, 3.0])


@pytest.mark.parametrize(("rows", "columns"), [(4, 3), (3, 4), (4, 1)])
def test_systems_that_are_not_square(rows: int, columns: int) -> None:
    A = HADAMARD[:rows, :columns] + np.triu(np.ones((rows, columns)), 2) * 0.25
    b = np.arange(1.0, rows + 1.0)
    answer = solve(A, b)
    assert answer.rank == min(rows, columns)
    assert answer.status == ("ok" if columns <= rows else "minimum norm")
    assert 0.2 < answer.condition / np.linalg.cond(A) < 5.0
    np.testing.assert_allclose(answer.theta, np.linalg.pinv(A) @ b, rtol=1e-12, atol=1e-14)
    left = np.abs(b - A @ answer.theta).max()
    scale = np.abs(A).sum(axis=1).max() * np.abs(answer.theta).max() + b.max()
    assert answer.residual == pytest.approx(left / scale, abs=1e-15)


def test_a_singular_system_has_no_condition() -> None:
    answer = solve(np.ones((3, 3)), np.array([1.0, 2.0, 3.0]))
    assert (answer.status, answer.rank, answer.condition) == ("minimum norm", 1, np.inf)
    np.testing.assert_allclose(answer.theta, np.full(3, 2.0 / 3.0), rtol=1e-14)
    assert answer.residual == pytest.approx(1.0 / 5.0)


@pytest.mark.parametrize(
    ("apart", "status", "rank"),
    [(2e-11, "ok", 2), (1e-12, "ill-conditioned", 2), (1e-14, "ill-conditioned", 2)],
)
def test_columns_that_nearly_repeat_each_other(apart: float, status: str, rank: int) -> None:
    A = np.array([[1.0, 1.0], [1.0, 1.0 + apart]])
    answer = solve(A, np.array([2.0, 2.0 + apart]))
    assert (answer.status, answer.rank) == (status, rank)
    assert answer.condition == pytest.approx(4.0 / apart, rel=0.1)
    np.testing.assert_allclose(answer.theta, np.ones(2), atol=1e-15 / apart)
    many = solve(A, np.array([2.0, 2.0 + apart]), rows=10**18)  # rounding of as many rows
    assert (many.status, many.rank, many.condition) == ("minimum norm", 1, np.inf)
    np.testing.assert_allclose(many.theta, np.ones(2), rtol=1e-9)


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_empty_rows_and_columns_are_left_out(kind: Any) -> None:
    A = np.zeros((4, 3))
    A[0], A[2] = [1.0, 0.0, 1.0], [1.0, 0.0, -1.0]
    told = solve(kind(A), np.array([3.0, 0.0, 1.0, 0.0]), counts={"rows dropped": 2})
    assert (told.status, told.rank, told.condition) == ("minimum norm", 2, np.inf)
    assert told.counts == {"rows dropped": 2}
    np.testing.assert_allclose(told.theta, [2.0, 0.0, 1.0], atol=1e-15)
    assert told.residual < 1e-15
    told = solve(kind(A[:, [0, 2]]), np.array([3.0, 6.0, 1.0, 0.0]))
    assert (told.status, told.rank) == ("ok", 2)
    assert 1.0 <= told.condition < 3.0
    assert told.residual == pytest.approx(6.0 / (2.0 * 2.0 + 6.0))
    none = solve(kind(np.zeros((2, 3))), np.array([0.0, 2.0]), counts={"rows dropped": 1})
    assert (none.status, none.rank, none.condition, none.residual) == ("no data", 0, np.inf, 1.0)
    assert none.counts == {"rows dropped": 1}
    assert solve(kind(np.zeros((2, 3))), np.zeros(2)).residual == 0.0
    nothing = solve(kind(np.zeros((2, 0))), np.zeros(2), counts={"rows dropped": 1})
    assert (nothing.status, nothing.rank, nothing.condition) == ("ok", 0, 1.0)
    assert (nothing.residual, nothing.counts) == (0.0, {"rows dropped": 1})


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_ridge_goes_to_the_diagonal_of_either_kind(kind: Any) -> None:
    A = np.array([[2.0, 1.0], [1.0, 0.0]])
    answer = solve(kind(A), np.array([1.0, 2.0]), 0.5)
    np.testing.assert_allclose(answer.theta, np.linalg.solve(A + 0.5 * np.eye(2), [1.0, 2.0]))
    assert answer.residual < 1e-15


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_a_basis_of_a_null_space_does_not_depend_on_the_sizes_of_its_columns(size):
    N = np.random.default_rng(0).normal(size=(6, 2))
    Q = solving._basis(N * [size, 1.0])
    np.testing.assert_allclose(Q.T @ Q, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(Q @ (Q.T @ N), N, atol=1e-12)

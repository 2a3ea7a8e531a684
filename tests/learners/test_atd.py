"""The parts of ATD's truncation, as plain functions, against NumPy's decompositions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2td.learners import atd

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(("m", "d"), [(1, 4), (2, 2), (4, 9), (6, 4)])
@pytest.mark.parametrize("at", [0, 7])
def test_rows_become_orthonormal(m: int, d: int, at: int) -> None:
    rng = np.random.default_rng(m + d)
    rows = rng.normal(size=(m, d))
    if m == 4:  # nearly dependent, dependent, and nothing
        rows[1] = rows[0] + 1e-9 * rows[1]
        rows[2] = 0.5 * rows[1] - 2.0 * rows[0]
        rows[3] *= 1e-30
    flat, room = rows.ravel().copy(), np.full(at + m * m + 1, 9.0)
    atd.orthogonal(flat, m, d, room, at)
    Q, triangle = flat.reshape(m, d), room[at : at + m * m].reshape(m, m)
    np.testing.assert_allclose(triangle @ Q, rows, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(triangle, np.tril(triangle))
    used = np.abs(Q).max(axis=1) > 0.0
    assert used.sum() == np.linalg.matrix_rank(rows / np.abs(rows).max(axis=1)[:, None], tol=1e-12)
    np.testing.assert_allclose(Q[used] @ Q[used].T, np.eye(used.sum()), atol=1e-14)
    np.testing.assert_array_equal(np.diag(triangle) > 0.0, used)
    np.testing.assert_array_equal(np.delete(room, slice(at, at + m * m)), 9.0)


@pytest.mark.parametrize("m", [1, 2, 5])
def test_rows_are_turned_until_they_are_orthogonal(m: int) -> None:
    rng = np.random.default_rng(m)
    old, begun, left, right = rng.normal(size=(m, m)), rng.normal(size=(m, m)), 3, 4 + m * m
    room = np.full(right + m * m + 2, 9.0)
    room[left : left + m * m], room[right : right + m * m] = old.ravel(), begun.ravel()
    atd.rotated(m, room, left, right)
    new, turned = (room[k : k + m * m].reshape(m, m) for k in (left, right))
    turn = turned @ np.linalg.inv(begun)
    np.testing.assert_allclose(turn @ turn.T, np.eye(m), atol=1e-11)
    np.testing.assert_allclose(turn @ old, new, atol=1e-11)
    gram = new @ new.T
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-13)
    assert (room[[0, 1, 2, left + m * m, -2, -1]] == 9.0).all()


@pytest.mark.parametrize("rank", [1, 2, 3, 5])
@pytest.mark.parametrize("d", [3, 20])
@pytest.mark.parametrize("scale", [1e-90, 1.0, 1e90])
def test_a_product_is_truncated_to_its_largest_singular_values(
    rank: int, d: int, scale: float
) -> None:
    rng, m = np.random.default_rng(rank + d), 2 * rank
    lefts, rights = scale * rng.normal(size=(m, d)), scale * rng.normal(size=(m, d))
    if rank == 3:  # of rank 2: there is nothing to keep third
        lefts[:], rights[:] = lefts[[0, 1, 0, 1, 0, 1]], rights[[0, 1, 0, 1, 0, 1]]
    whole = lefts.T / scale @ (rights / scale)
    U, size, Vt = np.linalg.svd(whole)
    keep = min(rank, d, 2 if rank == 3 else m)
    flat, other, room = lefts.ravel().copy(), rights.ravel().copy(), np.full(atd.ROOM, 5.0)
    atd.cut(flat, other, rank, d, room)
    one, two = flat.reshape(m, d)[:rank], other.reshape(m, d)[:rank]
    np.testing.assert_allclose(room[:keep] / scale**2, size[:keep], rtol=1e-9)
    np.testing.assert_array_equal(room[keep:rank], 0.0)
    np.testing.assert_array_equal(one[keep:], 0.0)
    np.testing.assert_allclose(two[:keep] @ two[:keep].T, np.eye(keep), atol=1e-9)
    best = (U[:, :keep] * size[:keep]) @ Vt[:keep]
    np.testing.assert_allclose(one.T / scale**2 @ two, best, atol=1e-9 * size[0])


def test_nothing_is_truncated_to_nothing() -> None:
    lefts, rights, room = np.zeros(12), np.ones(12), np.full(atd.ROOM, 5.0)
    atd.cut(lefts, rights, 2, 3, room)
    np.testing.assert_array_equal(room[:2], 0.0)
    np.testing.assert_array_equal(lefts[:6], 0.0)
    assert np.isfinite(rights[:6]).all()

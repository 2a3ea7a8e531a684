"""Compressed least-squares problems against NumPy's own answer to the whole."""

from __future__ import annotations

import numpy as np
import pytest

from o2td import exact
from o2td.errors import NoAnswerError
from o2td.linear_algebra import least_squares
from o2td.linear_algebra.least_squares import compress, orthonormalizer


@pytest.mark.parametrize("dependent", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("units", [False, True])
def test_what_is_left_is_the_sum_of_squares_of_the_whole(dependent, weighted, units):
    rng = np.random.default_rng(0)
    rows, value = rng.normal(size=(30, 4)), rng.normal(size=30)
    if dependent:
        rows[:, 3] = rows[:, 0] - rows[:, 1]
    scale = np.array([1.0, 2.0, 4.0, 8.0]) if units else None
    weight = rng.random(30) if weighted else None
    root = np.sqrt(np.ones(30) if weight is None else weight)
    center, *_ = np.linalg.lstsq(root[:, None] * rows, root * value, rcond=1e-10)
    found = compress(rows, value, weight, scale)
    np.testing.assert_allclose(found.center, center, atol=1e-12)
    left = float(np.sum((root * (value - rows @ center)) ** 2))
    assert found.constant == pytest.approx(left, rel=1e-10)
    for theta in rng.normal(size=(3, 4)):
        own = float(np.sum((found.R @ (theta - found.center)) ** 2)) + found.constant
        whole = float(np.sum((root * (value - rows @ theta)) ** 2))
        assert own == pytest.approx(whole, rel=1e-10)


def test_columns_become_orthonormal_in_the_weighted_norm():
    rng = np.random.default_rng(1)
    rows, weight = rng.normal(size=(20, 3)) * [1.0, 1e-6, 1e6], rng.random(20)
    rows = np.column_stack([rows, rows[:, 0] + rows[:, 1]])
    B = orthonormalizer(rows, weight)
    assert B.shape == (4, 3)
    basis = rows @ B
    np.testing.assert_allclose(basis.T @ (weight[:, None] * basis), np.eye(3), atol=1e-9)


def test_a_triangle_of_blocks_is_that_of_all_rows(monkeypatch):
    rng = np.random.default_rng(0)
    rows, weight, value = rng.normal(size=(40, 3)), rng.random(40), rng.normal(size=40)
    weight[[4, 20]] = 0.0
    both = np.sqrt(weight)[:, None] * np.column_stack([rows, value])
    for block in (1, 20, 1 << 21):
        monkeypatch.setattr(least_squares, "_BLOCK", block)
        R = least_squares.weighted_triangle(rows, weight, value)
        assert R.shape == (4, 4)
        np.testing.assert_allclose(R.T @ R, both.T @ both, rtol=1e-12, atol=1e-13)
        np.testing.assert_array_equal(R, np.triu(R))
    few = least_squares.weighted_triangle(rows[:2], None)
    assert few.shape == (3, 3)
    np.testing.assert_allclose(few.T @ few, rows[:2].T @ rows[:2], atol=1e-13)


def test_a_decomposition_that_fails_is_no_answer(monkeypatch):
    def fails(*_, **__):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(np.linalg, "svd", fails)
    with pytest.raises(NoAnswerError, match="too large or too unequal to be decomposed; rescale"):
        orthonormalizer(np.array([[3.0, 0.0], [4.0, 5.0]]))


def test_features_too_small_to_be_scaled():
    with pytest.raises(NoAnswerError, match="too small to be decomposed; rescale"):
        exact.oblique_projection(1e-320 * np.eye(3), np.eye(3))
    found = exact.oblique_projection(1e-300 * np.eye(3), np.eye(3))
    np.testing.assert_allclose(found, np.eye(3), atol=1e-12)


def test_too_many_features_are_refused_before_memory_runs_out(monkeypatch):
    monkeypatch.setattr(least_squares, "MOST_FEATURES", 4)
    assert orthonormalizer(np.eye(4)).shape == (4, 4)
    for refused in (orthonormalizer, lambda rows: compress(rows, np.ones(5))):
        with pytest.raises(
            NoAnswerError, match="5 features need dense matrices of 0 GB here; up to 4"
        ):
            refused(np.eye(5))

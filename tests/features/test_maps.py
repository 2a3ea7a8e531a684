"""Each map against the plain, slow formula, and its properties over generated inputs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from o2td.errors import InputError
from o2td.features import (
    Aggregation,
    Fourier,
    GridAggregation,
    Polynomial,
    Radial,
    Scaling,
    Tabular,
)

unit = st.floats(0, 1, allow_subnormal=False)


def rows(k: int, elements=unit):
    return st.integers(1, 40).flatmap(lambda n: arrays(np.float64, (n, k), elements=elements))


def random_rows(n: int, k: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((n, k))


# scaling


@given(rows(3, st.floats(-1e6, 1e6)), st.integers(0, 40))
def test_streamed_bounds_equal_those_of_one_pass(X, cut):
    whole, parts = Scaling().fit(X), Scaling().partial_fit(X[:cut]).partial_fit(X[cut:])
    assert np.array_equal(whole.low_, X.min(axis=0))
    assert np.array_equal(whole.low_, parts.low_)
    assert np.array_equal(whole.high_, parts.high_)
    assert np.array_equal(whole.transform(X), parts.transform(X))


@given(rows(2, st.floats(-1e300, 1e300)))
def test_scaled_values_lie_in_the_unit_cube_and_reach_its_faces(X):
    u = Scaling().fit_transform(X)
    assert (u >= 0).all()
    assert (u <= 1).all()
    varied = X.min(axis=0) < X.max(axis=0)
    assert np.array_equal(u.max(axis=0), varied.astype(float))
    assert (u[:, ~varied] == 0).all()


def test_clipping_can_be_turned_off():
    X = [[-1.0], [3.0]]
    assert Scaling(bounds=[(0, 2)]).transform(X).ravel().tolist() == [0, 1]
    assert Scaling(bounds=[(0, 2)], clip=False).transform(X).ravel().tolist() == [-0.5, 1.5]


def test_a_fit_forgets_the_fit_before():
    scaling = Scaling().fit([[0.0], [9.0]]).fit([[1.0, 2.0], [3.0, 4.0]])
    assert scaling.low_.tolist() == [1, 2]


# Fourier


def slow_fourier(u, order, coupled, scale):
    k = u.shape[1]
    every = itertools.product(range(order + 1), repeat=k)
    if not coupled:
        eye = np.eye(k, dtype=int)
        every = [0 * eye[0]] + [c * eye[j] for j in range(k) for c in range(1, order + 1)]
    columns = []
    for c in every:
        norm = np.sqrt(np.dot(c, c))
        weight = np.sqrt(norm) if scale and norm > 0 else 1.0
        columns.append(np.cos(np.pi * (u @ np.array(c))) / weight)
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("scale", [None, "coefficient"])
@pytest.mark.parametrize(
    ("k", "order", "coupled"),
    [(1, 0, 1), (1, 30, 1), (2, 3, 1), (2, 17, 1), (3, 4, 1), (5, 2, 1), (16, 4, 0), (1, 3, 0)],
)
def test_fourier_is_the_cosine_formula(k, order, coupled, scale):
    X = random_rows(300, k)
    phi = Fourier(order, bounds=[(0, 1)] * k, scale=scale, coupled=bool(coupled)).transform(X)
    assert phi.flags.c_contiguous
    assert phi.dtype == np.float64
    np.testing.assert_allclose(phi, slow_fourier(X, order, coupled, scale), atol=2e-14)


@pytest.mark.parametrize("order", [3, 20])
def test_unclipped_waves_go_on(order):
    X = np.linspace(-7, 9, 501).reshape(-1, 1).repeat(2, axis=1) * [1, 0.3]
    phi = Fourier(order, bounds=[(0, 1)] * 2, clip=False).transform(X)
    np.testing.assert_allclose(phi, slow_fourier(X, order, True, None), atol=2e-12)


@pytest.mark.parametrize(("k", "order"), [(1, 3), (2, 3), (3, 4)])
def test_fourier_is_orthogonal_on_a_grid_over_the_full_period(k, order):
    points = 2 * order + 2
    grid = 2 * (np.arange(points) + 0.5) / points - 1
    X = np.array(list(itertools.product(grid, repeat=k)))
    phi = Fourier(order, bounds=[(0, 1)] * k, clip=False).transform(X)
    expected = np.full(phi.shape[1], 0.5)
    expected[0] = 1
    np.testing.assert_allclose(phi.T @ phi / len(X), np.diag(expected), atol=1e-14)


@given(rows(2))
def test_fourier_is_within_one_and_pure(X):
    phi = Fourier(5, bounds=[(0, 1)] * 2)
    first, kept = phi.transform(X), X.copy()
    assert np.abs(first).max() <= 1 + 1e-14
    assert (first[:, 0] == 1).all()
    assert np.array_equal(first, phi.transform(X))
    assert np.array_equal(X, kept)


def test_results_do_not_depend_on_blocks_layout_or_dtype():
    X = random_rows(9001, 2).astype(np.float32)
    phi = Fourier(3, bounds=[(0, 1)] * 2)
    whole = phi.transform(X)
    pieces = np.concatenate([phi.transform(X[a : a + 7]) for a in range(0, 9001, 7)])
    assert np.array_equal(whole, pieces)
    locked = np.asfortranarray(X.astype(np.float64))
    locked.flags.writeable = False
    assert np.array_equal(whole, phi.transform(locked))


def test_out_is_written_and_checked():
    phi, X = Fourier(2, bounds=[(0, 1)]), random_rows(4, 1)
    out = np.empty((4, 3))
    assert phi.transform(X, out=out) is out
    assert np.array_equal(out, phi.transform(X))
    for bad in (np.empty((4, 2)), np.empty((4, 3), np.float32), np.empty((3, 4)).T, [[0.0] * 3]):
        with pytest.raises(InputError, match="out:"):
            phi.transform(X, out=bad)


def test_no_rows_give_no_rows():
    empty = np.empty((0, 2))
    assert Fourier(3, bounds=[(0, 1)] * 2).transform(empty).shape == (0, 16)
    assert GridAggregation(3, bounds=[(0, 1)] * 2).transform(empty).shape == (0, 9)


# radial, polynomial


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("bins", [4, (3, 5), (1, 2)])
def test_radial_grid_is_the_formula(bins, normalize):
    X, sides = random_rows(50, 2), (4, 4) if bins == 4 else bins
    axes = [np.linspace(0, 1, b) if b > 1 else np.array([0.5]) for b in sides]
    centers = np.array(list(itertools.product(*axes)))
    width = np.array([1 / max(b - 1, 1) for b in sides])
    slow = np.exp(-0.5 * (((X[:, None] - centers) / width) ** 2).sum(axis=2))
    slow /= slow.sum(axis=1, keepdims=True) if normalize else 1.0
    bounds = [(0, 1)] * 2
    grid = Radial(bins, bounds=bounds, normalize=normalize)
    free = Radial(width=width, bounds=bounds, normalize=normalize, centers=centers)
    np.testing.assert_allclose(grid.transform(X), slow, rtol=1e-12)
    np.testing.assert_allclose(free.transform(X), slow, rtol=1e-12)


@given(rows(2), st.floats(1e-3, 10))
def test_normalized_radial_rows_are_convex_weights_however_narrow(X, width):
    bounds = [(0, 1)] * 2
    centers = [[0.1, 0.2], [0.9, 0.4]]
    for phi in (
        Radial(4, width, bounds, normalize=True),
        Radial(width=width, bounds=bounds, normalize=True, centers=centers),
    ):
        weights = phi.transform(X)
        assert (weights >= 0).all()
        np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)


def test_centres_are_in_the_units_of_the_observations():
    phi = Radial(width=0.5, bounds=[(-10, 10)], centers=[[0.0], [10.0]])
    np.testing.assert_allclose(phi.transform([[0.0]]), [[1.0, np.exp(-0.5)]])


@pytest.mark.parametrize(("k", "degree"), [(1, 0), (1, 5), (2, 3), (4, 2)])
def test_polynomial_is_the_product_formula(k, degree):
    X = random_rows(30, k)
    phi = Polynomial(degree, bounds=[(0, 1)] * k).fit()
    powers = phi.powers()
    v = 2 * X - 1
    np.testing.assert_allclose(
        phi.transform(X), np.prod(v[:, None, :] ** powers[None], axis=2), rtol=1e-12, atol=1e-15
    )
    every = {c for c in itertools.product(range(degree + 1), repeat=k) if sum(c) <= degree}
    assert {tuple(c) for c in powers.tolist()} == every
    assert len(powers) == len(every)


def test_a_constant_column_adds_nothing_to_a_polynomial():
    phi = Polynomial(1).fit_transform([[1.0, 7.0], [3.0, 7.0]])
    assert phi.tolist() == [[1, -1, 0], [1, 1, 0]]


# tabular and aggregated


@given(st.lists(st.integers(0, 30), min_size=1, max_size=50))
def test_tabular_rows_are_rows_of_the_identity(states):
    phi = Tabular().fit_transform(states)
    assert np.array_equal(phi.toarray(), np.eye(max(states) + 1)[states])
    assert np.array_equal(Tabular(31).table().toarray(), np.eye(31))
    cut = len(states) // 2
    streamed = Tabular().partial_fit(states[:cut]).partial_fit(states[cut:])
    assert streamed.n_features_out_ == max(states) + 1


def test_states_may_be_a_column_or_whole_floats():
    assert Tabular(4).state_of(np.array([[3.0], [1.0]])).tolist() == [3, 1]
    assert Tabular(4).state_of(np.array([3, 1], np.uint8)).dtype == np.int64


def test_aggregation_by_array_and_by_mapping():
    by_array, by_mapping = Aggregation([1, 0, 1]), Aggregation({0: 1, 1: 0, 2: 1, 5: 0})
    assert by_array.state_of([2, 1, 0]).tolist() == [1, 0, 1]
    assert by_mapping.fit([5, 2]).state_of([5, 2]).tolist() == [0, 1]
    assert by_array.table().toarray().tolist() == [[0, 1], [1, 0], [0, 1]]
    with pytest.raises(InputError, match="row 1 is 4, which groups= puts in no group"):
        by_mapping.state_of([0, 4])


@given(rows(2))
@settings(max_examples=50)
def test_grid_cells_are_those_of_numpys_histogram(X):
    cells = Aggregation.grid((4, 8), bounds=[(0, 1), (0, 1)])
    counts = np.bincount(cells.state_of(X), minlength=32)
    histogram, *_ = np.histogram2d(*X.T, bins=(4, 8), range=[(0, 1), (0, 1)])
    assert np.array_equal(counts, histogram.ravel())
    assert np.array_equal(cells.transform(X).toarray().argmax(axis=1), cells.state_of(X))


def test_fourier_couples_at_most_so_many_variables():
    rows = np.random.default_rng(0).random((50, 4))
    pairs = Fourier(3, bounds=[(0, 1)] * 4, coupled=2)
    phi, c = pairs.transform(rows), pairs.coefficients()
    assert phi.shape == (50, 1 + 4 * 3 + 6 * 9)
    assert len(np.unique(c, axis=0)) == len(c)
    assert (c > 0).sum(axis=1).max() == 2
    np.testing.assert_allclose(phi, np.cos(np.pi * rows @ c.T), atol=1e-12)
    every = Fourier(3, bounds=[(0, 1)] * 4, coupled=4).transform(rows)
    np.testing.assert_allclose(every, Fourier(3, bounds=[(0, 1)] * 4).transform(rows), atol=1e-12)

"""Tile coding against an independent computation, and the properties that make it useful."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from o2td.errors import InputError
from o2td.features import Tiles

WORD = 2**64 - 1


def coordinates(row, tilings, bins, tiling):
    """Tile of one tiling, in exact arithmetic on Python integers."""
    found = []
    for j, (u, b) in enumerate(zip(row, bins, strict=True)):
        step = min(int(u * (b * tilings)), b * tilings - 1)
        found.append((step + tiling * (2 * j + 1) % tilings) // tilings)
    return found


def splitmix(x):
    z = (x + 0x9E3779B97F4A7C15) & WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def hashed_column(row, tilings, bins, tiling, seed, size):
    h = splitmix(splitmix(seed) ^ tiling)
    for c in coordinates(row, tilings, bins, tiling):
        h = splitmix(h ^ (c & WORD))
    return ((h >> 32) * size) >> 32


def slow_tiles(X, tilings, bins, bias=False):
    sides = [b + 1 for b in bins]
    dense = np.zeros((len(X), tilings * int(np.prod(sides)) + bias))
    for i, t in itertools.product(range(len(X)), range(tilings)):
        place = np.ravel_multi_index(coordinates(X[i], tilings, bins, t), sides)
        dense[i, t * int(np.prod(sides)) + place] = 1
    dense[:, dense.shape[1] - bias :] = 1
    return dense


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("tilings", "bins"), [(1, (3,)), (8, (8, 8)), (4, (2, 5)), (16, (2, 3, 1))]
)
def test_tiles_against_the_slow_formula(tilings, bins, bias):
    k = len(bins)
    X = np.vstack([np.random.default_rng(1).random((60, k)), np.zeros(k), np.ones(k)])
    tiles = Tiles(tilings, bins, bounds=[(0, 1)] * k, bias=bias)
    slow = slow_tiles(X, tilings, bins, bias)
    phi = tiles.transform(X)
    assert phi.has_sorted_indices
    phi.check_format(full_check=True)
    assert np.array_equal(phi.toarray(), slow)
    dense = Tiles(tilings, bins, bounds=[(0, 1)] * k, bias=bias, sparse=False)
    assert np.array_equal(dense.transform(X), slow)
    out = np.full(slow.shape, 7.0)
    assert np.array_equal(dense.fit().transform(X, out=out), slow)


@given(arrays(np.float64, (9, 2), elements=st.floats(-3, 4)), st.integers(1, 9), st.integers(1, 9))
def test_exactly_one_tile_a_tiling_is_active(X, tilings, bins):
    phi = Tiles(tilings, bins, bounds=[(0, 1)] * 2).transform(X)
    assert np.array_equal(np.diff(phi.indptr), np.full(9, tilings))
    assert (phi.data == 1).all()
    assert np.array_equal(phi.indices.reshape(9, tilings) // (bins + 1) ** 2, [range(tilings)] * 9)


@given(st.floats(0, 0.9), st.integers(0, 8))
def test_neighbours_share_tiles_in_proportion_to_their_distance(x, steps):
    tilings, bins = 8, 8
    tiles = Tiles(tilings, bins, bounds=[(0, 1)])
    here, there = tiles.transform([[x]]), tiles.transform([[x + steps / (tilings * bins)]])
    shared = (here @ there.T).toarray().item()
    reach = min(steps, round((1 - x) * 64))
    assert abs(shared - (tilings - reach)) <= 1


def test_all_displacements_differ_for_a_power_of_two():
    shifts = Tiles(16, 4, bounds=[(0, 1)] * 3).fit()._shifts
    for j in range(3):
        assert sorted(shifts[:, j]) == list(range(16))


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
@pytest.mark.parametrize("size", [1, 7, 4096, 2**31 - 1])
def test_hashed_columns_are_those_of_python_integers(seed, size):
    X = np.random.default_rng(2).random((40, 3))
    tiles = Tiles(8, (4, 5, 6), bounds=[(0, 1)] * 3, hashed=size, seed=seed)
    phi = tiles.transform(X)
    phi.check_format(full_check=True)
    for i, row in enumerate(X):
        columns = [hashed_column(row, 8, (4, 5, 6), t, seed, size) for t in range(8)]
        want, ones = np.unique(columns, return_counts=True)
        here = slice(phi.indptr[i], phi.indptr[i + 1])
        assert phi.indices[here].tolist() == want.tolist()
        assert phi.data[here].tolist() == ones.tolist()


def test_hashed_columns_never_change():
    """Written down once: a model file made elsewhere must meet the same columns."""
    phi = Tiles(4, 4, bounds=[(0, 1)] * 2, hashed=1000).transform([[0.25, 0.75]])
    assert sorted(hashed_column([0.25, 0.75], 4, (4, 4), t, 0, 1000) for t in range(4)) == [
        *phi.indices.tolist()
    ]
    assert phi.indices.tolist() == [25, 193, 616, 801]


@given(arrays(np.float64, (20, 2), elements=st.floats(0, 1)), st.integers(1, 50), st.booleans())
def test_hashed_rows_sum_to_the_tilings(X, size, bias):
    options = {"bounds": [(0, 1)] * 2, "hashed": size, "bias": bias}
    phi = Tiles(6, 3, **options).transform(X)
    assert phi.shape == (20, size + bias)
    np.testing.assert_array_equal(phi.sum(axis=1), 6 + bias)
    assert np.array_equal(phi.toarray(), Tiles(6, 3, sparse=False, **options).transform(X))


def test_hashing_spreads_evenly():
    """Chi-square over 256 columns of 2^16 different tiles; false alarm 1 in 10^6 (seed fixed)."""
    X = (np.indices((256, 256)).reshape(2, -1).T + 0.5) / 256
    phi = Tiles(1, 256, bounds=[(0, 1)] * 2, hashed=256).transform(X)
    counts = np.bincount(phi.indices, minlength=256)
    assert ((counts - 256) ** 2 / 256).sum() < 255 + 4.75 * np.sqrt(2 * 255) + 20


def test_unclipped_hashed_tiles_go_on_beyond_the_bounds():
    X = np.array([[-2.3], [0.4], [5.1]])
    far = Tiles(4, 4, bounds=[(0, 1)], hashed=10**6, clip=False).transform(X)
    near = Tiles(4, 4, bounds=[(0, 1)], hashed=10**6).transform(X)
    assert np.array_equal(far[[1]].toarray(), near[[1]].toarray())
    assert not np.array_equal(far[[0]].indices, near[[0]].indices)
    with pytest.raises(InputError, match="too far out of bounds"):
        Tiles(4, 4, bounds=[(0, 1)], hashed=9, clip=False).transform([[1e300]])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"tilings": 0, "bins": 2}, "tilings must be a whole number .* got 0"),
        ({"tilings": 2, "bins": 2.5}, "bins must be a whole number .* got 2.5"),
        ({"tilings": 2, "bins": (2, 2)}, "bins: 2 given for 3 variables"),
        ({"tilings": 8, "bins": 10**4}, "pass hashed="),
        ({"tilings": 8, "bins": 10**18, "hashed": 9}, "too large to place"),
        ({"tilings": 2, "bins": 2, "clip": False}, "clip: False needs hashed="),
        ({"tilings": 2, "bins": 2, "hashed": 0}, "hashed must be a whole number .* got 0"),
        (
            {"tilings": 2, "bins": 2, "hashed": 8, "seed": 2**64},
            "seed must be a whole number .* got 18446744073709551616",
        ),
    ],
)
def test_what_cannot_be_tiled_is_refused(params, message):
    with pytest.raises(InputError, match=message):
        Tiles(**params, bounds=[(0, 1)] * 3).fit()

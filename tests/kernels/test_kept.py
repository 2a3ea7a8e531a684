"""Vectors and traces by their addresses, compiled and in Python, and the saved state of a lane."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numba import njit

from o2td.kernels import kept
from o2td.kernels.kept import CARRIED, Kept

LANES = 3


class Lanes(NamedTuple):
    vectors: tuple
    traces: tuple
    active: tuple
    size: np.ndarray


def state(listed: bool = False):
    """Two vectors, two traces and the scalars of three lanes, all numbers different."""
    widths, arrays, begin = (4, 2, 3, 3, len(CARRIED) + 2), [], 1.0
    for width in widths:
        arrays.append(np.arange(begin, begin + LANES * width).reshape(LANES, width))
        begin += 100.0
    active = tuple(np.arange(k, k + 9, dtype=np.int32).reshape(LANES, 3) for k in (0, 50))
    size = np.array([[1, 2], [3, 0], [2, 3]])
    lanes = Lanes((None,) * 2, (None,) * 2, active if listed else (), size)
    return arrays, lanes, Kept.room(arrays, lanes)


@njit
def compiled_vectors(stacked, places, first, lane):
    return [
        (one.sum(), one[0], one[-1], float(len(one)))
        for one in kept.vectors_of(stacked, places, first, lane)
    ]


@njit
def compiled_traces(stacked, places, first, lane):
    x, y = kept.dense_traces(stacked, places, first, lane)
    x.values[0] += 1000.0
    return x.values.sum(), len(x.values), y.values.sum(), len(y.values)


@pytest.mark.parametrize("lane", range(LANES))
def test_vectors_at_their_addresses(lane):
    arrays, _, room = state()
    for first in (0, 1, 2):
        plain = kept.vectors_of((None,) * 3, room.places, first, lane)
        for one, array in zip(plain, arrays[first : first + 3], strict=True):
            np.testing.assert_array_equal(one, array[lane])
        expected = [
            (array[lane].sum(), array[lane, 0], array[lane, -1], array.shape[1])
            for array in arrays[first : first + 3]
        ]
        assert compiled_vectors((None,) * 3, room.places, first, lane) == expected
    plain[0][1] = -7.0  # no copy
    assert arrays[2][lane, 1] == -7.0


@pytest.mark.parametrize("lane", range(LANES))
def test_traces_at_their_addresses(lane):
    arrays, lanes, room = state()
    x, y = kept.traces_of(lanes, room.places, lane)
    np.testing.assert_array_equal(x.values, arrays[2][lane])
    np.testing.assert_array_equal(y.values, arrays[3][lane])
    total = arrays[2][lane].sum()
    found = compiled_traces((None,) * 2, room.places, 2, lane)
    assert found == (total + 1000.0, 3, arrays[3][lane].sum(), 3)
    assert arrays[2][lane].sum() == total + 1000.0


def test_traces_with_lists():
    arrays, lanes, room = state(listed=True)
    for lane in range(LANES):
        for k, one in enumerate(kept.traces_of(lanes, room.places, lane)):
            np.testing.assert_array_equal(one.values, arrays[2 + k][lane])
            np.testing.assert_array_equal(one.indices, lanes.active[k][lane])
            assert one.sizes[one.place] == lanes.size[lane, k]


@pytest.mark.parametrize("listed", [False, True])
def test_a_lane_gets_back_what_was_saved(listed):
    arrays, lanes, room = state(listed)
    before = [array.copy() for array in (*arrays, *lanes.active, lanes.size)]
    kept.keep(room, 1)
    kept.keep_lists(lanes.active, lanes.size, 1, room)
    for array in (*arrays, *lanes.active):
        array[1] = -1
        array[2] = -2
    if listed:
        lanes.size[1:] = -3
    room.restore(arrays, lanes, 1)
    for now, old in zip((*arrays, *lanes.active), before, strict=False):
        np.testing.assert_array_equal(now[:2], old[:2])
        assert (now[2] == -2).all()
    if listed:  # without lists there are no sizes to be kept
        np.testing.assert_array_equal(lanes.size[:2], before[-1][:2])


@pytest.mark.parametrize("array", range(5))
def test_a_lane_is_calm_until_a_number_of_its_own_is_large(array):
    arrays, _, room = state()
    assert kept.calm(room.places, 1)
    for large in (1e151, -1e151, np.inf, np.nan):
        arrays[array][1, -1] = large
        assert not kept.calm(room.places, 1)
        assert kept.calm(room.places, 0)
        assert kept.calm(room.places, 2)
    arrays[array][1, -1] = 0.0
    arrays[-1][1, : len(CARRIED)] = 1e200  # the driver's own do not count
    assert kept.calm(room.places, 1)


@njit
def compiled_calm(places, lane):
    return kept.calm(places, lane)


@njit
def compiled_keep(room, lane):
    kept.keep(room, lane)


def test_compiled_forms_save_and_judge_the_same():
    arrays, _, room = state()
    compiled_keep(room, 2)
    for own, array in zip(room.state, arrays, strict=True):
        np.testing.assert_array_equal(own[: array.shape[1]], array[2])
    assert compiled_calm(room.places, 1)
    arrays[-1][1, : len(CARRIED)] = 1e200
    assert compiled_calm(room.places, 1)
    arrays[-1][1, len(CARRIED)] = -1e200
    assert not compiled_calm(room.places, 1)
    assert compiled_calm(room.places, 2)

"""Lanes packed side by side and unpacked again are the same lanes; diverged ones stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.kernels.lane_columns import WIDTH, pack, take_out, turn, unpack

D = 3


@pytest.mark.parametrize("lanes", [1, WIDTH, WIDTH + 5])
def test_packed_lanes_are_columns_of_their_group(lanes: int) -> None:
    given = np.random.default_rng(0).normal(size=(lanes, D))
    diverged = np.full(lanes, -1)
    diverged[lanes // 2] = 0  # stopped at the very first row
    groups = np.full((-(-lanes // WIDTH), WIDTH * D), 7.0)
    pack(given, diverged, groups)
    columns = groups.reshape(-1, D, WIDTH).transpose(0, 2, 1).reshape(-1, D)
    running = diverged < 0
    np.testing.assert_array_equal(columns[:lanes][running], given[running])
    assert (columns[:lanes][~running] == 7.0).all()
    assert (columns[lanes:] == 7.0).all()
    back = np.zeros_like(given)
    unpack(groups, diverged, back)
    np.testing.assert_array_equal(back, np.where(running[:, None], given, 0.0))


def test_a_lane_that_is_taken_out_leaves_zeros() -> None:
    group = np.arange(1.0, WIDTH * D + 1)
    columns, kept = group.copy().reshape(D, WIDTH), np.zeros(D)
    take_out(group, 2, kept)
    np.testing.assert_array_equal(kept, columns[:, 2])
    columns[:, 2] = 0.0
    np.testing.assert_array_equal(group.reshape(D, WIDTH), columns)


def test_rows_turn_into_columns_of_lanes_and_zeros_where_there_is_none() -> None:
    numbers = np.random.default_rng(1).normal(size=(2, 9))
    which = np.arange(WIDTH + 4) % 2  # lanes share streams
    diverged = np.full(WIDTH + 4, -1)
    diverged[WIDTH + 1] = 0
    out = np.full((3, WIDTH), 7.0)
    turn(numbers, which, diverged, WIDTH, 5, out)
    expected = np.zeros((3, WIDTH))
    for lane in (0, 2, 3):
        expected[:, lane] = numbers[lane % 2, 5:8]
    np.testing.assert_array_equal(out, expected)

"""Cells of Arrow columns as numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from o2td.sources import arrow_cells


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None, 3], pa.int32()),
        pa.array([True, None, False]),
        pa.array([1.5, None, 2.5], pa.float32()),
        pa.array([1.5, None, 2.5]),
    ],
)
def test_numbers_of_every_kind_are_floats_and_what_is_missing_is_no_number(column):
    found = arrow_cells.as_floats(column)
    assert found.dtype == np.float64
    wanted = [np.nan if one is None else float(one) for one in column.to_pylist()]
    np.testing.assert_array_equal(found, wanted)
    assert arrow_cells.nulls(column).tolist() == [False, True, False]


def test_flags_are_booleans_without_gaps():
    assert arrow_cells.pa_bool(pa.array([True, False]))
    assert not arrow_cells.pa_bool(pa.array([True, None]))
    assert not arrow_cells.pa_bool(pa.array([1, 0]))


def test_numbers_are_usable_one_by_one_where_their_squares_are_too_many():
    from o2td.sources.arrow_cells import LARGEST, all_usable

    assert all_usable(np.array([0.1, -0.2]) * LARGEST)
    assert all_usable(np.full(9, 0.9) * LARGEST)
    assert all_usable(np.array([LARGEST, -LARGEST, 0.0]))
    for bad in (np.nan, np.inf, -np.inf, 1.1 * LARGEST, -1.1 * LARGEST):
        assert not all_usable(np.array([1.0, bad]))
    assert all_usable(np.array([3.0, -3.0, 3.0]), most=3.0)
    assert not all_usable(np.array([3.1]), most=3.0)

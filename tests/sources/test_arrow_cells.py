"""Cells of Arrow columns as numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from o2td.errors import InputError
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


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pa.array([3, -1, 2**62 + 1]), None),
        (pa.array([3, 1, 2], pa.uint8()), None),
        (pa.array([3.0, -1.0, 2.0]), None),
        (np.array([3.0, -1.0, 2.0]), None),
        (np.array([3.0, 2.0**53]), None),
        (pa.array([3, None, 2]), r"row 2 .* is missing or not a number"),
        (pa.array([3.0, 2.0, 2.5]), r"row 3 .* is 2.5; write a whole number"),
        (np.array([3.0, np.inf]), r"row 2 .* is inf"),
        (np.array([3.0, -(2.0**53) - 2.0, 1.5]), r"row 2 .* is -9.0072e\+15"),
        (pa.array([3, None, 2**62]), r"row 3 .* is 4.61169e\+18"),
    ],
)
def test_whole_numbers_are_kept_to_the_digit_or_refused(column, said):
    from o2td.sources.arrow_cells import Where, whole_numbers

    where = Where(("a.csv",), 0, 0)
    if said is not None:
        with pytest.raises(InputError, match=rf"a.csv: column n, {said}"):
            whole_numbers(column, "n", where)
        return
    found = whole_numbers(column, "n", where)
    assert found.dtype == np.int64
    assert found.tolist() == [int(one) for one in column.tolist()]

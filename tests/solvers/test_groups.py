"""States that occur, numbered."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.solvers.groups import distinct


@pytest.mark.parametrize("largest", [1, 7, 60, 10**9])
def test_states_that_occur_are_those_that_sorting_finds(largest: int) -> None:
    state = np.random.default_rng(largest).integers(0, largest, 50)
    found = distinct(state)
    expected = np.unique(state, return_index=True, return_inverse=True)
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, two)
    assert [len(part) for part in distinct(state[:0])] == [0, 0, 0]

"""What the Dantzig selector says of a system without entries."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.errors import InputError
from o2td.solvers.dantzig import _nearest, select


@pytest.mark.parametrize(("b", "residual"), [([0.0, 0.0], 0.0), ([0.0, 3.0], 1.0)])
def test_a_system_without_entries_is_one_without_data(b: list[float], residual: float) -> None:
    chosen = select(np.zeros((2, 2)), np.array(b), 0.1)
    assert (chosen.status, chosen.rank, chosen.residual) == ("no data", 0, residual)


def test_the_nearest_point_has_the_least_largest_residual() -> None:
    assert _nearest(np.ones((3, 1)), np.array([0.0, 1.0, 4.0])) == pytest.approx([2.0])
    A, b = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 2.0]]), np.array([1.0, 2.0, 6.0])
    found = _nearest(A, b)
    assert np.abs(A @ found - b).max() == pytest.approx(1.0)


@pytest.mark.parametrize(("a", "b"), [(np.inf, 1.0), (1.0, np.inf), (np.nan, 1.0)])
def test_sums_that_overflow_are_no_system(a: float, b: float) -> None:
    with pytest.raises(InputError, match="the sums over this batch overflow"):
        select(np.array([[a, 1.0], [1.0, 2.0]]), np.array([1.0, b]), 0.1)

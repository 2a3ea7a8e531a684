"""Systems held sparse."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from o2td.linear_algebra import sparse


@pytest.mark.parametrize(("b", "residual"), [([0.0, 0.0], 0.0), ([0.0, 3.0], 1.0)])
def test_a_sparse_system_of_zeros(b, residual):
    found = sparse.solve_sparse(csr_array((2, 2)), np.array(b), 3)
    assert (found.status, found.rank, found.condition) == ("no data", 0, np.inf)
    assert found.residual == residual
    np.testing.assert_array_equal(found.theta, 0.0)


def test_largest_entries_are_brought_near_one_by_powers_of_two():
    expected = np.array([0.0625, 1.0, 32.0, 1.0, 0.5])
    for given in (np.array([8.0, 0.0, 1 / 64, 0.75, 1.0]), csr_array([[8.0, 0, 1 / 64, 0.75, 1]])):
        np.testing.assert_array_equal(sparse._scale(given), expected)

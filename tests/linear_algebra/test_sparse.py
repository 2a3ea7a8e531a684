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

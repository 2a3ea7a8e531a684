"""Matrices that oblique projections take."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.errors import InputError
from o2td.exact import oblique


def test_a_matrix_has_rows() -> None:
    with pytest.raises(InputError, match=r"X has no rows \(shape \(0, 2\)\); pass one for each"):
        oblique._matrix("X", np.zeros((0, 2)))
    np.testing.assert_array_equal(oblique._matrix("X", np.eye(2)), np.eye(2))

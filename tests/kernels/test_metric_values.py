"""Parts of metrics by themselves."""

from __future__ import annotations

import numpy as np

from o2td.kernels import metric_values


def test_whether_a_matrix_is_upper_triangular():
    R = np.triu(np.ones((3, 3)))
    assert metric_values.is_upper(R)
    for i, j in ((1, 0), (2, 0), (2, 1)):
        for entry in (2.0, -1.0, np.nan):
            other = R.copy()
            other[i, j] = entry
            assert not metric_values.is_upper(other)
    assert metric_values.is_upper(np.zeros((1, 1)))

"""Features of rows, from a table or a map."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from o2td.errors import InputError
from o2td.evaluation.basis import apply


def test_features_are_rows_of_a_table_or_what_a_map_returns():
    table, states = np.arange(6.0).reshape(3, 2), np.array([2, 0])
    np.testing.assert_array_equal(apply(table, states), table[states])
    np.testing.assert_array_equal(apply(lambda s: table[s] + 1.0, states), table[states] + 1.0)
    with pytest.raises(InputError, match="state 3 is in the log, the table has 3 rows"):
        apply(table, np.array([0, 3]))
    with pytest.raises(InputError, match=r"a table of features needs a log with states"):
        apply(table, np.zeros((2, 1)))
    for wrong in (lambda s: table, lambda s: s * 1.0, lambda s: [[1.0]]):
        with pytest.raises(InputError, match=r"features: returned shape .* for 2 rows"):
            apply(wrong, states)
    with pytest.raises(InputError, match="not a finite number for 5; correct the feature map"):
        apply(lambda s: np.where(s[:, None] == 5, np.inf, table[:1]), np.array([1, 5]))
    with pytest.raises(InputError, match="not a finite number for some input"):
        apply(lambda s: csr_array(np.full((2, 2), np.nan)), states)

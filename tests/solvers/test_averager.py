"""Features that an averager refuses, by their row."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import o2td
from o2td.errors import InputError


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
@pytest.mark.parametrize("which", ["phi", "next_phi"])
@pytest.mark.parametrize(
    ("weights", "told"), [([0.5, 0.25], "sum 0.75, least 0.25"), ([1.5, -0.5], "sum 1, least -0.5")]
)
def test_rows_that_are_no_weights_are_named(kind, which, weights, told):
    good = np.tile([0.25, 0.75], (4100, 1))
    for row in (0, 4098):
        bad = good.copy()
        bad[row] = weights
        phi, later = (bad, good) if which == "phi" else (good, bad)
        batch = o2td.Transitions(kind(phi), 1.0, kind(later), 0.9)
        with pytest.raises(
            InputError, match=rf"^{which} is not a row of weights in row {row} .{told}"
        ):
            o2td.Averager().fit(batch)
    ends = np.where(np.arange(4100) == 4098, 0.0, 0.9)
    if which == "next_phi":  # not read
        assert o2td.Averager().fit(o2td.Transitions(phi, 1.0, later, ends)).solution.rank == 2


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_only_rows_of_a_table_that_are_used_need_weights(bad):
    """State 0 is only left, state 1 only entered, and state 2 entered where nothing follows."""
    table = np.tile([0.25, 0.75], (3, 1))
    table[bad] = [0.5, 0.25]
    ends = [0.9, 0.0, 0.9]
    batch = o2td.Transitions.from_table(table, [0, 0, 0], 1.0, [1, 2, 1], ends)
    if bad == 2:
        assert o2td.Averager().fit(batch).solution.status == "ok"
        return
    with pytest.raises(InputError, match=f"^table is not a row of weights in row {bad} "):
        o2td.Averager().fit(batch)

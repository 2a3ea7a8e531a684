"""One row on the packed state of a learner: what a step takes and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from o2td import learners
from o2td.kernels.packing import BUSY, HEAD, STEPS
from o2td.learners import ETD, GTD2, HTD, TD
from tests.learners.conftest import random_rows
from tests.learners.test_learn_one import feed

PACKED = [TD(0.1, trace=0.5), ETD(0.1, trace=0.3), GTD2(0.1, trace=0.5), HTD(0.1)]
ROW = (np.array([1.0, 2.0, -1.0]), np.array([0.5, 0.0, 1.0]), 1.0, 0.5, 2.0, 0)


def packed_state(learner):
    """A learner's packed state after three rows, and its step for one row."""
    table, batch = random_rows(3, d=3, seed=5, double=False)
    feed(learner, table, batch, range(3))
    step = learner._bind()
    return learner._packed, step


@pytest.mark.parametrize("learner", PACKED, ids=repr)
@pytest.mark.parametrize(
    ("place", "value"),
    [
        *((1, np.ones(2)), (1, np.ones(4)), (0, np.ones(4)), (2, 1e200), (2, -1e200)),
        *((2, np.nan), (3, -0.1), (3, 1.1), (3, np.nan), (4, -0.1), (4, 1e200), (4, np.nan)),
        *((0, np.full(3, 1e120)), (1, np.full(3, 1e120))),
    ],
    ids=str,
)
def test_a_row_that_a_step_refuses_changes_nothing(learner, place, value):
    packed, step = packed_state(learner.clone())
    before = packed.copy()
    row = list(ROW)
    row[place] = value
    assert step(packed, *row) == 0
    np.testing.assert_array_equal(packed, before)
    assert step(packed, *ROW) == 1
    assert packed[STEPS] == 4.0
    assert (packed[HEAD : HEAD + 3] != before[HEAD : HEAD + 3]).all()


@pytest.mark.parametrize("learner", PACKED, ids=repr)
def test_a_learner_that_is_busy_takes_no_row(learner):
    packed, step = packed_state(learner.clone())
    packed[BUSY] = 1.0
    before = packed.copy()
    assert step(packed, *ROW) == 0
    assert step(packed[:-1].copy(), *ROW) == 0
    np.testing.assert_array_equal(packed, before)


@pytest.mark.parametrize("learner", PACKED, ids=repr)
@pytest.mark.parametrize("discount", [0.0, 1.0])
def test_discounts_and_ratios_at_their_bounds_are_taken(learner, discount):
    packed, step = packed_state(learner.clone())
    before = packed.copy()
    assert step(packed, *ROW[:3], discount, 0.0, 0) == 1
    if isinstance(learner, learners.WeightedLearner):  # a ratio of 0 moves nothing
        np.testing.assert_array_equal(packed[HEAD : HEAD + 3], before[HEAD : HEAD + 3])

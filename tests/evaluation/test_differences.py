"""The bootstrap lanes of an estimate that has only the influence of its episodes."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.evaluation import Outcome
from o2td.evaluation.differences import Case, Spread, lanes_of

SPREAD = Spread.of(
    np.array([0.0, 0.0, 0.0, 9.0]), np.arange(4, dtype=np.uint64), lanes=200
)  # far from symmetric


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome(3.0, SPREAD), 3.0 - SPREAD.mean + SPREAD.lanes),
        (Outcome(3.0, SPREAD, lanes=np.array([2.0, 4.0])), [2.0, 4.0]),
        (Outcome(3.0), []),
    ],
)
def test_lanes_lie_about_the_value_as_those_of_the_influence_about_its_mean(outcome, expected):
    case = Case(None, outcome, None)  # no estimator or interval is needed
    np.testing.assert_array_equal(lanes_of(case), expected)

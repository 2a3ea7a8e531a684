"""What weighted histories say of a fit's errors."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.evaluation.estimators.lstd import Correction

from .logs import line_log
from .study import traced


@pytest.mark.parametrize("reach", [3, 10**6])
def test_a_correction_of_rewards_is_the_weighted_sum_within_its_reach(reach):
    study, found = traced(line_log(30, 3))
    column = Correction(study.weighed, 0, reach).of(found)
    assert column.mean() == pytest.approx(study.weighed.horizon.weighted()[:reach].sum())
    assert np.isfinite(column).all()

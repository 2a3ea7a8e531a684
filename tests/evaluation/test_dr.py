"""Doubly robust estimates without a value function are importance sampling."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.evaluation.estimators.dr import DoublyRobustColumn

from .logs import line_log
from .study import traced


def test_doubly_robust_with_no_value_function_is_importance_sampling():
    study, found = traced(line_log(30, 3))
    weighed = study.weighed
    share = weighed.units * weighed.horizon.inverse
    robust = DoublyRobustColumn(0, 0.0, 1.0, np.ones(len(share))).of(found)
    weighted = DoublyRobustColumn(0, 0.0, 1.0, share).of(found)
    assert robust.mean() == pytest.approx(weighed.spread("pdis").mean)
    assert weighted.mean() == pytest.approx(weighed.horizon.weighted().sum())

"""The panel of `features="auto"`: what is kept, and what its mean is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from o2td.evaluation.fitting import middle


def fit(value: float, trace: float) -> Any:
    return SimpleNamespace(value=value, system=SimpleNamespace(trace=trace))


def test_the_mean_is_of_the_middle_halves_and_counts_traces_half():
    plain = [fit(value, 0.0) for value in (-50.0, 1.0, 3.0, 90.0)]
    traced = [fit(value, 0.8) for value in (-70.0, 4.0, 6.0, 10.0)]
    blend = middle([*traced, *plain])
    value = sum(weight * fit.value for weight, fit in blend)
    assert value == pytest.approx((2.0 * 2.0 + 1.0 * 5.0) / 3.0)


@pytest.mark.parametrize("trace", [0.0, 0.8])
def test_one_kind_alone_has_all_the_weight(trace):
    weights = [weight for weight, _ in middle([fit(1.0, trace), fit(2.0, trace)])]
    assert weights == [0.5, 0.5]

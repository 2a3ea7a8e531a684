"""The panel of `features="auto"`: what is kept, and what its mean is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from o2td.evaluation.fitting import mean_of, middle, spread_of, usable


def fit(value: float, trace: float) -> Any:
    return SimpleNamespace(value=value, system=SimpleNamespace(trace=trace))


def test_the_mean_is_of_the_middle_halves_and_counts_traces_half():
    plain = [fit(value, 0.0) for value in (-50.0, 1.0, 3.0, 90.0)]
    traced = [fit(value, 0.8) for value in (-70.0, 4.0, 6.0, 10.0)]
    blend = middle([*traced, *plain])
    assert mean_of(blend) == pytest.approx((2.0 * 2.0 + 1.0 * 5.0) / 3.0)


@pytest.mark.parametrize("trace", [0.0, 0.8])
def test_one_kind_alone_has_all_the_weight(trace):
    weights = [weight for weight, _ in middle([fit(1.0, trace), fit(2.0, trace)])]
    assert weights == [0.5, 0.5]


def test_the_spread_is_the_mean_distance_of_the_middle_fits():
    fits = [fit(value, 0.0) for value in (-50.0, -9.0, 1.0, 2.0, 4.0, 5.0, 70.0, 90.0)]
    blend = middle(fits)
    assert mean_of(blend) == pytest.approx(3.0)
    assert spread_of(fits, blend) == pytest.approx((2.0 + 1.0 + 1.0 + 2.0) / 4.0)
    assert spread_of(fits[2:6], middle(fits[2:6])) == pytest.approx(2.0)  # few: half the range


def test_an_odd_fit_among_few_and_fits_without_a_value_are_not_used():
    few = [fit(value, 0.0) for value in (1.0, 1.1, 0.9, 60.0)]
    assert usable(few) == few[:3]
    many = [fit(float(value), 0.0) for value in (*range(8), 1000)]
    assert usable([*many, fit(float("nan"), 0.8)]) == many
    nothing = [fit(float("nan"), 0.0)]
    assert usable(nothing) == nothing


def test_eight_fits_leave_out_odd_ones_by_themselves():
    eight = [fit(value, 0.0) for value in (1.0, 1.1, 0.9, 1.0, 1.05, 0.95, 1.0, 60.0)]
    assert usable(eight) == eight
    assert usable(eight[1:]) == eight[1:-1]
    lost = fit(float("nan"), 0.0)
    assert usable([*eight[1:], lost]) == eight[1:-1]
    assert usable([lost, lost]) == [lost, lost]

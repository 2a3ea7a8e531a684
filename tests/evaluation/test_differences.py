"""Differences of policies: their lanes, doubts about them, and how far other features move them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from o2td.evaluation import Outcome, Thresholds, differences
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


def case(value, approximation, method="lstd", variants=None, error=0.1, histories=False):
    outcome = SimpleNamespace(variants=variants or {}, approximation=approximation)
    return SimpleNamespace(
        value=value, approximation=approximation, method=method, outcome=outcome,
        weighs_histories=histories, interval=SimpleNamespace(standard_error=error),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("ends", "carrying", "approximation", "said"),
    [
        ((1.0, 3.0), 40.0, 0.5, []),
        ((1.0, 3.0), None, 0.5, ["the interval treats both sides as independent"]),
        ((2.0, 2.0), 40.0, 0.5, ["both are alike in every logged row"]),
        ((1.0, 3.0), 1.4, 0.5, ["about one episode carries all of the variation"]),
        ((1.0, 3.0), 1.6, 0.5, ["about 2 episodes carry all of the variation"]),
        ((1.0, 3.0), 7.2, 0.5, ["about 7 episodes carry all of the variation"]),
        ((1.0, 3.0), 40.0, None, ["the approximation error is not known"]),
        ((1.0, 3.0), 40.0, 0.99, []),
        ((1.0, 3.0), 40.0, 1.0, ["an approximation error of 1 could turn the sign"]),
        ((-3.0, -1.0), 40.0, 0.99, []),
        ((-3.0, -1.0), 40.0, 1.5, ["an approximation error of 1.5 could turn the sign"]),
        ((-1.0, 3.0), 40.0, 9.0, []),  # the sign is open anyway
    ],
)
def test_doubts_about_a_difference(ends, carrying, approximation, said):
    spread = None if carrying is None else SimpleNamespace(carrying=carrying)
    interval = differences.Interval(*ends, "made", 0.1)
    found = differences._own(2.0, interval, spread, approximation, None, Thresholds())
    assert [word for word, _ in found] == ["caution"] * len(said)
    for (_, reason), wanted in zip(found, said, strict=True):
        assert reason.startswith(wanted)


@pytest.mark.parametrize("ends", [(float("-inf"), 1.0), (0.0, float("inf"))])
def test_a_difference_without_an_interval_on_both_sides_answers_nothing(ends):
    interval = differences.Interval(*ends, "made", 0.1)
    found = differences._own(0.5, interval, None, 0.0, None, Thresholds())
    assert [word for word, _ in found] == ["cannot answer"]


def test_the_error_of_a_difference_is_how_far_other_features_and_methods_move_it():
    a = case(5.0, 0.5, variants={"x": 4.0, "y": 6.0, "only": 99.0})
    b = case(3.0, 0.4, variants={"x": 3.0, "y": 3.5})
    # Differences over both features are 1 and 2.5, the median 1.75 against 2.
    base = differences.half_spread([1.0, 2.5])
    assert base == pytest.approx(0.75)
    assert differences.moved(a, b, (a, b), []) == pytest.approx(0.75)
    far = case(9.0, 0.5, variants={"x": 4.0, "y": 6.0})
    assert differences.moved(far, b, (far, b), []) == pytest.approx(6.0 - 1.75)
    bare = case(5.0, 0.5), case(3.0, 0.4)
    assert differences.moved(*bare, bare, []) == pytest.approx(0.5)
    short = SimpleNamespace(mean=-4.0, error=0.25)
    assert differences.moved(*bare, bare, [short]) == pytest.approx(4.0 - 0.5)
    assert differences.moved(a, b, (a, b), [short]) == pytest.approx(4.0 / 2.0 - 0.5)


def test_another_method_is_off_by_its_distance_to_the_reference_beyond_two_errors():
    reference = case(5.0, 0.5, error=0.1), case(3.0, 0.4, error=0.3)
    other = case(9.0, 0.1, "sotd"), case(3.0, 0.1, "sotd")
    assert differences.moved(*other, reference, []) == pytest.approx(4.0 - 0.6)
    near = case(5.7, 0.1, "sotd"), case(3.0, 0.1, "sotd")
    assert differences.moved(*near, reference, []) == pytest.approx(0.5)
    history = case(9.0, 0.2, "dr", histories=True), case(3.0, -0.25, "dr", histories=True)
    assert differences.moved(*history, reference, []) == pytest.approx(0.25 * 0.5 / 0.5)
    exact = case(5.0, 0.0), case(3.0, 0.0)
    assert differences.moved(*exact, exact, []) == 0.0
    assert differences.moved(*other, exact, []) == pytest.approx(0.1)
    assert differences.moved(*history, exact, []) == pytest.approx(0.25)
    unknown = case(5.0, None), case(3.0, 0.4)
    assert differences.moved(*unknown, reference, []) is None


def test_what_no_episode_has_shown_may_change_one_side_however_near_they_are():
    """The rule of three at the size of the values, not of their small difference."""
    flat = Spread.of(np.zeros(300), np.arange(300, dtype=np.uint64), lanes=20)
    sides = [
        differences.NamedCase(name, case(value, 0.0)) for name, value in (("A", 50.0), ("B", 49.9))
    ]
    settings = SimpleNamespace(confidence=0.95)
    found = differences._interval(*sides, flat, settings)
    assert found.high - 0.1 == pytest.approx(50.0 * (1.0 - 0.05 ** (1.0 / 300.0)))
    assert found.low == pytest.approx(0.2 - found.high)
    same = differences._interval(sides[0], sides[0], flat, settings)
    assert (same.low, same.high) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("value", "lanes", "ends", "blur", "expected"),
    [
        (np.nan, [1.0, 2.0], (1.0, 2.0), None, None),
        (2.0, [], (2.0, 2.0), None, 1.0),
        (-2.0, [], (2.0, 2.0), 0.0, 0.0),
        (0.0, [], (2.0, 2.0), None, 0.5),
        (2.0, [], (1.0, 3.0), None, norm.cdf(2.0 / 0.5)),
        (2.0, [1.0], (1.0, 3.0), 1.2, norm.cdf(2.0 / 1.3)),
        (0.3, [1.0, -1.0, 1.0], (-1.0, 3.0), None, 2.0 / 3.0),
        (0.3, [1.0, -1.0], (-1.0, 3.0), None, 0.5),
        (0.3, [1.0, 0.0, np.nan], (-1.0, 3.0), None, 0.75),
        (0.3, [1.0, np.inf, np.nan], (-1.0, 3.0), 1.2, norm.cdf(0.3 / 1.3)),
        (0.3, [1.0, -2.0], (-1.0, 3.0), 0.8, (norm.cdf(1.25) + norm.cdf(-2.5)) / 2.0),
        (0.3, [1.0, -2.0], (2.0, 2.0), 0.8, (norm.cdf(1.25) + norm.cdf(-2.5)) / 2.0),
    ],
)
def test_the_chance_that_a_difference_is_above_nothing(value, lanes, ends, blur, expected):
    found = differences._probability(
        value, np.array(lanes), differences.Interval(*ends, "made", 0.5), blur
    )
    assert found == (None if expected is None else pytest.approx(expected, rel=1e-12))


def test_without_any_error_the_sign_decides():
    flat = differences.Interval(1.0, 3.0, "made", 0.0)
    for value, expected in ((2.0, 1.0), (-2.0, 0.0), (0.0, 0.5)):
        assert differences._probability(value, np.zeros(0), flat, None) == expected

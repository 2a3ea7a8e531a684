"""The blend of fit and histories: by estimated bias and variance, and no worse than its parts."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from o2td import evaluation
from o2td.evaluation import Outcome, Thresholds
from o2td.evaluation.estimators.magic import Spread, _blend, _lengths
from o2td.registry import ESTIMATORS

from .test_doubts import eight_steps


def parts_of(lanes: np.ndarray) -> list[Spread]:
    return [Spread.of(row) for row in lanes]


def test_the_blend_has_the_least_estimated_error_on_the_simplex():
    rng = np.random.default_rng(0)
    mixing = np.array([[0.3, 0.0, 0.0], [0.2, 0.6, 0.0], [0.1, 0.3, 1.5]])
    lanes = mixing @ rng.normal(size=(3, 400))
    means = np.array([2.0, 0.8, 0.0])
    weights, bias = _blend(means, lanes, parts_of(lanes))
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= 0.0).all()
    assert bias[-1] == 0.0
    form = np.cov(lanes, bias=True) + np.outer(bias, bias)
    grid = [
        (a, b, 1.0 - a - b) for a in np.linspace(0, 1, 101) for b in np.linspace(0, 1.0 - a, 101)
    ]
    least = min(float(np.array(x) @ form @ np.array(x)) for x in grid)
    assert float(weights @ form @ weights) <= least * (1.0 + 1e-6)


@pytest.mark.parametrize(("gap", "first"), [(0.0, 1.0), (50.0, 0.0)])
def test_a_sharp_fit_that_agrees_is_kept_and_a_wrong_one_is_left(gap, first):
    rng = np.random.default_rng(1)
    lanes = np.stack([0.01 * rng.normal(size=300), rng.normal(size=300)])
    weights, _ = _blend(np.array([gap, 0.0]), lanes, parts_of(lanes))
    assert weights[0] == pytest.approx(first, abs=0.02)


def test_histories_are_followed_as_far_as_their_weights_reach():
    assert _lengths(np.array([100.0, 80.0, 50.0, 20.0, 9.0, 3.0])) == [0, 1, 2, 4]
    assert _lengths(np.array([5.0])) == [0]
    assert _lengths(np.full(250, 99.0))[-1] == 250


def test_it_is_right_where_the_fit_is_wrong_and_sharper_than_histories():
    found = {"magic": 0, "lstd": 0}
    for seed in range(4):
        log, truth = eight_steps(seed)
        answer = evaluation.evaluate(log, discount=1.0, methods="lstd,magic,wdr,is", influence=True)
        for name in found:
            found[name] += answer[name].low <= truth <= answer[name].high
        assert answer["magic"].standard_error < answer["is"].standard_error
        values = answer.influence["magic"].to_numpy()
        assert np.std(values) / np.sqrt(len(values)) == pytest.approx(
            answer["magic"].standard_error, rel=0.2
        )
    assert found["lstd"] == 0
    assert found["magic"] >= 3


def test_where_the_fit_is_right_the_blend_stays_near_it():
    rng = np.random.default_rng(5)
    log, _ = eight_steps(0, 300)
    log["state"], log["terminated"] = 0, rng.random(len(log)) < 0.3
    log = log[log.groupby("episode").terminated.cumsum() - log.terminated == 0]
    log = log.assign(truncated=(log.step == 7) & ~log.terminated, next_state=0)
    log["reward"] = rng.normal(size=len(log))
    answer = evaluation.evaluate(log, discount=0.9, methods="lstd,magic,wdr")
    lstd, magic = answer["lstd"], answer["magic"]
    assert abs(lstd.value - magic.value) < lstd.standard_error
    assert magic.standard_error < 1.3 * answer["wdr"].standard_error
    assert answer.recommended.method == "lstd"


def test_lengths_double_and_the_shortest_give_way_where_there_are_many():
    assert _lengths(np.full(3, 10.0)) == [0, 1, 2, 3]
    assert _lengths(np.array([10.0, 9.99])) == [0, 1]
    assert _lengths(np.full(8, 99.0)) == [0, 1, 2, 4, 8]
    assert _lengths(np.full(2000, 99.0)) == [0, 8, 16, 32, 64, 128, 256, 512, 1024, 2000]


def test_without_lanes_the_errors_of_the_parts_are_taken_for_independent():
    parts = [SimpleNamespace(error=error) for error in (0.1, 0.2, 0.4)]
    means = np.array([1.0, 0.3, 0.0])
    weights, bias = _blend(means, np.zeros((3, 0)), parts)
    apart = np.hypot([0.1, 0.2, 0.4], 0.4)
    wanted = np.maximum(means - 0.674 * apart, 0.0)
    np.testing.assert_allclose(bias, wanted, rtol=1e-12)
    form = np.diag([0.01, 0.04, 0.16]) + np.outer(bias, bias)
    grid = [(a, b, 1.0 - a - b) for a in np.linspace(0, 1, 201) for b in np.linspace(0, 1 - a, 201)]
    least = min(float(np.array(x) @ form @ np.array(x)) for x in grid)
    assert float(weights @ form @ weights) == pytest.approx(least, rel=1e-3)
    below, other = _blend(-means, np.zeros((3, 0)), parts)
    np.testing.assert_allclose(other, -bias)
    np.testing.assert_allclose(below, weights, atol=1e-9)


def test_where_nothing_varies_or_numbers_are_not_finite_the_fit_is_kept():
    still = [SimpleNamespace(error=0.0)] * 2
    assert _blend(np.ones(2), np.zeros((2, 0)), still)[0].tolist() == [1.0, 0.0]
    wild = [SimpleNamespace(error=np.inf)] * 2
    assert _blend(np.ones(2), np.zeros((2, 0)), wild)[0].tolist() == [1.0, 0.0]


def part_of(column, mean, rng, among, carrying):
    return Spread(
        count=50, mean=mean, error=0.3 + column, skew=0.1 * column, carrying=carrying,
        lanes=rng.normal(size=80) * (0.3 + column), deviation=1.0, values=rng.normal(size=50),
        among=among, column=column,
    )  # fmt: skip


class Among:
    """Covariances that only say which weights they were asked for."""

    def __init__(self):
        self.asked = None

    def error(self, weights):
        self.asked = weights
        return 0.125


def blended(lead=0.5, approximation=0.2, size=(50.0, 40.0, 12.0), carrying=(40.0, 30.0, 3.0, 25.0)):
    """An estimate from three lengths, the last to the end; and all that it is made of."""
    rng, among = np.random.default_rng(6), Among()
    parts = [part_of(k, mean, rng, among, carrying[k]) for k, mean in enumerate((lead, 0.1, 0.0))]
    fit = part_of(3, 0.0, rng, among, carrying[3])
    spreads = dict(enumerate([*parts, fit]))
    horizon = SimpleNamespace(
        weight=np.array([50.0, 30.0, 20.0]), inverse=np.full(3, 1 / 50.0),
        effective_size=np.array(size),
    )  # fmt: skip
    study = SimpleNamespace(
        influences=SimpleNamespace(spread=spreads.get),
        weighed=SimpleNamespace(horizon=horizon),
        survey=SimpleNamespace(largest_discount=0.9, left=lambda: 0.03),
        baseline=SimpleNamespace(mean=7.0),
        reference=SimpleNamespace(approximation=approximation, verdict="trust", method="lstd"),
        grounds=SimpleNamespace(thresholds=Thresholds(), spread=1.0),
    )
    made = ESTIMATORS["magic"]()
    made.columns, made.own, made.lengths = [0, 1, 2], 3, [0, 1, 3]
    made.fit = SimpleNamespace(condition=11.0, system=SimpleNamespace(label="the fit"))
    return made, study, parts, fit, among


@pytest.mark.parametrize("approximation", [0.2, 5.0, None])
def test_the_blend_and_its_error_are_those_of_its_parts_by_their_weights(approximation):
    made, study, parts, fit, among = blended(approximation=approximation)
    found = made.estimate(study)
    left = np.array([1.0, 0.9 * 30.0 / 50.0, 0.03])
    np.testing.assert_allclose(made.left, left)
    lanes = np.stack(
        [p.lanes + x * (fit.lanes - parts[0].lanes) for p, x in zip(parts, left, strict=True)]
    )
    means = np.array([0.5, 0.1, 0.0])
    weights, bias = _blend(means, lanes, parts)
    assert weights.max() < 1.0
    share = float(weights @ left)
    assert found.value == pytest.approx(7.0 + weights @ means)
    wanted = None if approximation is None else max(abs(weights @ bias), share * approximation)
    assert found.approximation == (None if wanted is None else pytest.approx(wanted))
    assert found.condition == 11.0
    assert found.about.startswith(
        f"histories followed for {weights @ [0, 1, 3]:.3g} steps on average"
    )
    assert among.asked == pytest.approx(
        {0: weights[0] - share, 1: weights[1], 2: weights[2], 3: share}
    )
    spread = found.influence
    assert (spread.mean, spread.error) == (pytest.approx(weights @ means), 0.125)
    np.testing.assert_allclose(spread.lanes, weights @ lanes)
    values = weights @ np.stack([p.values for p in parts]) + share * (fit.values - parts[0].values)
    np.testing.assert_allclose(spread.values, values)
    heavy = fit if weights[0] >= 0.5 else parts[int(weights.argmax())]
    assert (spread.skew, spread.column, spread.among) == (heavy.skew, heavy.column, None)
    heard = [p.carrying for p, x in zip(parts[1:], weights[1:], strict=True) if x > 0.05]
    assert spread.carrying == min([*heard, 25.0])


@pytest.mark.parametrize(
    ("weights", "base", "size", "expected"),
    [
        ((0.5, 0.5, 0.0), "trust", (50.0, 40.0, 12.0), []),
        ((0.5, 0.5, 0.0), "trust", (49.0, 40.0, 12.0), ["weights leave 49 effective"]),
        ((0.5, 0.45, 0.05), "trust", (50.0, 40.0, 12.0), []),
        ((0.5, 0.44, 0.06), "trust", (50.0, 40.0, 12.0), ["weights leave 12 effective"]),
        ((1.0, 0.0, 0.0), "trust", (9.0, 9.0, 9.0), []),
        ((1.0, 0.0, 0.0), "cannot answer", (50.0, 40.0, 60.0), ["100% of it comes from lstd"]),
        ((0.23, 0.0, 0.77), "cannot answer", (50.0, 40.0, 60.0), ["25% of it comes from lstd"]),
        ((0.0, 0.0, 1.0), "cannot answer", (50.0, 40.0, 60.0), ["3% of it comes from lstd"]),
    ],
)
def test_doubts_about_a_blend_are_those_of_the_fit_by_what_is_left_and_of_the_weights(
    weights, base, size, expected
):
    made, study, *_ = blended(size=size)
    study.reference.verdict = base
    made.weights, made.left = np.array(weights), np.array([1.0, 0.54, 0.03])
    case = SimpleNamespace(value=7.0, outcome=Outcome(7.0, approximation=0.0))
    found = list(made.doubts(case, study))
    said = [reason for _, reason in found]
    assert [reason[: len(start)] for reason, start in zip(said, expected, strict=True)] == expected
    if base != "trust":
        share = np.dot(weights, made.left)
        assert found[0][0] == ("cannot answer" if share > 0.25 else "caution")
    doubtful = SimpleNamespace(value=7.0, outcome=Outcome(7.0))
    unknown = ("caution", "the approximation error is not known")
    assert unknown in list(made.doubts(doubtful, study))
    made.left = np.array([0.009, 0.009, 0.009])
    assert unknown not in list(made.doubts(doubtful, study))

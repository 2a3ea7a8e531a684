from __future__ import annotations

import numpy as np
import pytest

from o2td.evaluation.bootstrap import bca, poisson_counts, sandwich, student
from o2td.evaluation.moments import Moments, Spread
from o2td.evaluation.pareto import Largest, pareto_shape, tail_size

KEYS = np.random.default_rng(0).integers(0, 2**63, 4000).astype(np.uint64)


def test_counts_are_poisson_and_depend_on_key_seed_and_lane_alone():
    counts = poisson_counts(KEYS, 3, 100)
    assert abs(counts.mean() - 1.0) < 0.01
    assert abs(counts.var() - 1.0) < 0.02
    shares = np.bincount(counts.ravel().astype(int), minlength=4)[:4] / counts.size
    np.testing.assert_allclose(shares, np.exp(-1) / np.array([1, 1, 2, 6]), atol=0.004)
    order = np.random.default_rng(1).permutation(len(KEYS))
    np.testing.assert_array_equal(poisson_counts(KEYS[order], 3, 100), counts[order])
    np.testing.assert_array_equal(poisson_counts(KEYS, 3, 7), counts[:, :7])
    assert (poisson_counts(KEYS, 4, 100) != counts).mean() > 0.5
    between = np.corrcoef(counts[:, 0], counts[:, 1])[0, 1]
    assert abs(between) < 0.05


def test_consecutive_keys_give_independent_counts():
    counts = poisson_counts(np.arange(4000, dtype=np.uint64), 0, 2)
    assert abs(np.corrcoef(counts[1:, 0], counts[:-1, 0])[0, 1]) < 0.05


def test_lanes_are_weighted_means_and_do_not_depend_on_blocks(monkeypatch):
    values = np.random.default_rng(2).normal(size=len(KEYS))
    whole = Spread.of(values, KEYS, 0, 50)
    counts = poisson_counts(KEYS, 0, 50)
    np.testing.assert_allclose(whole.lanes, values @ counts / counts.sum(axis=0), rtol=1e-10)
    monkeypatch.setattr("o2td.evaluation.moments._COUNTS", 50 * 37)
    np.testing.assert_allclose(Spread.of(values, KEYS, 0, 50).lanes, whole.lanes, rtol=1e-10)
    assert abs(whole.lanes.std() - whole.error) < 0.2 * whole.error


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e150])
def test_moments_of_parts_are_those_of_the_whole_whatever_their_size(scale):
    rng = np.random.default_rng(3)
    values = np.column_stack([rng.exponential(size=300), 1e8 + rng.normal(size=300)])
    values[200:, 0] *= 50.0  # the largest come late
    parts = [Moments(2, 0, 20) for _ in range(2)]
    for at, low in enumerate((0, 1, 1, 90, 250)):
        high = (1, 1, 90, 250, 300)[at]
        parts[at % 2].add(scale * values[low:high], KEYS[low:high])
    parts[0].merge(parts[1])
    counts = poisson_counts(KEYS[:300], 0, 20)
    for column, x in enumerate(values.T):
        found, apart = parts[0].spread(column), x - x.mean()
        squares = (apart**2).sum()
        assert found.count == 300
        assert found.mean == pytest.approx(scale * x.mean(), rel=1e-14)
        assert found.error == pytest.approx(scale * np.sqrt(squares / 299 / 300), rel=1e-7)
        assert found.deviation == pytest.approx(scale * x.std(), rel=1e-7)
        assert found.skew == pytest.approx((apart**3).sum() / squares**1.5, rel=1e-5)
        assert found.carrying == pytest.approx(squares**2 / (apart**4).sum(), rel=1e-7)
        np.testing.assert_allclose(found.lanes, scale * (x @ counts) / counts.sum(axis=0))


def test_a_lane_that_drew_nothing_says_what_the_mean_says():
    key = next(key for key in range(100) if (poisson_counts(np.uint64([key]), 0, 9) == 0).any())
    assert set(Spread.of(np.array([7.0]), np.uint64([key]), 0, 9).lanes) == {7.0}


def test_the_largest_weights_are_all_that_the_tail_needs():
    weights = np.random.default_rng(9).pareto(1.5, 20_000)
    top = Largest(tail_size(len(weights)) + 1)
    for part in np.array_split(weights, 33):
        top.add(part)
    np.testing.assert_array_equal(top.sorted(), np.sort(weights)[::-1][: top.limit])
    assert pareto_shape(top.sorted(), len(weights)) == pareto_shape(weights)


def test_bca_covers_a_skewed_mean_better_than_a_symmetric_interval():
    rng = np.random.default_rng(5)
    hits = np.zeros(2)
    for _ in range(150):
        x = np.where(rng.random(200) < 0.03, rng.exponential(size=200), 0.0)
        if not x.any():
            continue
        found = Spread.of(x, KEYS[:200], int(rng.integers(1000)), 200)
        skewed, plain = bca(x.mean(), found.lanes, found, 0.95), sandwich(x.mean(), found, 0.95)
        hits += [end.low <= 0.03 <= end.high for end in (skewed, plain)]
    assert hits[0] > hits[1]
    assert hits[0] / 150 > 0.85


def test_intervals_contain_their_value_and_few_episodes_do_not_break_them():
    assert sandwich(1.0, Spread.of(np.zeros(1)), 0.95).standard_error == np.inf
    same = bca(2.0, np.full(50, 2.0), Spread.of(np.zeros(30)), 0.95)
    assert (same.low, same.high) == (2.0, 2.0)
    assert student(1.0, np.array([0.9, 1.1]), 0.95, "t").low < 1.0
    assert student(1.0, np.zeros(0), 0.95, "t").high == np.inf


def test_lanes_that_repeat_the_value_up_to_rounding_are_neither_above_nor_below():
    x = Spread.of(np.random.default_rng(4).normal(size=30))
    lanes = np.concatenate([np.full(60, 1.0), np.linspace(0.0, 2.0, 40)])
    exact = bca(1.0, lanes, x, 0.95)
    for nudge in (1e-15, -1e-15):
        assert bca(1.0, lanes + nudge, x, 0.95).high == pytest.approx(exact.high, abs=1e-9)


@pytest.mark.parametrize("shape", [0.2, 0.5, 1.0])
def test_pareto_shape_is_found(shape):
    rng = np.random.default_rng(7)
    excess = ((1.0 - rng.random(50_000)) ** -shape - 1.0) / shape
    assert pareto_shape(excess) == pytest.approx(shape, abs=0.12)


def test_pareto_shape_of_light_tails_and_of_nothing():
    rng = np.random.default_rng(8)
    assert pareto_shape(rng.random(20_000)) < 0.1
    assert pareto_shape(np.zeros(100)) is None
    assert pareto_shape(np.array([1.0, 2.0])) is None

"""Moments of parts, and means in bootstrap lanes."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.evaluation.moments import Moments, Spread, poisson_counts

KEYS = np.random.default_rng(0).integers(0, 2**63, 4000).astype(np.uint64)


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


def test_moments_of_users_are_those_of_their_sums():
    rng = np.random.default_rng(0)
    user, values = rng.integers(0, 9, 200).astype(np.uint64), rng.normal(size=(200, 2))
    whole, one, two = (Moments(2, 0, 50, users=True) for _ in range(3))
    whole.add(values, user)
    one.add(1e3 * values[:70] / 1e3, user[:70])
    two.add(values[70:], user[70:])
    one.merge(two)
    about = values[:, 1] - values[:, 1].mean()
    sums = np.bincount(user.astype(int), about)
    for moments in (whole, one):
        found = moments.spread(1)
        assert (found.count, moments.units, moments.count) == (9, 9, 200)
        assert found.error == pytest.approx(np.sqrt(9 / 8 * (sums**2).sum()) / 200)
        assert found.skew == pytest.approx((sums**3).sum() / (sums**2).sum() ** 1.5)
        assert found.deviation == pytest.approx(values[:, 1].std())


def test_errors_of_sums_of_columns_are_those_of_the_numbers():
    rng = np.random.default_rng(4)
    user, values = (
        rng.integers(0, 30, 300).astype(np.uint64),
        rng.normal(size=(300, 3))
        @ [
            [1.0, 0.8, 0.0],
            [0.0, 0.2, 1e6],
            [0.0, 0.0, 1e3],
        ],
    )
    alone, users = Moments(3, 0, 20), Moments(3, 0, 20, users=True)
    for part in (slice(0, 100), slice(100, 300)):
        for moments in (alone, users):
            moments.add(values[part], user[part])
    both = values @ [0.5, -2.0, 1e-5]
    weights = {0: 0.5, 1: -2.0, 2: 1e-5}
    assert alone.error(weights) == pytest.approx(both.std(ddof=1) / np.sqrt(300))
    sums = np.bincount(user.astype(int), both - both.mean())
    assert users.error(weights) == pytest.approx(np.sqrt(30 / 29 * (sums**2).sum()) / 300)
    one, two = alone.spread(0), alone.spread(1)
    assert one.apart(two) == pytest.approx((values[:, 0] - values[:, 1]).std(ddof=1) / np.sqrt(300))
    assert one.apart(alone.spread(0)) == 0.0


def test_one_episode_has_no_deviation():
    moments = Moments(1)
    moments.add(np.array([[3.0]]), np.array([7], dtype=np.uint64))
    assert moments.spread(0).deviation == 0.0
    moments.add(np.array([[5.0]]), np.array([8], dtype=np.uint64))
    assert moments.spread(0).deviation == pytest.approx(1.0)


def test_equal_numbers_have_no_skew_and_all_of_them_carry():
    found = Spread.of(np.full(5, 2.5), KEYS[:5], 0, 9)
    assert (found.skew, found.deviation, found.carrying) == (0.0, 0.0, float("inf"))

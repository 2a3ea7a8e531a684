"""The first pass: a bounded sample, and the support of the target."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.evaluation.survey import FEWEST, Sample, folds_of

from .episodes import block_of
from .logs import line_log
from .survey import surveyed


def test_a_sample_is_bounded_and_the_same_in_any_order():
    block = block_of(line_log(200, 4))
    one, two = Sample(limit=1500), Sample(limit=1500)
    order = np.random.default_rng(0).permutation(block.count)
    one.add(block)
    for e in order:
        two.add(block.pick(np.arange(block.count) == e))
    assert one.rows <= 1500
    assert set(one.joined().key) == set(two.joined().key)


def test_a_sample_of_few_long_episodes_is_bounded_too():
    log = line_log(60, 5).assign(episode=lambda rows: np.arange(len(rows)) // 150)
    log = log.assign(terminated=False, truncated=False)
    block = block_of(log)
    whole, part = Sample(len(block.rows)), Sample(len(block.rows) // 4)
    for sample in (whole, part):
        for e in range(block.count):
            sample.add(block.pick(np.arange(block.count) == e))
    assert block.count <= FEWEST
    assert whole.rows == len(block.rows)
    assert part.joined().key.tolist() == block.key.tolist()
    assert np.diff(part.joined().first).max() == part.limit // 10
    again = part.joined().rows.reward[: part.limit // 10]
    np.testing.assert_array_equal(again, block.rows.reward[: part.limit // 10])


def test_support_falls_with_every_step_that_the_log_cannot_follow():
    log = line_log(60, 0)
    half = log.drop(columns=[c for c in log if "prob" in c]).assign(rho=1.0)
    assert surveyed(half).support() == pytest.approx(1.0)
    rng = np.random.default_rng(0)
    lost = half.assign(rho=rng.choice([0.0, 1.5], len(half), p=[0.5, 0.5]))
    assert surveyed(lost).support() < 0.7
    none = half.assign(rho=0.0)
    assert surveyed(none).support() == 0.0


@pytest.mark.parametrize("rewards", [(2.0, 3.0), (-1.0, 3.0), (-3.0, -1.0)])
def test_values_lie_between_the_sums_of_the_extreme_rewards(rewards):
    """A sum of positive rewards is at least one of them, and of negative ones at most one."""
    log = line_log(30, 1).assign(rho=1.0)
    low, high = rewards
    log["reward"] = np.linspace(low, high, len(log))
    found, longest = surveyed(log, 0.9), int(log.groupby("episode").size().max())

    def bounds(most):
        return low * (most if low < 0.0 else 1.0), high * (most if high > 0.0 else 1.0)

    assert found.bounds() == pytest.approx(bounds(10.0))
    assert found.bounds(1) == pytest.approx((low, high))
    assert found.bounds(4) == pytest.approx(bounds(1.0 + 0.9 + 0.81 + 0.729))
    plain = surveyed(log, 1.0)
    assert plain.bounds() == pytest.approx(bounds(longest))
    assert plain.bounds(3) == pytest.approx(bounds(3.0))


def test_visits_ahead_are_those_of_a_chain_that_ends_as_often_as_the_log():
    log = line_log(30, 1).assign(rho=1.0)
    ends = log.terminated.mean()
    assert surveyed(log, 0.9).ahead() == pytest.approx(1.0 / (1.0 - 0.9 * (1.0 - ends)))


def test_folds_depend_on_keys_alone_and_are_even():
    key = np.random.default_rng(0).integers(0, 2**64, 6000, dtype=np.uint64)
    fold = folds_of(key, 5)
    assert set(fold) == set(range(5))
    assert np.abs(np.bincount(fold) - 1200).max() < 5 * np.sqrt(1200)
    np.testing.assert_array_equal(folds_of(key[::-1], 5), fold[::-1])
    mixed = [((int(k) ^ (int(k) >> 29)) * 0xD1B54A32D192ED03) % 2**64 for k in key[:50]]
    assert fold[:50].tolist() == [(word >> 33) % 5 for word in mixed]


@pytest.mark.parametrize("spread", [0.0, 0.01])
def test_the_standard_error_of_the_mean_ratio_by_its_formula(spread):
    """`sum_t (rho_t - mean)` of each episode is one number: ratios near 1 have an error near 0."""
    log = line_log(20, 2)
    rng = np.random.default_rng(3)
    rho = 1.0 + spread * rng.normal(size=len(log))
    log = log.drop(columns=[c for c in log if "prob" in c]).assign(rho=rho)
    rows = block_of(log)
    ratio, first = rows.rows.rho, rows.first
    each = np.add.reduceat(ratio - ratio.mean(), first[:-1])
    error = np.sqrt((each**2).sum() * len(each) / (len(each) - 1)) / len(ratio)
    mean, found = surveyed(log).step_support()
    assert mean == pytest.approx(ratio.mean(), rel=1e-9)
    assert found == pytest.approx(error, rel=1e-6, abs=1e-9)

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from o2td.evaluation.bootstrap import bca, poisson_counts, sandwich, student

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


def test_few_lanes_do_not_break_an_interval():
    assert student(1.0, np.array([0.9, 1.1]), 0.95, "t").low < 1.0
    assert student(1.0, np.zeros(0), 0.95, "t").high == np.inf


def test_two_replicates_are_enough_for_an_interval_and_one_is_not():
    found = student(1.0, np.array([0.5, 1.5]), 0.95, "made")
    assert found.standard_error == pytest.approx(np.sqrt(0.5 * 0.5))
    assert found.high - 1.0 == pytest.approx(12.7062 * found.standard_error, rel=1e-4)
    assert student(1.0, np.array([0.5]), 0.95, "made").high == np.inf
    assert student(1.0, np.array([0.5, np.nan]), 0.95, "made").low == -np.inf


def spread_of(x, lanes):
    """What an interval needs to know about a number per episode, by the formulas."""
    apart, counts = x - x.mean(), poisson_counts(np.arange(len(x), dtype=np.uint64), 0, lanes)
    return SimpleNamespace(
        count=len(x),
        error=x.std(ddof=1) / np.sqrt(len(x)),
        skew=(apart**3).sum() / (apart**2).sum() ** 1.5,
        lanes=x @ counts / counts.sum(axis=0),
    )


def test_intervals_by_their_formulas():
    """BCa by Efron's formula with t levels, on lanes whose quantiles are known."""
    rng = np.random.default_rng(2)
    x = rng.exponential(size=40)
    spread = spread_of(x, lanes=500)
    plain = sandwich(1.5, spread, 0.9)
    error = np.std(x) / np.sqrt(40) * np.sqrt(40 / 39)
    assert plain.standard_error == pytest.approx(error, rel=0.02)
    reach = stats.t.ppf(0.95, 39) * spread.error
    assert (plain.low, plain.high) == pytest.approx((1.5 - reach, 1.5 + reach))
    value, lanes = float(x.mean()), spread.lanes
    found = bca(value, lanes, spread, 0.9)
    z0, a = stats.norm.ppf((lanes < value).mean()), spread.skew / 6.0
    z = stats.t.ppf(0.95, 39) * np.sqrt(40 / 39)
    levels = [stats.norm.cdf(z0 + (z0 + s * z) / (1.0 - a * (z0 + s * z))) for s in (-1, 1)]
    low, high = np.quantile(lanes, levels)
    assert found.low == pytest.approx(low, rel=0.01)
    assert found.high == pytest.approx(high, rel=0.01)
    assert found.name.startswith("BCa")
    for few in (lanes[:19], np.append(lanes[:19], np.nan)):
        assert bca(value, few, spread, 0.9).name == "clustered sandwich"
    assert bca(value, lanes[:20], spread, 0.9).name.startswith("BCa")
    assert bca(np.nan, lanes, spread, 0.9).name == "clustered sandwich"

"""Intervals from the influence of episodes."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.evaluation.study import Spread, bca, sandwich

KEYS = np.random.default_rng(0).integers(0, 2**63, 4000).astype(np.uint64)


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


def test_lanes_that_repeat_the_value_up_to_rounding_are_neither_above_nor_below():
    x = Spread.of(np.random.default_rng(4).normal(size=30))
    lanes = np.concatenate([np.full(60, 1.0), np.linspace(0.0, 2.0, 40)])
    exact = bca(1.0, lanes, x, 0.95)
    for nudge in (1e-15, -1e-15):
        assert bca(1.0, lanes + nudge, x, 0.95).high == pytest.approx(exact.high, abs=1e-9)

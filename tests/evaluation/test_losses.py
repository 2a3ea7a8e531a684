"""Losses by which features are judged, by plain loops."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from o2td.evaluation import losses
from o2td.evaluation.losses import Yardstick

from .episodes import block_of


def log_of(seed: int = 0, episodes: int = 12) -> pd.DataFrame:
    """Episodes of several lengths, some of them cut, with ratios and observations in two columns."""
    rng = np.random.default_rng(seed)
    rows = []
    for e in range(episodes):
        length = int(rng.integers(2, 30))
        for t in range(length):
            last = t == length - 1
            row = {"episode": e, "obs_0": rng.normal(), "obs_1": 5.0 * rng.normal(), "action": 0}
            row |= {"reward": rng.normal(), "rho": rng.choice([0.0, 0.8, 1.3], p=[0.05, 0.5, 0.45])}
            rows.append(row | {"terminated": last and e % 2 == 0, "truncated": last and e % 2 == 1})
    return pd.DataFrame(rows)


def test_the_kernel_loss_is_a_mean_over_pairs_of_rows_of_different_episodes(monkeypatch):
    monkeypatch.setattr(losses, "PAIRS", 50)
    block = block_of(log_of())
    found = Yardstick.of(block, 3)
    at = np.sort(np.random.default_rng(3).permutation(len(block.rows))[:50])
    np.testing.assert_array_equal(found.at, at)
    x = np.asarray(block.rows.input)[at]
    x = x / x.std(axis=0)
    apart = np.sqrt(np.square(x[:, None] - x).sum(axis=2))
    width = losses.median_distance(x)
    unit = block.unit()[at]
    corrected = np.random.default_rng(1).normal(size=(50, 2))
    loss, square, pairs = np.zeros(2), np.zeros(2), 0
    for i in range(50):
        for j in range(50):
            if unit[i] != unit[j]:
                near = np.exp(-(apart[i, j] ** 2) / (2.0 * width**2))
                loss += corrected[i] * near * corrected[j]
                square += (corrected[i] * near * corrected[j]) ** 2
                pairs += 1
    assert found.pairs == pairs
    own, error = found.bellman(corrected)
    np.testing.assert_allclose(own, loss / pairs, rtol=1e-9)
    np.testing.assert_allclose(error, np.sqrt(2.0 * square) / pairs, rtol=1e-9)


def test_returns_count_by_their_weights_unless_they_are_cut_early():
    """`w = rho (1 - gamma + gamma w')` and `y = rho (r + gamma y')`, backwards from each end."""
    block = block_of(log_of(2), 0.8)
    found, rows, n = Yardstick.of(block, 0), block.rows, len(block.rows)
    weight, total = np.zeros(n), np.zeros(n)
    for first, end in zip(block.first[:-1], block.first[1:], strict=True):
        after, ahead, left = 1.0, 0.0, 1.0  # of weights, returns and discounts
        for t in reversed(range(first, end)):
            weight[t] = rows.rho[t] * (1.0 - rows.discount[t] + rows.discount[t] * after)
            total[t] = rows.rho[t] * (rows.reward[t] + rows.discount[t] * ahead)
            after, ahead = weight[t], total[t]
        for t in reversed(range(first, end)):
            if not rows.terminated[end - 1] and left > losses._NEGLIGIBLE:
                weight[t] = 0.0
            left *= rows.discount[t]
    cut = np.repeat(~rows.terminated[block.first[1:] - 1], np.diff(block.first))
    assert (cut & (weight > 0.0)).any()
    assert (cut & (weight == 0.0) & (rows.rho > 0.0)).any()
    np.testing.assert_allclose(found.weight, weight, rtol=1e-9, atol=1e-15)
    some = weight > 0.0
    np.testing.assert_allclose(found.target[some], total[some] / weight[some], rtol=1e-9)
    values = np.random.default_rng(0).normal(size=n)
    each = weight * (found.target - values) ** 2
    plain = np.add.reduceat(each, block.first[:-1]) / weight.sum()
    np.testing.assert_allclose(found.returns_error(block, values), plain, rtol=1e-9)
    by_episode = np.add.reduceat(weight, block.first[:-1])
    assert found.effective == pytest.approx(by_episode.sum() ** 2 / (by_episode**2).sum())


def test_without_weights_there_is_no_error_of_returns():
    block = block_of(log_of().assign(rho=0.0))
    found = Yardstick.of(block, 0)
    assert found.weight.sum() == 0.0
    np.testing.assert_array_equal(found.returns_error(block, np.ones(len(block.rows))), 0.0)

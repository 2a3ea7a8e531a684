"""Energy storage: trades, the chain of prices, and what thresholds earn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2td import domains
from o2td.domains.energy_storage import GAP, LEVELS, LOWEST, _next_price, _trade


@pytest.mark.parametrize(
    ("charge", "price", "action", "u", "after", "money"),
    [
        (0.5, 1.0, 1, 0.9, 0.5, 0.0),
        # moves 1 unit: 0.5 -> 0.6, mean 0.55, wear 0.02 (1 + 8 * 0.1^4)
        (0.5, 1.0, 2, 0.5, 0.6, -1 / 0.95 - 0.02 * 1.0008),
        (0.5, 1.2, 0, 0.5, 0.4, 0.95 * 1.2 - 0.02 * 1.0008),
        # full and empty: nothing moves, nothing is paid
        (1.0, 1.0, 2, 0.5, 1.0, 0.0),
        (0.0, 1.6, 0, 0.5, 0.0, 0.0),
        # room for half a unit only
        (0.95, 0.4, 2, 0.5, 1.0, -0.4 * 0.5 / 0.95 - 0.02 * 0.5 * (1 + 8 * 0.95**4)),
    ],
)
def test_trades(
    charge: float, price: float, action: int, u: float, after: float, money: float
) -> None:
    assert _trade(charge, price, action, u) == pytest.approx((after, money))


def test_prices_are_the_documented_chain(fits: Any) -> None:
    rng = np.random.default_rng(0)
    for level in range(LEVELS):
        seen = np.array([_next_price(LOWEST + GAP * level, u) for u in rng.random(5000)])
        counts = np.bincount(np.rint((seen - LOWEST) / GAP).astype(int), minlength=LEVELS)
        side = np.sign(level - 3)
        up, down = {0: (0.2, 0.2), -1: (0.25, 0.15), 1: (0.15, 0.25)}[int(side)]
        expected = np.zeros(LEVELS)
        expected[min(level + 1, LEVELS - 1)] += up
        expected[max(level - 1, 0)] += down
        expected[level] += 1 - up - down
        fits(counts.astype(float), expected * 5000)


def test_storage_never_ends_and_its_thresholds_earn() -> None:
    problem = domains.energy_storage()
    rows = problem.rollout(5000, seed=0)
    assert not rows.terminated.any()
    assert rows.start.sum() == 1
    assert len(np.unique(rows.observation[:, 0])) > 2000
    middle = np.array([[0.5, 1.0]])
    value = problem.rollout_value(middle, runs=2000, seed=1)
    noisy = domains.energy_storage(epsilon_target=0.5).rollout_value(middle, runs=2000, seed=2)
    spread = np.hypot(value.standard_error[0], noisy.standard_error[0])
    assert value.mean[0] > noisy.mean[0] + 5 * spread
    assert value.mean[0] > 5 * value.standard_error[0]
    idle = domains.energy_storage(buy_below=0.0, sell_above=9.0)
    assert idle.rollout_value(middle, runs=2).mean[0] == 0.0

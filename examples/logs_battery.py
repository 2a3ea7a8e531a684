"""Logs of a battery that trades half at random, and what its plan alone would earn.

The plan buys below a price of 0.9 and sells above 1.1. The log mixes it with 50 % random trades.
Nothing ever ends here: the log is cut into days, which truncate and do not terminate. What the plan
earns (discounted) from a random charge and price can be simulated, so the answer is known.

    python examples/logs_battery.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import walk

from o2td import domains
from o2td.simulated import SimulatedProblem

DISCOUNT = 0.95
DAY = 96  # quarters of an hour


def battery(horizon: int) -> SimulatedProblem:
    """The domain with the plan as target and the noisy plan as behaviour."""
    return domains.energy_storage(epsilon_behavior=0.5, discount=DISCOUNT, horizon=horizon)


def logs(episodes: int, seed: int, file: Path) -> None:
    """A table as a trading system would write it, with names of its own."""
    rows = battery(DAY).rollout(episodes * DAY, seed=seed)
    pl.DataFrame(
        {
            "day": rows.episode,
            "quarter": rows.step,
            "charge": rows.observation[:, 0],
            "price": rows.observation[:, 1],
            "trade": rows.action,
            "profit": rows.reward,
            "closing": rows.truncated,
            "charge_after": rows.next_observation[:, 0],
            "price_after": rows.next_observation[:, 1],
            "propensity": rows.behavior_prob,
            "plan": rows.target_prob,
        }
    ).write_parquet(file)


COLUMNS = [
    *("episode=day", "step=quarter", "observation=charge,price", "action=trade"),
    *("reward=profit", "terminated=never", "truncated=closing"),
    *("next_observation=charge_after,price_after", "target_prob=plan"),
]


def truth(runs: int) -> tuple[float, float]:
    """Mean return of the plan alone from fresh charges and prices, and its standard error."""
    fresh = battery(horizon=1).rollout(max(2, runs), seed=10_000).observation
    found = battery(DAY).rollout_value(fresh, runs=2)
    return float(found.mean.mean()), float(found.mean.std() / np.sqrt(len(fresh)))


if __name__ == "__main__":
    walk.run(
        name="battery",
        logs=logs,
        truth=truth,
        episodes=200,
        options=[
            *("--discount", str(DISCOUNT), "--features", "fourier:5"),
            *(part for column in COLUMNS for part in ("--columns", column)),
        ],
    )

"""Logs of one mountain-car driver, and what another one would be worth.

The logged driver pushes in the direction of motion and does something random 30 % of the time. How
many (discounted) steps would a driver need that is random only 10 % of the time? The answer is
known here, because the car can be driven: about -71.4.

    python examples/logs_mountain_car.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import walk

from o2td import domains, sources

DISCOUNT = 0.99
LOGGED, WANTED = 0.3, 0.1  # shares of random actions


def driver(epsilon: float) -> Callable[[Any], Any]:
    """Probabilities of (left, none, right) in each observation (position, velocity)."""

    def policy(observation: Any) -> Any:
        chance = np.full((len(observation), 3), epsilon / 3)
        forward = np.where(observation[:, 1] >= 0, 2, 0)
        chance[np.arange(len(chance)), forward] += 1 - epsilon
        return chance

    return policy


def logs(episodes: int, seed: int) -> sources.Source:
    """Episodes of the logged driver, with the other driver's probabilities in every row."""
    return sources.rollouts(
        "MountainCar-v0",
        driver(LOGGED),
        target=driver(WANTED),
        discount=DISCOUNT,
        episodes=episodes,
        seed=seed,
    )


def truth(runs: int) -> tuple[float, float]:
    """Mean return of the wanted driver from the start, and its standard error."""
    car = domains.mountain_car(WANTED, LOGGED, discount=DISCOUNT)
    starts = np.column_stack([np.linspace(-0.6, -0.4, 201), np.zeros(201)])
    found = car.rollout_value(starts, runs=max(2, runs // 200))
    return float(found.mean.mean()), float(np.sqrt((found.standard_error**2).mean() / 201))


if __name__ == "__main__":
    walk.run(
        name="mountain_car",
        logs=logs,
        truth=truth,
        episodes=200,
        options=["--discount", str(DISCOUNT), "--features", "auto"],
    )

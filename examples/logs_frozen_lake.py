"""Logs of a wanderer on a frozen lake, and what one who knows the way would be worth.

FrozenLake 4x4, slippery: a step goes where it was meant to in one of three cases, holes end the
episode, the goal pays 1. The log was made by a walker that follows the best policy half of the time
and wanders otherwise; the policy to evaluate wanders 10 % of the time. Its value follows exactly
from the environment's own table.

    python examples/logs_frozen_lake.py
"""

from __future__ import annotations

import gymnasium
import numpy as np
import walk

from o2td import domains, exact, sources

DISCOUNT = 0.99
LOGGED, WANTED = 0.5, 0.1  # shares of random steps
MAP = "4x4"


def walker(epsilon: float) -> np.ndarray:
    """An (S, A) table: the best action, mixed with wandering."""
    best = domains.from_gymnasium("FrozenLake-v1", discount=DISCOUNT, map_name=MAP).target
    return (1 - epsilon) * best + epsilon / best.shape[1]


def logs(episodes: int, seed: int) -> sources.Source:
    """Episodes of the logged walker; states instead of observations."""
    return sources.rollouts(
        gymnasium.make("FrozenLake-v1", map_name=MAP),
        walker(LOGGED),
        target=walker(WANTED),
        discount=DISCOUNT,
        episodes=episodes,
        seed=seed,
    )


def truth(runs: int) -> tuple[float, float]:
    """The exact value of the start; nothing is simulated."""
    lake = domains.from_gymnasium(
        "FrozenLake-v1", walker(LOGGED), walker(WANTED), DISCOUNT, map_name=MAP
    )
    return float(lake.start @ exact.value(lake)), 0.0


if __name__ == "__main__":
    walk.run(
        name="frozen_lake",
        logs=logs,
        truth=truth,
        episodes=1500,
        options=["--discount", str(DISCOUNT), "--features", "tabular"],
    )

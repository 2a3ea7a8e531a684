"""Logs of a clumsy cart-pole controller, and what a steadier one would be worth.

A linear controller pushes towards the side to which the pole falls. The log was made with 30 %
random pushes; how long (discounted) would the pole stand with 5 %? About 88.3, as playing it shows.

    python examples/logs_cart_pole.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import walk

from o2td import sources

DISCOUNT = 0.99
LOGGED, WANTED = 0.3, 0.05  # shares of random pushes
GAIN = np.array([0.0, 0.0, 0.2, 1.0])  # on position, velocity, angle, angular velocity


def controller(epsilon: float) -> Callable[[Any], Any]:
    """Probabilities of (left, right) in each observation."""

    def policy(observation: Any) -> Any:
        chance = np.full((len(observation), 2), epsilon / 2)
        side = (observation @ GAIN > 0).astype(np.int64)
        chance[np.arange(len(chance)), side] += 1 - epsilon
        return chance

    return policy


def logs(episodes: int, seed: int) -> sources.Source:
    """Episodes of the logged controller, cut after 500 steps as Gymnasium does."""
    return sources.rollouts(
        "CartPole-v1",
        controller(LOGGED),
        target=controller(WANTED),
        discount=DISCOUNT,
        episodes=episodes,
        seed=seed,
    )


def truth(runs: int) -> tuple[float, float]:
    """Mean return of the wanted controller and its standard error; 1,500 steps are forever here."""
    count = max(2, runs // 5)
    env = gymnasium.make_vec(
        "CartPole-v1",
        num_envs=count,
        vectorization_mode="vector_entry_point",
        max_episode_steps=1600,
    )
    rng = np.random.default_rng(10_000)
    observation, _ = env.reset(seed=10_000)
    standing, returns = np.ones(count, dtype=bool), np.zeros(count)
    for step in range(1500):
        right = controller(WANTED)(observation)[:, 1] > rng.random(count)
        observation, reward, fell, _, _ = env.step(right.astype(np.int64))
        returns += standing * DISCOUNT**step * reward
        standing &= ~fell
    return float(returns.mean()), float(returns.std() / np.sqrt(count))


if __name__ == "__main__":
    walk.run(
        name="cart_pole",
        logs=logs,
        truth=truth,
        episodes=300,
        options=["--discount", str(DISCOUNT), "--features", "auto"],
    )

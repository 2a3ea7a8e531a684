"""Gymnasium's environments that come with a table: frozen lakes, cliff walks and the taxi.

Dynamics, starts and mean rewards of each step are Gymnasium's own. Both policies take the best action
but for a share of random ones. Where part of the state is hidden (every second column of a lake, the row
on the cliff, the taxi's passenger), policies see only what is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from benchmarks.honesty.tables import Array, Table, best_actions

DISCOUNT = 0.97
TASKS: dict[str, tuple[str, dict[str, Any], Callable[[Array], Array]]] = {
    "FrozenLake 4x4": ("FrozenLake-v1", {"map_name": "4x4"}, lambda state: state // 2),
    "FrozenLake 8x8": ("FrozenLake-v1", {"map_name": "8x8"}, lambda state: state // 2),
    "CliffWalking": ("CliffWalking-v1", {}, lambda state: state % 12),
    "slippery CliffWalking": ("CliffWalking-v1", {"is_slippery": True}, lambda state: state % 12),
    "Taxi": ("Taxi-v4", {}, lambda state: state // 20 * 4 + state % 4),
}


def environment(
    name: str, logged: float, wanted: float, horizon: int | None = None, hidden: bool = False
) -> Table:
    """A task of Gymnasium's; `logged` and `wanted` are the policies' shares of random actions."""
    made, options, merged = TASKS[name]
    env: Any = gymnasium.make(made, **options).unwrapped
    states, actions = env.observation_space.n, env.action_space.n
    transition = np.zeros((states, actions, states))
    reward, ends = np.zeros_like(transition), np.zeros(states, dtype=bool)
    for state in range(states):
        for action in range(actions):
            for chance, ahead, pays, over in env.P[state][action]:
                transition[state, action, ahead] += chance
                reward[state, action, ahead] += chance * pays
                ends[ahead] |= over
    np.divide(reward, transition, out=reward, where=transition > 0.0)
    start = np.asarray(env.initial_state_distrib, dtype=np.float64)
    shown = merged(np.arange(states)) if hidden else np.arange(states)
    policy = np.zeros((int(shown.max()) + 1, actions))
    np.add.at(policy, shown, np.eye(actions)[best_actions(transition, reward, ends, 0.99)])
    policy /= policy.sum(axis=1, keepdims=True)
    policies = [(1.0 - share) * policy + share / actions for share in (logged, wanted)]
    return Table(transition, reward, start, ends, shown, *policies, DISCOUNT, horizon)

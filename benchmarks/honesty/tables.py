"""Finite tasks whose truth is exact, and logs of them.

The first six are those of a published benchmark (Voloshin, Le, Jiang and Yue, "Empirical Study of
Off-Policy Policy Evaluation for Reinforcement Learning", NeurIPS 2021 datasets and benchmarks,
arXiv:1911.06854; ModelWin and ModelFail after Thomas and Brunskill, ICML 2016), written from
their descriptions. The last is drawn at random.

A task has hidden states; `shown` says which observation each of them gives, and policies see only
that. With `horizon` a clock ends every episode that is still going on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

Array = Any


@dataclass(frozen=True, eq=False)
class Table:
    """`P(s' | s, a)`, mean reward of `(s, a, s')` with normal noise, starts, ends and observations."""

    transition: Array  # (S, A, S)
    reward: Array  # (S, A, S)
    start: Array  # (S,)
    ends: Array  # (S,): whether an episode ends on arrival
    shown: Array  # (S,)
    behavior: Array  # (observations, A)
    target: Array
    discount: float
    horizon: int | None = None
    noise: float = 0.0

    @property
    def actions(self) -> int:
        """Number of actions."""
        return int(self.transition.shape[1])

    def value(self, steps: int | None = None) -> float:
        """The target's value over this many steps, or for ever if None. Exact."""
        policy = self.target[self.shown]
        chain = np.einsum("sa,sat->st", policy, self.transition)
        gain = np.einsum("sa,sat,sat->s", policy, self.transition, self.reward)
        onward = self.discount * chain * ~self.ends
        if steps is None:
            return float(self.start @ np.linalg.solve(np.eye(len(gain)) - onward, gain))
        ahead = np.zeros(len(gain))
        for _ in range(steps):
            ahead = gain + onward @ ahead
        return float(self.start @ ahead)

    def sample(self, episodes: int, rng: np.random.Generator, longest: int = 5000) -> pd.DataFrame:
        """A log of the behaviour: one row per step, with both policies' probabilities of all actions.

        The last row of an episode that the clock ended is marked only `clock`.
        """
        limit = longest if self.horizon is None else self.horizon
        state = pick(rng, np.broadcast_to(self.start, (episodes, len(self.start))))
        alive, parts = np.arange(episodes), []
        for step in range(limit):
            seen = self.shown[state]
            action = pick(rng, self.behavior[seen])
            ahead = pick(rng, self.transition[state, action])
            reward = self.reward[state, action, ahead]
            if self.noise:
                reward = reward + self.noise * rng.normal(size=len(reward))
            over = self.ends[ahead]
            clock = ~over if step == limit - 1 else np.zeros(len(over), dtype=bool)
            parts.append((alive, step, seen, self.shown[ahead], action, reward, over, clock))
            alive, state = alive[~over], ahead[~over]
            if not len(alive):
                break
        return self._frame(parts)

    def _frame(self, parts: list[Any]) -> pd.DataFrame:
        sizes = [len(part[0]) for part in parts]
        columns = [np.concatenate([part[k] for part in parts]) for k in (0, 2, 3, 4, 5, 6, 7)]
        names = ("episode", "state", "next_state", "action", "reward", "terminated", "clock")
        log = pd.DataFrame(dict(zip(names, columns, strict=True)))
        log.insert(1, "step", np.repeat([part[1] for part in parts], sizes))
        log = log.sort_values(["episode", "step"], ignore_index=True)
        taken, row = log.action.to_numpy(), np.arange(len(log))
        for name, policy in (("behavior", self.behavior), ("target", self.target)):
            log[f"{name}_prob"] = policy[log.state][row, taken]
        for action in range(self.actions):
            log[f"target_prob_{action}"] = self.target[log.state][:, action]
        return log


def pick(rng: np.random.Generator, chance: Array) -> Array:
    """One index per row of probabilities."""
    edges = np.cumsum(chance, axis=1)
    return np.minimum((rng.random((len(chance), 1)) > edges).sum(axis=1), chance.shape[1] - 1)


def marked(log: pd.DataFrame, clock: str) -> pd.DataFrame:
    """Mark ends by the clock as "terminated" or "truncated"."""
    log = log.copy()
    ended = log.pop("clock").to_numpy(dtype=bool)
    log["truncated"] = ended & (clock == "truncated")
    log["terminated"] = log.terminated.to_numpy(dtype=bool) | (ended & (clock == "terminated"))
    return log


def coin(first: float, observations: int) -> Array:
    """A policy of two actions that ignores the state: the first action with this probability."""
    return np.tile([first, 1.0 - first], (observations, 1))


def timed(task: Table) -> Table:
    """The same with the step in the state, so that the clock is observed."""
    assert task.horizon is not None
    size, steps = len(task.start), task.horizon
    whole = size * (steps + 1)
    transition = np.zeros((whole, task.actions, whole))
    reward = np.zeros_like(transition)
    for t in range(steps):
        here, ahead = slice(t * size, (t + 1) * size), slice((t + 1) * size, (t + 2) * size)
        transition[here, :, ahead], reward[here, :, ahead] = task.transition, task.reward
    transition[steps * size :, :, 0] = 1.0
    ends = np.tile(task.ends, steps + 1)
    ends[steps * size :] = True
    seen = int(task.shown.max()) + 1
    shown = np.concatenate([t * seen + task.shown for t in range(steps + 1)])
    start = np.zeros(whole)
    start[:size] = task.start
    return replace(
        task,
        transition=transition,
        reward=reward,
        start=start,
        ends=ends,
        shown=shown,
        behavior=np.tile(task.behavior, (steps + 1, 1)),
        target=np.tile(task.target, (steps + 1, 1)),
        horizon=None,
    )


# -- the published tasks ---------------------------------------------------------------------------


def graph(
    length: int = 16,
    logged: float = 0.2,
    wanted: float = 0.8,
    sparse: bool = False,
    noisy: bool = False,
    slip: float = 0.25,
    observations: int | None = None,
    discount: float = 0.98,
) -> Table:
    """Two lanes of states, `length` steps: +1 on the odd lane, -1 on the even one.

    State 0, then 2t + 1 (action 0) or 2t + 2 (action 1), the other one with probability `slip`. In a
    sparse task only the last step pays. With `observations`, consecutive states look alike, including
    the first.
    """
    size = 2 * length
    transition, reward = np.zeros((size, 2, size)), np.zeros((size, 2, size))
    for state in range(size):
        level = (state + 1) // 2
        if level >= length - 1:
            transition[state, :, size - 1] = 1.0
            reward[state, :, size - 1] = 1.0 if state % 2 else -1.0
            continue
        odd, even = 2 * level + 1, 2 * level + 2
        transition[state, 0, [odd, even]] = 1.0 - slip, slip
        transition[state, 1, [odd, even]] = slip, 1.0 - slip
        if not sparse:
            reward[state, :, odd], reward[state, :, even] = 1.0, -1.0
    ends = np.arange(size) == size - 1
    shown = np.arange(size)
    if observations is not None:
        groups = np.array_split(np.arange(1, size - 1), observations - 1)
        shown = np.concatenate(
            [[0], np.repeat(np.arange(len(groups)), [len(g) for g in groups]), [len(groups)]]
        )
    seen = int(shown.max()) + 1
    start = np.eye(size)[0]
    policies = coin(logged, seen), coin(wanted, seen)
    return Table(
        *(transition, reward, start, ends, shown, *policies, discount), noise=1.0 if noisy else 0.0
    )


def toy_mountain_car(
    right: float = 0.2, wanted: float = 0.8, horizon: int = 250, discount: float = 0.99
) -> Table:
    """A walk of 22 states from the eleventh: -1 per step until the right end, a wall on the left."""
    size = 22
    transition = np.zeros((size, 2, size))
    here = np.arange(size)
    transition[here, 0, np.maximum(here - 1, 0)] = 1.0
    transition[here, 1, np.minimum(here + 1, size - 1)] = 1.0
    reward = np.full((size, 2, size), -1.0)
    return Table(
        *(transition, reward, np.eye(size)[10], here == size - 1, here),
        *(coin(1.0 - right, size), coin(1.0 - wanted, size), discount, horizon),
    )


_MAP = """
........
..f.h...
...h..f.
.f...h.f
...h..f.
.hh.f.h.
.h..h.h.
...h.f.g
"""
_PAYS = {".": -0.01, "f": -0.005, "h": -0.5, "g": 1.0}


def gridworld(
    logged: float = 0.6,
    wanted: float = 0.1,
    slip: float = 0.2,
    horizon: int = 25,
    discount: float = 0.98,
    merged: int = 1,
) -> Table:
    """Eight by eight from the upper or left edge to the lower right corner; a cell pays on arrival.

    Policies take the best action except for a share of random ones; a step goes anywhere with
    probability `slip`. With `merged`, so many adjacent columns look alike.
    """
    pays = np.array([[_PAYS[cell] for cell in line] for line in _MAP.split()])
    size, where = 64, np.arange(64)
    row, column = np.divmod(where, 8)
    moves = [(0, -1), (0, 1), (-1, 0), (1, 0)]
    straight = np.zeros((size, 4, size))
    for action, (down, right) in enumerate(moves):
        to = np.clip(row + down, 0, 7) * 8 + np.clip(column + right, 0, 7)
        straight[where, action, to] = 1.0
    transition = (1.0 - slip) * straight + slip * straight.mean(axis=1, keepdims=True)
    reward = np.broadcast_to(pays.ravel(), (size, 4, size)).copy()
    ends = where == size - 1
    best = best_actions(straight, reward, ends, 0.99)
    shown = row * (8 // merged) + column // merged
    policy = np.zeros((int(shown.max()) + 1, 4))
    np.add.at(policy, shown, np.eye(4)[best])
    policy /= policy.sum(axis=1, keepdims=True)
    start = ((row == 0) | (column == 0)) / 15.0
    policies = [(1.0 - share) * policy + share / 4.0 for share in (logged, wanted)]
    return Table(transition, reward, start, ends, shown, *policies, discount, horizon)


def best_actions(transition: Array, reward: Array, ends: Array, discount: float) -> Array:
    """The best action of every state, by value iteration."""
    value = np.zeros(len(ends))
    gain = np.einsum("sat,sat->sa", transition, reward)
    for _ in range(1000):
        value = (gain + discount * transition @ (value * ~ends)).max(axis=1)
    return (gain + discount * transition @ (value * ~ends)).argmax(axis=1)


def model_win(
    logged: float = 0.73, wanted: float = 0.27, horizon: int = 20, discount: float = 0.98
) -> Table:
    """Three states: from the first to one that pays 1 or one that costs 1, and back again."""
    transition, reward = np.zeros((3, 2, 3)), np.zeros((3, 2, 3))
    transition[0, 0], transition[0, 1] = [0.0, 0.4, 0.6], [0.0, 0.6, 0.4]
    transition[1:, :, 0] = 1.0
    reward[0, :, 1], reward[0, :, 2] = 1.0, -1.0
    here = np.arange(3)
    policies = coin(logged, 3), coin(wanted, 3)
    return Table(transition, reward, np.eye(3)[0], here > 2, here, *policies, discount, horizon)


def model_fail(
    logged: float = 0.2, wanted: float = 0.8, horizon: int = 2, discount: float = 0.98
) -> Table:
    """Three states that look the same: only the reward reveals, afterwards, which one it was."""
    transition, reward = np.zeros((3, 2, 3)), np.zeros((3, 2, 3))
    transition[0, 0], transition[0, 1] = [0.0, 0.75, 0.25], [0.0, 0.25, 0.75]
    transition[1:, :, 0] = 1.0
    reward[1, :, 0], reward[2, :, 0] = 1.0, -1.0
    none, same = np.zeros(3, dtype=bool), np.zeros(3, dtype=int)
    policies = coin(logged, 1), coin(wanted, 1)
    return Table(transition, reward, np.eye(3)[0], none, same, *policies, discount, horizon)


# -- drawn at random -------------------------------------------------------------------------------


def random_table(rng: np.random.Generator, horizon: int | None = None) -> Table:
    """A sound task of 4 to 15 states and 2 to 3 actions that ends by itself."""
    size, actions = int(rng.integers(4, 16)), int(rng.integers(2, 4))
    ending = float(rng.choice([0.05, 0.1, 0.2]))
    inner = rng.dirichlet(np.full(size, 0.5), size=(size, actions))
    last = np.full((size, actions, 1), ending) * rng.uniform(0.5, 1.5, size=(size, actions, 1))
    transition = np.zeros((size + 1, actions, size + 1))
    transition[:size, :, :size], transition[:size, :, size:] = inner * (1.0 - last), last
    transition[size, :, size] = 1.0
    reward = np.broadcast_to(
        rng.normal(size=(size + 1, actions, 1)), (size + 1, actions, size + 1)
    ).copy()
    scores = rng.normal(size=(2, size + 1, actions))
    chance = np.exp(scores - scores.max(axis=2, keepdims=True))
    chance /= chance.sum(axis=2, keepdims=True)
    behavior = 0.7 * chance[0] + 0.3 / actions
    start = np.append(rng.dirichlet(np.ones(size)), 0.0)
    here = np.arange(size + 1)
    discount = float(rng.choice([0.9, 0.97, 0.99]))
    noise = float(rng.choice([0.0, 0.5]))
    return Table(
        *(transition, reward, start, here == size, here, behavior, chance[1], discount),
        *(horizon, noise),
    )

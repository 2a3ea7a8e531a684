"""Puddle World (Boyan & Moore 1995; Sutton 1996): across the unit square to its upper right corner.

A move goes 0.05 left, right, down or up, with normal noise of deviation 0.01 in both coordinates.
It costs 1, and 400 times the depth in a puddle: two lines with radius 0.1, from (0.1, 0.75) to
(0.45, 0.75) and from (0.45, 0.4) to (0.45, 0.8). The goal is x + y >= 1.9. Policies go right or up
with equal probability, and take a random action with probability epsilon.
"""

from __future__ import annotations

from functools import partial
from math import cos, log, pi, sqrt
from typing import Any

import numpy as np

from o2td.arrays import Floats
from o2td.compiled import njit
from o2td.simulated import SimulatedProblem

BOUNDS = ((0.0, 1.0), (0.0, 1.0))
ACTIONS = 4
STEP, NOISE, RADIUS, DEPTH, GOAL = 0.05, 0.01, 0.1, 400.0, 1.9


def puddle_world(
    target: float, behavior: float, features: Any, discount: float = 0.95
) -> SimulatedProblem:
    """Both policies are given by their epsilon; episodes start anywhere and last at most 500 steps."""
    return SimulatedProblem(
        _begin,
        _advance,
        partial(_policy, behavior),
        partial(_policy, target),
        features,
        discount,
        horizon=500,
        rollout=partial(_rollout, behavior, target),
        returns=partial(_returns, target),
        bounds=BOUNDS,
        name="puddle_world",
    )


@njit(cache=True, nogil=True)
def _depth(x: float, y: float) -> float:
    """How deep (x, y) is in the puddles: the radius less the distance to each line, if positive."""
    across = sqrt((x - min(max(x, 0.1), 0.45)) ** 2 + (y - 0.75) ** 2)
    along = sqrt((x - 0.45) ** 2 + (y - min(max(y, 0.4), 0.8)) ** 2)
    return max(0.0, RADIUS - across) + max(0.0, RADIUS - along)


@njit(cache=True, nogil=True)
def _move(x: float, y: float, action: int, u: float, v: float) -> Any:
    """The next place, its reward and whether it is the goal; `u, v` are uniform in [0, 1)."""
    size = NOISE * sqrt(-2.0 * log(1.0 - u))
    along = STEP if action % 2 == 1 else -STEP
    x += size * cos(2.0 * pi * v) + (along if action < 2 else 0.0)
    y += size * cos(2.0 * pi * (v - 0.25)) + (along if action >= 2 else 0.0)
    x, y = min(max(x, 0.0), 1.0), min(max(y, 0.0), 1.0)
    return x, y, -1.0 - DEPTH * _depth(x, y), x + y >= GOAL


@njit(cache=True, nogil=True)
def _probability(epsilon: float, action: int) -> float:
    return (0.5 - 0.5 * epsilon if action % 2 == 1 else 0.0) + epsilon / ACTIONS


@njit(cache=True, nogil=True)
def _draw(epsilon: float, u: float) -> int:
    total = 0.0
    for action in range(ACTIONS - 1):
        total += _probability(epsilon, action)
        if u < total:
            return action
    return ACTIONS - 1


@njit(cache=True, nogil=True)
def _rollout(
    behavior: float, target: float, rng: Any, horizon: int, given: bool, columns: Any
) -> None:
    x, action, reward, next_x, terminated, truncated, start, behavior_prob, target_prob = columns
    fresh, age = True, 0
    for t in range(len(reward)):
        if not given:
            x[t, 0] = 0.95 * rng.random() if fresh else next_x[t - 1, 0]
            x[t, 1] = 0.95 * rng.random() if fresh else next_x[t - 1, 1]
        start[t] = given or fresh
        age = 1 if fresh else age + 1
        a = _draw(behavior, rng.random())
        u, v = rng.random(), rng.random()
        action[t] = a
        next_x[t, 0], next_x[t, 1], reward[t], terminated[t] = _move(x[t, 0], x[t, 1], a, u, v)
        behavior_prob[t], target_prob[t] = _probability(behavior, a), _probability(target, a)
        truncated[t] = age >= horizon and not terminated[t]
        fresh = terminated[t] or truncated[t]


@njit(cache=True, nogil=True)
def _returns(target: float, rng: Any, first: Any, steps: int, discount: float, out: Any) -> int:
    unfinished = 0
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            x, y = first[i, 0], first[i, 1]
            weight, total, ended = 1.0, 0.0, False
            for _ in range(steps):
                a = _draw(target, rng.random())
                u, v = rng.random(), rng.random()
                x, y, reward, ended = _move(x, y, a, u, v)
                total += weight * reward
                weight *= discount
                if ended:
                    break
            out[i, j] = total
            unfinished += not ended
    return unfinished


def _begin(rng: np.random.Generator) -> Floats:
    return np.array([0.95 * rng.random(), 0.95 * rng.random()])


def _advance(x: Floats, action: int, rng: np.random.Generator) -> tuple[Floats, float, bool]:
    first, second, reward, ended = _move(x[0], x[1], action, rng.random(), rng.random())
    return np.array([first, second]), float(reward), bool(ended)


def _policy(epsilon: float, x: Floats) -> Floats:
    return np.array([_probability(epsilon, a) for a in range(ACTIONS)])

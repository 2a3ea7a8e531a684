"""Mountain car (Moore 1990) with the dynamics of Gymnasium's `MountainCar-v0`.

`v += 0.001 (a - 1) - 0.0025 cos(3x)`, `x += v`, both kept within bounds; the goal is x >= 0.5. The
policies push in the direction of motion, with some random actions.
"""

from __future__ import annotations

from functools import partial
from math import cos
from typing import Any

import numpy as np

from o2td.arguments import unit
from o2td.arrays import Floats
from o2td.compiled import njit
from o2td.errors import InputError
from o2td.features import Fourier
from o2td.simulated import SimulatedProblem

BOUNDS = ((-1.2, 0.6), (-0.07, 0.07))  # position, velocity
ACTIONS = 3  # push left, none, push right


def mountain_car(
    epsilon_target: float = 0.0,
    epsilon_behavior: float = 0.0,
    order: int = 3,
    scale: str | None = "coefficient",
    discount: float = 0.95,
    horizon: int | None = 200,
    features: Any = None,
) -> SimulatedProblem:
    """Mountain car: steps to the goal, r = -1, of a policy that pushes in the direction of motion.

    Observations are position and velocity. Both policies push right where the velocity is not
    negative and left where it is, and take a random action with probability epsilon: the same
    epsilon is the paper's on-policy setting, different ones make it off-policy. Episodes start at
    rest, position uniform in [-0.6, -0.4]. The paper leaves discount and order open.

    Parameters
    ----------
    epsilon_target, epsilon_behavior : float
        Probability of a random action.
    order, scale
        Order and scale of the Fourier features; `scale="coefficient"` divides feature c by the root
        of its norm.
    discount : float
        gamma of every step that does not end an episode.
    horizon : int or None
        Steps after which an episode is truncated, 200 in Gymnasium.
    features : transformer or callable, optional
        Features to use instead of Fourier features.

    Examples
    --------
    >>> problem = mountain_car(epsilon_behavior=0.3)
    >>> problem.d, sorted(set(problem.sample(1000, seed=0).rho.round(3)))
    (16, [np.float64(0.0), np.float64(1.25)])
    """
    target = unit("epsilon_target", epsilon_target)
    behavior = unit("epsilon_behavior", epsilon_behavior)
    if target > 0.0 and behavior == 0.0:
        raise InputError(
            "epsilon_behavior is 0, so actions that the target takes are never seen; raise it"
        )
    return SimulatedProblem(
        _begin,
        _advance,
        partial(_policy, behavior),
        partial(_policy, target),
        Fourier(order, bounds=BOUNDS, scale=scale) if features is None else features,
        discount,
        horizon=horizon,
        rollout=partial(_rollout, behavior, target),
        returns=partial(_returns, target),
        bounds=BOUNDS,
        name="mountain_car",
    )


@njit(cache=True, nogil=True)
def _move(position: float, velocity: float, action: int) -> Any:
    """Gymnasium's step, operation by operation: without fast arithmetic it agrees to the bit."""
    velocity += (action - 1) * 0.001 + cos(3 * position) * (-0.0025)
    velocity = min(max(velocity, -0.07), 0.07)
    position += velocity
    position = min(max(position, -1.2), 0.6)
    if position == -1.2 and velocity < 0.0:
        velocity = 0.0
    return position, velocity, position >= 0.5 and velocity >= 0.0


@njit(cache=True, nogil=True)
def _probability(epsilon: float, velocity: float, action: int) -> float:
    chosen = 2 if velocity >= 0.0 else 0
    return (1.0 - epsilon if action == chosen else 0.0) + epsilon / 3.0


@njit(cache=True, nogil=True)
def _draw(epsilon: float, velocity: float, u: float) -> int:
    total = 0.0
    for action in range(2):
        total += _probability(epsilon, velocity, action)
        if u < total:
            return action
    return 2


@njit(cache=True, nogil=True)
def _rollout(
    behavior: float, target: float, rng: Any, horizon: int, given: bool, columns: Any
) -> None:
    x, action, reward, next_x, terminated, truncated, start, behavior_prob, target_prob = columns
    fresh, age = True, 0
    for t in range(len(reward)):
        if not given:
            x[t, 0] = -0.6 + 0.2 * rng.random() if fresh else next_x[t - 1, 0]
            x[t, 1] = 0.0 if fresh else next_x[t - 1, 1]
        start[t] = given or fresh
        age = 1 if fresh else age + 1
        velocity = x[t, 1]
        a = _draw(behavior, velocity, rng.random())
        action[t], reward[t] = a, -1.0
        next_x[t, 0], next_x[t, 1], terminated[t] = _move(x[t, 0], velocity, a)
        behavior_prob[t] = _probability(behavior, velocity, a)
        target_prob[t] = _probability(target, velocity, a)
        truncated[t] = age >= horizon and not terminated[t]
        fresh = terminated[t] or truncated[t]


@njit(cache=True, nogil=True)
def _returns(target: float, rng: Any, first: Any, steps: int, discount: float, out: Any) -> int:
    unfinished = 0
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            position, velocity = first[i, 0], first[i, 1]
            weight, total, ended = 1.0, 0.0, False
            for _ in range(steps):
                a = _draw(target, velocity, rng.random())
                position, velocity, ended = _move(position, velocity, a)
                total -= weight
                weight *= discount
                if ended:
                    break
            out[i, j] = total
            unfinished += not ended
    return unfinished


def _begin(rng: np.random.Generator) -> Floats:
    return np.array([-0.6 + 0.2 * rng.random(), 0.0])


def _advance(x: Floats, action: int, rng: np.random.Generator) -> tuple[Floats, float, bool]:
    position, velocity, terminated = _move(x[0], x[1], action)
    return np.array([position, velocity]), -1.0, bool(terminated)


def _policy(epsilon: float, x: Floats) -> Floats:
    return np.array([_probability(epsilon, x[1], a) for a in range(ACTIONS)])

"""A battery that trades: buy, hold or sell at prices that follow a Markov chain.

The O²TD paper's source announces an energy-storage domain but never shows it, so the constants
below are ours. The unit of energy is what the battery moves per step at full power; prices are
relative to their mean.

- Capacity 10. A step moves `0.75 + 0.5 u` units, u uniform, as far as there is room or charge.
- Efficiency 0.95 each way: storing m units costs `p m / 0.95`, selling m earns `0.95 p m`.
- Wear `0.02 m (1 + 8 (2c - 1)^4)`, c the mean of the charge before and after as a share of the
  capacity: nine times dearer at the ends than in the middle.
- Price 0.4, 0.6, …, 1.6. It moves one level towards the mean with 0.25, away from it with 0.15
  (from the mean itself 0.2 each way), else it stays.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from o2td.arguments import real, unit
from o2td.arrays import Floats
from o2td.compiled import njit
from o2td.errors import InputError
from o2td.features import Fourier
from o2td.simulated import SimulatedProblem

CAPACITY, EFFICIENCY, WEAR = 10.0, 0.95, 0.02
LOWEST, GAP, LEVELS = 0.4, 0.2, 7
BOUNDS = ((0.0, 1.0), (LOWEST, LOWEST + GAP * (LEVELS - 1)))  # charge, price
ACTIONS = 3  # sell, hold, buy


def energy_storage(
    buy_below: float = 0.9,
    sell_above: float = 1.1,
    epsilon_target: float = 0.0,
    epsilon_behavior: float = 0.5,
    order: int = 3,
    scale: str | None = "coefficient",
    discount: float = 0.95,
    horizon: int | None = None,
    features: Any = None,
) -> SimulatedProblem:
    """A battery that buys low and sells high, with losses and wear: the value of a threshold.

    Observations are the charge as a share of the capacity and the price. The target buys where the
    price is below `buy_below`, sells where it is above `sell_above` and holds in between; the
    behaviour does the same with more random actions. The problem is continuing.

    Parameters
    ----------
    buy_below, sell_above : float
        Thresholds on the price, whose mean is 1.
    epsilon_target, epsilon_behavior : float
        Probability of a random action.
    order, scale
        Order and scale of the Fourier features.
    discount : float
        gamma of every step that does not end an episode.
    horizon : int or None
        Steps after which a trajectory is truncated and another starts.
    features : transformer or callable, optional
        Features to use instead of Fourier features.

    Examples
    --------
    >>> problem = energy_storage()
    >>> problem.d, problem.sample(1000, seed=0).rho.max().round(3)
    (16, np.float64(1.5))
    """
    target = unit("epsilon_target", epsilon_target)
    behavior = unit("epsilon_behavior", epsilon_behavior)
    if target > 0.0 and behavior == 0.0:
        raise InputError(
            "epsilon_behavior is 0, so actions that the target takes are never seen; raise it"
        )
    low, high = real("buy_below", buy_below), real("sell_above", sell_above)
    if low > high:
        raise InputError(
            f"buy_below is {low:g}, above sell_above, which is {high:g}; swap or lower it"
        )
    return SimulatedProblem(
        _begin,
        _advance,
        partial(_policy, low, high, behavior),
        partial(_policy, low, high, target),
        Fourier(order, bounds=BOUNDS, scale=scale) if features is None else features,
        discount,
        horizon=horizon,
        rollout=partial(_rollout, low, high, behavior, target),
        returns=partial(_returns, low, high, target),
        bounds=BOUNDS,
        name="energy_storage",
    )


@njit(cache=True, nogil=True)
def _next_price(price: float, u: float) -> float:
    level = int((price - LOWEST) / GAP + 0.5)
    side = level - LEVELS // 2
    up = 0.2 if side == 0 else (0.25 if side < 0 else 0.15)
    down = 0.2 if side == 0 else (0.25 if side > 0 else 0.15)
    if u < up:
        level = min(level + 1, LEVELS - 1)
    elif u < up + down:
        level = max(level - 1, 0)
    return LOWEST + GAP * level


@njit(cache=True, nogil=True)
def _trade(charge: float, price: float, action: int, u: float) -> Any:
    """The new charge and the money earned."""
    amount = (0.75 + 0.5 * u) / CAPACITY
    if action == 1:
        return charge, 0.0
    after = min(1.0, charge + amount) if action == 2 else max(0.0, charge - amount)
    moved = abs(after - charge) * CAPACITY
    money = -price * moved / EFFICIENCY if action == 2 else EFFICIENCY * price * moved
    off_center = (charge + after - 1.0) ** 2
    return after, money - WEAR * moved * (1.0 + 8.0 * off_center * off_center)


@njit(cache=True, nogil=True)
def _probability(low: float, high: float, epsilon: float, price: float, action: int) -> float:
    chosen = 2 if price < low else (0 if price > high else 1)
    return (1.0 - epsilon if action == chosen else 0.0) + epsilon / 3.0


@njit(cache=True, nogil=True)
def _draw(low: float, high: float, epsilon: float, price: float, u: float) -> int:
    total = 0.0
    for action in range(2):
        total += _probability(low, high, epsilon, price, action)
        if u < total:
            return action
    return 2


@njit(cache=True, nogil=True)
def _rollout(
    low: float,
    high: float,
    behavior: float,
    target: float,
    rng: Any,
    horizon: int,
    given: bool,
    columns: Any,
) -> None:
    x, action, reward, next_x, terminated, truncated, start, behavior_prob, target_prob = columns
    fresh, age = True, 0
    for t in range(len(reward)):
        if not given:
            x[t, 0] = rng.random() if fresh else next_x[t - 1, 0]
            x[t, 1] = LOWEST + GAP * int(rng.random() * LEVELS) if fresh else next_x[t - 1, 1]
        start[t] = given or fresh
        age = 1 if fresh else age + 1
        price = x[t, 1]
        a = _draw(low, high, behavior, price, rng.random())
        action[t] = a
        next_x[t, 0], reward[t] = _trade(x[t, 0], price, a, rng.random())
        next_x[t, 1] = _next_price(price, rng.random())
        behavior_prob[t] = _probability(low, high, behavior, price, a)
        target_prob[t] = _probability(low, high, target, price, a)
        terminated[t] = False
        truncated[t] = age >= horizon
        fresh = truncated[t]


@njit(cache=True, nogil=True)
def _returns(
    low: float,
    high: float,
    target: float,
    rng: Any,
    first: Any,
    steps: int,
    discount: float,
    out: Any,
) -> int:
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            charge, price = first[i, 0], first[i, 1]
            weight, total = 1.0, 0.0
            for _ in range(steps):
                a = _draw(low, high, target, price, rng.random())
                charge, reward = _trade(charge, price, a, rng.random())
                price = _next_price(price, rng.random())
                total += weight * reward
                weight *= discount
            out[i, j] = total
    return int(out.size)


def _begin(rng: np.random.Generator) -> Floats:
    return np.array([rng.random(), LOWEST + GAP * int(rng.random() * LEVELS)])


def _advance(x: Floats, action: int, rng: np.random.Generator) -> tuple[Floats, float, bool]:
    charge, reward = _trade(x[0], x[1], action, rng.random())
    return np.array([charge, _next_price(x[1], rng.random())]), float(reward), False


def _policy(low: float, high: float, epsilon: float, x: Floats) -> Floats:
    return np.array([_probability(low, high, epsilon, x[1], a) for a in range(ACTIONS)])

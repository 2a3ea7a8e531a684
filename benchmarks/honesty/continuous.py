"""Tasks with continuous observations; truths come from many roll-outs, computed once and cached.

Cart-pole and mountain car are those of the coverage studies. Pendulum has three torques (-2, 0, 2) and
Gymnasium's cost; its policies swing up by energy and then balance. The noisy mountain car shows its
position only. A linear system, drawn for each log, is ended by a clock that is marked as termination,
as are the first three with Gymnasium's time limits and with shorter ones.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.coverage_common import cart_pole, cart_pole_value, mountain_car, mountain_car_value
from benchmarks.coverage_words import Linear, softmax
from o2td import domains

TORQUES = np.array([-2.0, 0.0, 2.0])
RUNS = 20_000


def mixed(best: Any, share: float, actions: int) -> Any:
    """Probabilities of a policy that takes `best` except for a share of random actions."""
    return (1.0 - share) * np.eye(actions)[best] + share / actions


# -- pendulum --------------------------------------------------------------------------------------


def _swing(angle: Any, speed: Any) -> Any:
    """Pump energy until upright is near, then push against the fall."""
    energy = 0.5 * speed**2 + 15.0 * (np.cos(angle) - 1.0)
    near = (np.abs(angle) < 0.5) & (np.abs(speed) < 2.5)
    pump = np.where(energy < 0.0, np.sign(speed), -np.sign(speed))
    return np.where(near, np.sign(-angle - 0.3 * speed), pump).astype(int) + 1


def _pendulum_step(angle: Any, speed: Any, action: Any) -> tuple[Any, Any, Any]:
    torque = TORQUES[action]
    cost = angle**2 + 0.1 * speed**2 + 0.001 * torque**2
    speed = np.clip(speed + 0.05 * (15.0 * np.sin(angle) + 3.0 * torque), -8.0, 8.0)
    angle = (angle + 0.05 * speed + np.pi) % (2.0 * np.pi) - np.pi
    return angle, speed, -cost


def pendulum(
    episodes: int, rng: np.random.Generator, logged: float = 0.5, wanted: float = 0.2
) -> pd.DataFrame:
    """Episodes truncated after 200 steps."""
    angle = rng.uniform(-np.pi, np.pi, episodes)
    speed = rng.uniform(-1.0, 1.0, episodes)
    parts = []
    for step in range(200):
        best = _swing(angle, speed)
        chance, wish = mixed(best, logged, 3), mixed(best, wanted, 3)
        action = _pick(rng, chance)
        here = np.column_stack([np.cos(angle), np.sin(angle), speed])
        angle, speed, reward = _pendulum_step(angle, speed, action)
        ahead = np.column_stack([np.cos(angle), np.sin(angle), speed])
        parts.append((step, here, ahead, action, reward, chance, wish))
    return _frame(parts, episodes, np.zeros(episodes, dtype=int) + 200, "truncated")


def _pick(rng: np.random.Generator, chance: Any) -> Any:
    edges = np.cumsum(chance, axis=1)
    return np.minimum((rng.random((len(chance), 1)) > edges).sum(axis=1), chance.shape[1] - 1)


def _frame(parts: list[Any], episodes: int, length: Any, clock: str) -> pd.DataFrame:
    """Rows of all steps, episode by episode, up to each episode's length."""
    steps = len(parts)
    log = pd.DataFrame(
        {"episode": np.tile(np.arange(episodes), steps), "step": np.repeat(range(steps), episodes)}
    )
    here, ahead = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
    action, reward = (np.concatenate([part[k] for part in parts]) for k in (3, 4))
    chance, wish = (np.concatenate([part[k] for part in parts]) for k in (5, 6))
    for j in range(here.shape[1]):
        log[f"obs_{j}"], log[f"next_obs_{j}"] = here[:, j], ahead[:, j]
    row = np.arange(len(log))
    log["action"], log["reward"] = action, reward
    log["behavior_prob"], log["target_prob"] = chance[row, action], wish[row, action]
    for a in range(wish.shape[1]):
        log[f"target_prob_{a}"] = wish[:, a]
    last = log.step == length[log.episode] - 1
    ended = last & (clock == "terminated") | (last & (length[log.episode] < steps))
    log["terminated"], log["truncated"] = ended, last & ~ended
    log = log[log.step < length[log.episode]]
    return log.sort_values(["episode", "step"], ignore_index=True)


@cache
def pendulum_value(wanted: float, discount: float, steps: int = 600) -> float:
    """Mean discounted return over some steps of many runs."""
    rng = np.random.default_rng(77)
    angle, speed = rng.uniform(-np.pi, np.pi, RUNS), rng.uniform(-1.0, 1.0, RUNS)
    total, factor = np.zeros(RUNS), 1.0
    for _ in range(steps):
        action = _pick(rng, mixed(_swing(angle, speed), wanted, 3))
        angle, speed, reward = _pendulum_step(angle, speed, action)
        total += factor * reward
        factor *= discount
    return float(total.mean())


# -- a mountain car that shows its position only ---------------------------------------------------


def _hidden_best(position: Any, _speed: Any) -> Any:
    """Push towards the goal from the left half, away from it from the right half."""
    return np.where(position < -0.55, 2, 0)


def _car_step(rng: np.random.Generator, position: Any, speed: Any, action: Any) -> Any:
    push = 0.0015 * (action - 1.0) + 0.0005 * rng.normal(size=len(position))
    speed = np.clip(speed + push - 0.0025 * np.cos(3.0 * position), -0.07, 0.07)
    position = np.clip(position + speed, -1.2, 0.6)
    speed = np.where(position <= -1.2, np.maximum(speed, 0.0), speed)
    return position, speed, position >= 0.5


def hidden_car(
    episodes: int, rng: np.random.Generator, logged: float = 0.9, wanted: float = 0.4
) -> pd.DataFrame:
    """Episodes of up to 200 steps, -1 per step, that end at the goal or are truncated."""
    position, speed = rng.uniform(-0.6, -0.4, episodes), np.zeros(episodes)
    length = np.full(episodes, 200)
    parts = []
    for step in range(200):
        best = _hidden_best(position, speed)
        chance, wish = mixed(best, logged, 3), mixed(best, wanted, 3)
        action = _pick(rng, chance)
        here = position[:, None]
        position, speed, there = _car_step(rng, position, speed, action)
        length = np.where(there & (length == 200), np.minimum(step + 1, length), length)
        reward = np.where(position > -0.2, 1.0, -1.0)
        parts.append((step, here, position[:, None], action, reward, chance, wish))
    return _frame(parts, episodes, length, "truncated")


@cache
def hidden_car_value(wanted: float, discount: float) -> float:
    """Mean discounted return over 1500 steps of many runs."""
    rng = np.random.default_rng(78)
    position, speed = rng.uniform(-0.6, -0.4, RUNS), np.zeros(RUNS)
    total, factor, alive = np.zeros(RUNS), 1.0, np.ones(RUNS, dtype=bool)
    for _ in range(1500):
        action = _pick(rng, mixed(_hidden_best(position, speed), wanted, 3))
        position, speed, there = _car_step(rng, position, speed, action)
        total += factor * alive * np.where(position > -0.2, 1.0, -1.0)
        alive &= ~there
        factor *= discount
    return float(total.mean())


# -- a linear system that a clock ends -------------------------------------------------------------


def clocked_system(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    """200 episodes of 10, 20 or 40 steps with logistic policies, and the value over these steps."""
    size, actions = int(rng.integers(1, 4)), int(rng.integers(2, 4))
    system, level = Linear.of(rng, size, actions), float(rng.choice([0.0, 1.0]))
    steps, discount = int(rng.choice([10, 20, 40])), float(rng.choice([0.9, 0.97, 0.99]))
    logged = 0.5 * rng.normal(size=(size, actions))
    wanted = logged + 0.5 * rng.normal(size=(size, actions))
    state, parts = rng.normal(size=(200, size)), []
    for step in range(steps):
        chance, wish = softmax(state @ logged), softmax(state @ wanted)
        action = _pick(rng, chance)
        ahead, reward = system.step(rng, state, action)
        parts.append((step, state, ahead, action, reward + level, chance, wish))
        state = ahead
    state, truth = rng.normal(size=(RUNS, size)), 0.0
    for step in range(steps):
        state, reward = system.step(rng, state, _pick(rng, softmax(state @ wanted)))
        truth += discount**step * (float(reward.mean()) + level)
    return _frame(parts, 200, np.full(200, steps), "terminated"), discount, truth


# -- control with a time limit ---------------------------------------------------------------------

LIMITS = (
    *(("cart-pole", 500), ("mountain car", 200), ("pendulum", 200)),
    *(("cart-pole", 100), ("mountain car", 100), ("pendulum", 50)),
)


def limited(name: str, steps: int, rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    """A log whose episodes end after so many steps, marked as terminated; the value over them."""
    seed = int(rng.integers(2**31))
    if name == "cart-pole":
        log, discount = cart_pole(150, seed), 0.99
    elif name == "mountain car":
        log, discount = mountain_car(100, seed), 0.99
    else:
        log, discount = pendulum(60, rng), 0.95
    log["step"] = log.groupby("episode").cumcount()
    log = log[log.step < steps].reset_index(drop=True)
    log["terminated"] |= log.step == steps - 1
    log["truncated"] = False
    return log, discount, _limited_value(name, steps, discount)


@cache
def _limited_value(name: str, steps: int, discount: float) -> float:
    if name == "cart-pole":
        return cart_pole_value(20_000, 0.05, discount, steps=steps)[0]
    if name == "pendulum":
        return pendulum_value(0.2, discount, steps)
    lengths = np.minimum(_car_lengths(), steps)
    return float(-np.mean((1.0 - discount**lengths) / (1.0 - discount)))


@cache
def _car_lengths() -> Any:
    """Steps to the goal of the target itself, in many runs."""
    log = domains.mountain_car(0.1, 0.1, discount=0.99, horizon=None).rollout(3_000_000, seed=79)
    return np.bincount(log.episode)[:-1]


# -- all of them -----------------------------------------------------------------------------------


@cache
def _pole_value(wanted: float, discount: float) -> float:
    return cart_pole_value(20_000, wanted, discount)[0]


@cache
def _car_value(wanted: float) -> float:
    return mountain_car_value(40_000, wanted)[0]


def make(name: str, rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    """Log, discount and truth."""
    seed = int(rng.integers(2**31))
    if name == "cart-pole":
        return cart_pole(150, seed), 0.99, _pole_value(0.05, 0.99)
    if name == "mountain car":
        return mountain_car(100, seed), 0.99, _car_value(0.1)
    if name == "pendulum":
        return pendulum(60, rng), 0.95, pendulum_value(0.2, 0.95)
    return hidden_car(100, rng), 0.99, hidden_car_value(0.4, 0.99)


NAMES = ("cart-pole", "mountain car", "pendulum", "noisy mountain car, velocity hidden")

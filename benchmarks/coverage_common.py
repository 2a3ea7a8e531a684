"""Logs whose true value is known, for the coverage studies."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from math import cos, sin
from typing import Any

import numpy as np
import pandas as pd
from numba import njit

from o2td import domains, exact

GAIN = np.array([0.0, 0.0, 0.2, 1.0])  # cart-pole controller: push right where x·GAIN > 0


def log_of(problem: Any, episodes: int, seed: Any) -> pd.DataFrame:
    """The first `episodes` complete episodes of a finite problem's behaviour."""
    rows = 64 * episodes
    while True:
        batch = problem.sample(rows, seed=seed)
        episode = np.cumsum(batch.start) - 1
        if episode[-1] >= episodes:
            break
        rows *= 2
    kept = episode < episodes
    return pd.DataFrame(
        {
            "episode": episode[kept],
            "state": batch.state[kept],
            "next_state": np.maximum(batch.next_state[kept], 0),
            "reward": batch.reward[kept],
            "terminated": batch.discount[kept] == 0.0,
            "rho": batch.rho[kept],
        }
    )


def start_value(problem: Any) -> float:
    """`E[V(s_0)]`, exact."""
    return float(problem.start @ exact.value(problem))


def mixed(env: str, behavior: float, target: float, discount: float, **options: Any) -> Any:
    """A Gymnasium table; policies take the best action with these probabilities, else a random one."""
    plain = domains.from_gymnasium(env, discount=discount, **options)
    even, best = plain.behavior, plain.target
    size = _states(env, options)  # the problem may have one more, for the ends of episodes

    def policy(share: float) -> Any:
        return (share * best + (1.0 - share) * even)[:size]

    return domains.from_gymnasium(
        env, behavior=policy(behavior), target=policy(target), discount=discount, **options
    )


def _states(env: str, options: dict[str, Any]) -> int:
    import gymnasium

    return int(gymnasium.make(env, **options).observation_space.n)


# -- cart-pole -------------------------------------------------------------------------------------


@njit(cache=True)
def _move(x: float, v: float, angle: float, turn: float, action: int) -> Any:
    """One Euler step of Gymnasium's CartPole-v1."""
    force = 10.0 if action == 1 else -10.0
    c, s = cos(angle), sin(angle)
    push = (force + 0.05 * turn * turn * s) / 1.1
    angular = (9.8 * s - c * push) / (0.5 * (4.0 / 3.0 - 0.1 * c * c / 1.1))
    x, v = x + 0.02 * v, v + 0.02 * (push - 0.05 * angular * c / 1.1)
    angle, turn = angle + 0.02 * turn, turn + 0.02 * angular
    limit = 12 * 2 * np.pi / 360
    return x, v, angle, turn, abs(x) > 2.4 or abs(angle) > limit


@njit(cache=True)
def _play(rng: Any, episodes: int, limit: int, gain: Any, epsilon: float, out: Any) -> int:
    """Rows of (episode, observation, action, greedy action, next observation, terminated)."""
    n = 0
    for e in range(episodes):
        x, v, a, w = rng.random(), rng.random(), rng.random(), rng.random()
        x, v, a, w = 0.1 * x - 0.05, 0.1 * v - 0.05, 0.1 * a - 0.05, 0.1 * w - 0.05
        for _ in range(limit):
            best = 1 if gain[0] * x + gain[1] * v + gain[2] * a + gain[3] * w > 0 else 0
            action = best
            if rng.random() < epsilon:
                action = 1 if rng.random() < 0.5 else 0
            row = out[n]
            row[0], row[1], row[2], row[3], row[4], row[5], row[6] = e, x, v, a, w, action, best
            x, v, a, w, fell = _move(x, v, a, w, action)
            row[7], row[8], row[9], row[10], row[11] = x, v, a, w, fell
            n += 1
            if fell:
                break
    return n


def cart_pole(episodes: int, seed: Any, logged: float = 0.3, wanted: float = 0.05) -> pd.DataFrame:
    """A log of the controller with a share `logged` of random pushes, truncated after 500 steps."""
    out = np.empty((500 * episodes, 12))
    n = _play(np.random.default_rng(seed), episodes, 500, GAIN, logged, out)
    out = out[:n]
    agree = out[:, 5] == out[:, 6]
    log = pd.DataFrame({"episode": out[:, 0].astype(int), "action": out[:, 5].astype(int)})
    for j in range(4):
        log[f"obs_{j}"], log[f"next_obs_{j}"] = out[:, 1 + j], out[:, 7 + j]
    log["reward"], log["terminated"] = 1.0, out[:, 11] > 0
    last = np.r_[out[1:, 0] != out[:-1, 0], True]
    log["truncated"] = last & ~log["terminated"]
    log["behavior_prob"] = (1 - logged) * agree + logged / 2
    log["target_prob"] = (1 - wanted) * agree + wanted / 2
    return log


def cart_pole_value(
    runs: int, wanted: float, discount: float, seed: int = 1, steps: int = 2000
) -> tuple[float, float]:
    """Mean discounted return of the controller over some steps, and its standard error."""
    out = np.empty((steps * 500, 12))
    total = []
    rng = np.random.default_rng(seed)
    while len(total) < runs:
        n = _play(rng, 500, steps, GAIN, wanted, out)
        length = np.bincount(out[:n, 0].astype(int))
        total += list((1 - discount**length) / (1 - discount))
    return float(np.mean(total)), float(np.std(total) / np.sqrt(len(total)))


# -- mountain car ----------------------------------------------------------------------------------


def mountain_car(
    episodes: int, seed: Any, logged: float = 0.3, wanted: float = 0.1
) -> pd.DataFrame:
    """A log of energy pumping with a share `logged` of random pushes; every episode reaches the goal."""
    problem = domains.mountain_car(wanted, logged, discount=0.99, horizon=None)
    rows = problem.rollout(300 * episodes, seed=seed)
    rows = rows.take(np.flatnonzero(rows.episode < episodes))
    log = pd.DataFrame({"episode": rows.episode, "action": rows.action, "reward": rows.reward})
    for j in range(2):
        log[f"obs_{j}"] = rows.observation[:, j]
        log[f"next_obs_{j}"] = rows.next_observation[:, j]
    log["terminated"], log["truncated"] = rows.terminated, False
    log["behavior_prob"], log["target_prob"] = rows.behavior_prob, rows.target_prob
    return log


def mountain_car_value(runs: int, wanted: float = 0.1) -> tuple[float, float]:
    """Mean discounted return of energy pumping from Gymnasium's starts, and its standard error."""
    problem = domains.mountain_car(wanted, 0.3, discount=0.99, horizon=None)
    starts = np.linspace(-0.6, -0.4, 1001)
    found = problem.rollout_value(
        np.column_stack([starts, np.zeros(1001)]), runs=max(runs // 1001, 2), seed=7
    )
    error = float(np.sqrt((found.standard_error**2).mean() / len(starts)))
    return float(found.mean.mean()), error


# -- studies ---------------------------------------------------------------------------------------


def arguments(text: str, sets: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    parser.add_argument("--sets", type=int, default=sets, help="data sets of each kind")
    parser.add_argument("--only", help="a part of the name of what to run")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--first", type=int, default=0, help="number of the first data set")
    return parser.parse_args()


def report(name: str, found: dict[str, Any], since: float, as_json: bool) -> None:
    found = {"study": name, **found, "seconds": round(time.time() - since, 1)}
    if as_json:
        print(json.dumps(found), flush=True)
        return
    shown = ", ".join(
        f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in found.items()
    )
    print(shown, flush=True)


def run_all(
    text: str, sets: int, cases: Iterable[str], study: Callable[[str, int, int], dict[str, Any]]
) -> None:
    """Run the studies named on the command line, each reported as soon as it is done."""
    given = arguments(text, sets)
    for case in cases:
        if given.only is None or given.only in case:
            begun = time.time()
            found = study(case, given.sets, given.first)
            report(case, {"sets": given.sets, **found}, begun, given.json)

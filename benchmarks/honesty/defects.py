"""Thirty-two ordinary defects of logs, each a change to a sound log or to how it was made.

A defect takes a random generator and returns the log as somebody would hand it over, the discount,
and the truth that its owner wants to know. Those in `UNSEEN` leave no trace in the log, so no test can
find them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.honesty.tables import Table, marked, pick, random_table

EPISODES = 400
Defect = Callable[[np.random.Generator], tuple[pd.DataFrame, float, float]]
DEFECTS: dict[str, Defect] = {}
UNSEEN = (
    *("worst tenth missing", "better half kept", "confounded"),
    *("ratios of a consistently wrong action", "rows missing in the middle"),
    *("rare large costs that the log never met",),
)


def defect(name: str) -> Callable[[Defect], Defect]:
    """Enter a defect in the table under this name."""

    def enter(make: Defect) -> Defect:
        DEFECTS[name] = make
        return make

    return enter


def sound(
    rng: np.random.Generator, episodes: int = EPISODES, **changes: Any
) -> tuple[pd.DataFrame, Table]:
    """A sound log of a random table, and the table."""
    task = replace(random_table(rng), **changes)
    return marked(task.sample(episodes, rng), "truncated"), task


def edited(change: Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]) -> Defect:
    """A defect that changes a sound log."""

    def make(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
        log, task = sound(rng)
        return change(log, rng), task.discount, task.value()

    return make


def kept(log: pd.DataFrame, episodes: Any) -> pd.DataFrame:
    """Keep only these episodes."""
    return log[log.episode.isin(episodes)].reset_index(drop=True)


def put(log: pd.DataFrame, **columns: Any) -> pd.DataFrame:
    """Replace some columns of the log."""
    return log.assign(**columns)


# -- what is in the wrong place --------------------------------------------------------------------

DEFECTS["rewards one row late"] = edited(
    lambda log, _: put(log, reward=log.groupby("episode").reward.shift(1).fillna(0.0))
)
DEFECTS["rewards one row early"] = edited(
    lambda log, _: put(log, reward=log.groupby("episode").reward.shift(-1).fillna(0.0))
)
DEFECTS["actions one row late"] = edited(
    lambda log, _: put(log, action=log.action.shift(1).fillna(0).astype(int))
)


@defect("next state of another row")
def _other_next(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    log, task = sound(rng)
    wrong = rng.random(len(log)) < 0.2
    ahead = np.where(wrong, rng.permutation(log.next_state), log.next_state)
    return put(log, next_state=ahead), task.discount, task.value()


@defect("steps out of order")
def _out_of_order(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    log, task = sound(rng)
    last = log.terminated.to_numpy()
    mixed = log.step + np.where(last, 0.0, rng.normal(scale=1.0, size=len(log)))
    mixed[last] = log.step[last] + 10.0
    log = log.assign(order=mixed).sort_values(["episode", "order"]).drop(columns="order")
    log["step"] = log.groupby("episode").cumcount()
    return log.drop(columns="next_state").reset_index(drop=True), task.discount, task.value()


@defect("columns of probabilities swapped")
def _swapped(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    log, task = sound(rng)
    names = [f"target_prob_{a}" for a in range(task.actions)]
    log[names] = log[names[1:] + names[:1]].to_numpy()
    return log, task.discount, task.value()


@defect("ratios of another row's action")
def _wrong_ratio(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    log, task = sound(rng)
    other = pick(rng, task.behavior[log.state])
    row = np.arange(len(log))
    log["target_prob"] = task.target[log.state][row, other]
    log["behavior_prob"] = task.behavior[log.state][row, other]
    log = log.drop(columns=[f"target_prob_{a}" for a in range(task.actions)])
    return log, task.discount, task.value()


@defect("ratios of a consistently wrong action")
def _wrong_action(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    log, task = sound(rng)
    other = (log.action.to_numpy() + 1) % task.actions
    row = np.arange(len(log))
    log["target_prob"] = task.target[log.state][row, other]
    log["behavior_prob"] = task.behavior[log.state][row, other]
    log = log.drop(columns=[f"target_prob_{a}" for a in range(task.actions)])
    return log, task.discount, task.value()


# -- what is missing -------------------------------------------------------------------------------


def _selected(share: float) -> Defect:
    """Keep only episodes whose return is above this quantile."""

    def make(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
        log, task = sound(rng, EPISODES if share < 0.5 else 2 * EPISODES)
        total = log.groupby("episode").reward.sum()
        return kept(log, total.index[total > total.quantile(share)]), task.discount, task.value()

    return make


DEFECTS["worst tenth missing"] = _selected(0.1)
DEFECTS["better half kept"] = _selected(0.5)


@defect("long episodes missing")
def _short(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    log, task = sound(rng, 2 * EPISODES)
    length = log.groupby("episode").step.max()
    return kept(log, length.index[length <= length.quantile(0.7)]), task.discount, task.value()


@defect("last rows of failures not logged")
def _failures(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    """Some ends cost a lot, and the process that writes the log dies with them."""
    task = random_table(rng)
    ending = int(np.flatnonzero(task.ends)[0])
    costly = rng.random(len(task.start)) < 0.5
    reward = task.reward.copy()
    reward[costly, :, ending] -= 5.0
    task = replace(task, reward=reward)
    log = marked(task.sample(EPISODES, rng), "truncated")
    lost = log.terminated & costly[log.state]
    log = log[~lost].reset_index(drop=True)
    last = log.episode.shift(-1) != log.episode
    log["truncated"] = last & ~log.terminated
    return log, task.discount, task.value()


@defect("rows missing in the middle")
def _gaps(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    log, task = sound(rng)
    stays = (rng.random(len(log)) > 0.15) | (log.step == 0) | log.terminated
    log = log[stays].drop(columns="next_state").reset_index(drop=True)
    log["step"] = log.groupby("episode").cumcount()
    return log, task.discount, task.value()


@defect("rewards missing, filled with 0")
def _zeroed(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    """The collector was broken for the last third of the log."""
    log, task = sound(rng)
    late = log.episode > 2 * EPISODES // 3
    return put(log, reward=log.reward.where(~late, 0.0)), task.discount, task.value()


# -- ends ------------------------------------------------------------------------------------------


@defect("truncation marked as termination")
def _cut(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    task = replace(random_table(rng), horizon=8)
    return marked(task.sample(EPISODES, rng), "terminated"), task.discount, task.value()


@defect("termination marked as truncation")
def _uncut(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    log, task = sound(rng)
    log = put(log, truncated=log.terminated, terminated=False)
    log["next_state"] = np.where(log.truncated, log.state, log.next_state)
    return log, task.discount, task.value()


@defect("rewards that depend on the time, fixed horizon")
def _timed(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    task = replace(random_table(rng), horizon=10)
    ending = task.ends
    transition = task.transition.copy()
    transition[:, :, ending] = 0.0
    transition[ending] = 1.0 / len(ending)
    transition /= transition.sum(axis=2, keepdims=True)
    task = replace(task, transition=transition, ends=np.zeros_like(ending))
    log = marked(task.sample(EPISODES, rng), "terminated")
    growth = 1.0 + 0.5 * np.arange(10)
    log["reward"] = log.reward * growth[log.step]
    return log, task.discount, _growing(task, growth)


def _growing(task: Table, growth: Any) -> float:
    policy = task.target[task.shown]
    chain = np.einsum("sa,sat->st", policy, task.transition)
    gain = np.einsum("sa,sat,sat->s", policy, task.transition, task.reward)
    ahead = np.zeros(len(gain))
    for factor in growth[::-1]:
        ahead = factor * gain + task.discount * chain @ ahead
    return float(task.start @ ahead)


# -- what changes along the log --------------------------------------------------------------------


def drifting(change: Callable[[Table, float, np.random.Generator], Table]) -> Defect:
    """Ten stretches of episodes, each from a task of its own; the truth is the last task's."""

    def make(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
        first, extra = random_table(rng), np.random.default_rng(int(rng.integers(2**32)))
        direction = int(extra.integers(2**32))
        parts = []
        for k in range(10):
            task = change(first, k / 9.0, np.random.default_rng(direction))
            part = task.sample(EPISODES // 10, rng)
            parts.append(part.assign(episode=part.episode + k * EPISODES // 10))
        return marked(pd.concat(parts, ignore_index=True), "truncated"), task.discount, task.value()

    return make


DEFECTS["rewards drift"] = drifting(
    lambda task, t, rng: replace(task, reward=task.reward + t * rng.choice([-1.0, 1.0]))
)
DEFECTS["transitions drift"] = drifting(
    lambda task, t, rng: replace(task, transition=_mixed(task, t, rng))
)


def _mixed(task: Table, t: float, rng: np.random.Generator) -> Any:
    order = np.append(rng.permutation(len(task.start) - 1), len(task.start) - 1)
    return (1.0 - t) * task.transition + t * task.transition[:, :, order]


@defect("behaviour drifts, old probabilities logged")
def _policy_drifts(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    task = random_table(rng)
    other = rng.dirichlet(np.ones(task.actions), size=len(task.start))
    parts = []
    for k in range(10):
        now = replace(
            task,
            behavior=(1 - k / 9) * task.behavior
            + k / 9 * (0.2 + 0.8 * other) / (0.2 * task.actions + 0.8),
        )
        part = now.sample(EPISODES // 10, rng)
        parts.append(part.assign(episode=part.episode + k * EPISODES // 10))
    log = marked(pd.concat(parts, ignore_index=True), "truncated")
    log["behavior_prob"] = task.behavior[log.state, log.action]
    return log, task.discount, task.value()


# -- what is not independent -----------------------------------------------------------------------


@defect("every episode twice")
def _twice(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    log, task = sound(rng, EPISODES // 2)
    again = log.assign(episode=log.episode + EPISODES)
    return pd.concat([log, again], ignore_index=True), task.discount, task.value()


def _users(named: bool) -> Defect:
    """Twenty users with twenty episodes each, whose rewards differ by user."""

    def make(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
        log, task = sound(rng)
        user = log.episode // 20
        log = put(log, reward=log.reward + rng.normal(size=20)[user])
        return put(log, user=user) if named else log, task.discount, task.value()

    return make


DEFECTS["twenty users, unnamed"] = _users(named=False)
DEFECTS["twenty users, named"] = _users(named=True)


# -- probabilities ---------------------------------------------------------------------------------


@defect("probabilities off by a temperature")
def _temperature(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    log, task = sound(rng)
    heat = float(rng.choice([0.7, 0.8, 1.2, 1.4]))
    warm = task.behavior ** (1.0 / heat)
    warm /= warm.sum(axis=1, keepdims=True)
    return put(log, behavior_prob=warm[log.state, log.action]), task.discount, task.value()


@defect("probabilities rounded to a tenth")
def _rounded(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    log, task = sound(rng)
    rounded = np.maximum(task.behavior.round(1), 0.1)
    return put(log, behavior_prob=rounded[log.state, log.action]), task.discount, task.value()


@defect("ratios clipped at 1.5")
def _clipped(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    log, task = sound(rng)
    log["rho"] = np.minimum(log.target_prob / log.behavior_prob, 1.5)
    gone = [name for name in log.columns if "_prob" in name]
    return log.drop(columns=gone), task.discount, task.value()


@defect("confounded")
def _confounded(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    """The actor saw something that is not in the log and that also affected the row's reward."""
    task = random_table(rng)
    tilt = task.behavior * np.array([3.0, *np.ones(task.actions - 1)])
    other = task.behavior * np.array([1.0 / 3.0, *np.ones(task.actions - 1)])
    tilt, other = (p / p.sum(axis=1, keepdims=True) for p in (tilt, other))
    parts = []
    for k, policy in enumerate((tilt, other)):
        part = replace(task, behavior=policy).sample(EPISODES // 2, rng)
        part["reward"] += 1.0 if k == 0 else -1.0
        parts.append(part.assign(episode=2 * part.episode + k))
    log = marked(pd.concat(parts, ignore_index=True), "truncated")
    log = log.sort_values(["episode", "step"], ignore_index=True)
    log["behavior_prob"] = ((tilt + other) / 2.0)[log.state, log.action]
    return log, task.discount, task.value()


# -- states, actions and tails ---------------------------------------------------------------------


@defect("states that look alike")
def _alike(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    task = random_table(rng)
    shown = np.arange(len(task.start)) // 2
    task = replace(task, shown=shown)
    return marked(task.sample(EPISODES, rng), "truncated"), task.discount, task.value()


@defect("an action never tried in some states")
def _untried(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    task = random_table(rng)
    where = rng.random(len(task.start)) < 0.4
    behavior = task.behavior.copy()
    behavior[where, 0] = 0.0
    behavior /= behavior.sum(axis=1, keepdims=True)
    task = replace(task, behavior=behavior)
    return marked(task.sample(EPISODES, rng), "truncated"), task.discount, task.value()


@defect("rewards with a heavy tail")
def _heavy(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
    log, task = sound(rng)
    shape = 1.1
    mean = 1.0 / (shape - 1.0)
    extra = 0.3 * (rng.pareto(shape, size=len(log)) - mean)
    return put(log, reward=log.reward + extra), task.discount, task.value()


def _rare(met: bool) -> Defect:
    """One step in a thousand costs 200, where the target goes; the log has met it, or never did."""

    def make(rng: np.random.Generator) -> tuple[pd.DataFrame, float, float]:
        log, task = sound(rng)
        liked, chance = task.target > 1.5 * task.behavior, 0.001
        could = liked[log.state, log.action]
        hit = np.zeros(len(log), dtype=bool)
        while met and could.any() and not hit.any():
            hit = could & (rng.random(len(log)) < chance)
        cost = np.where(liked, -200.0 * chance, 0.0)
        mean = replace(task, reward=task.reward + cost[:, :, None])
        return put(log, reward=log.reward - 200.0 * hit), task.discount, mean.value()

    return make


DEFECTS["rare large costs of the target's actions"] = _rare(met=True)
DEFECTS["rare large costs that the log never met"] = _rare(met=False)

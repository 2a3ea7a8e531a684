"""Do verdicts mean what they say? Verdicts against the truth over many kinds of synthetic logs.

    python -m benchmarks.coverage_words --sets 100

At least 90 % of all intervals called "trust" should cover the truth. The kinds, in turn: random tables
with one weight per state, and with one weight per two states; the same tables seen through
observations; a linear system with logistic policies, its behaviour logged or estimated; one-step
episodes; a target that takes an action that was never logged. Policies from even to peaked, discounts,
numbers of episodes, rare rewards, noise and endings are drawn for each. Then logs that cannot answer:
a behaviour that never does what the target does, and weights over a horizon of 200.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.coverage_common import arguments, report
from o2td import evaluation
from o2td.features import Aggregation

KINDS = ("table", "coarse", "seen", "linear", "estimated", "one step", "gap")
STEPS = 40  # an episode is cut after so many
RUNS = 40_000  # roll-outs for the truth of a linear system


@dataclass
class Case:
    """A log, the question, and the answer."""

    kind: str
    log: pd.DataFrame
    discount: float
    truth: float
    sort: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class Drawn:
    """What every kind draws first."""

    rng: np.random.Generator
    actions: int
    discount: float
    ending: float  # probability that a step is the last
    sharp: float
    episodes: int
    noise: float

    @classmethod
    def of(cls, seed: int) -> Drawn:
        rng = np.random.default_rng([seed, 78])
        return cls(
            rng,
            int(rng.integers(2, 5)),
            float(rng.choice([0.5, 0.9, 0.97])),
            float(rng.choice([0.0, 0.05, 0.2])),
            float(rng.choice([0.0, 1.0, 2.0])),
            int(rng.choice([20, 60, 200, 600])),
            float(rng.choice([0.0, 1.0])),
        )

    @property
    def sort(self) -> str:
        return f"{self.episodes} episodes, discount {self.discount:g}, sharp {self.sharp:g}"


def softmax(scores: Any) -> Any:
    """Probabilities along the last axis."""
    chance = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return chance / chance.sum(axis=-1, keepdims=True)


def pick(rng: np.random.Generator, chance: Any) -> Any:
    """One index per row of probabilities."""
    edges = np.cumsum(chance, axis=1)
    return np.minimum((rng.random((len(chance), 1)) > edges).sum(axis=1), chance.shape[1] - 1)


def make(seed: int) -> Case:
    """The case of this number."""
    kind, drawn = KINDS[seed % len(KINDS)], Drawn.of(seed)
    if kind in ("linear", "estimated"):
        return _linear(kind, drawn)
    return _table(kind, drawn)


# -- tables ----------------------------------------------------------------------------------------


def _table(kind: str, drawn: Drawn) -> Case:
    rng, actions = drawn.rng, drawn.actions
    states = int(rng.integers(3, 30))
    P = rng.dirichlet(np.full(states, 0.3), size=(states, actions))
    R = rng.normal(size=(states, actions)) * rng.choice([0.1, 1.0, 10.0])
    if rng.random() < 0.3:
        R = np.where(rng.random(R.shape) < 0.1, np.abs(R), 0.0)
    behavior = 0.8 * softmax(0.5 * rng.normal(size=(states, actions))) + 0.2 / actions
    target = softmax(drawn.sharp * rng.normal(size=(states, actions)))
    if kind == "gap":
        behavior[:, 0] = 0.0
        behavior /= behavior.sum(axis=1, keepdims=True)
    ending = 1.0 if kind == "one step" else drawn.ending
    start = rng.dirichlet(np.ones(states))
    chain = (1.0 - ending) * drawn.discount * np.einsum("sa,sat->st", target, P)
    value = np.linalg.solve(np.eye(states) - chain, (target * R).sum(axis=1))
    noise = drawn.noise * float(np.abs(R).mean())
    log = play(rng, P, R, behavior, target, start, ending, drawn.episodes, noise)
    case = Case(kind, log, drawn.discount, float(start @ value), f"{kind}, {drawn.sort}")
    if kind == "coarse":
        case.options["features"] = Aggregation(np.arange(states) // 2)
    if kind == "seen":
        place = rng.random((states, 2))
        for j in range(2):
            log[f"obs_{j}"] = place[log.state, j]
            log[f"next_obs_{j}"] = place[log.next_state, j]
        case.log = log.drop(columns=["state", "next_state"])
    return case


def play(
    rng: np.random.Generator,
    P: Any,
    R: Any,
    behavior: Any,
    target: Any,
    start: Any,
    ending: float,
    episodes: int,
    noise: float,
    steps: int = STEPS,
) -> pd.DataFrame:
    """Episodes of a table, all at once."""
    s = rng.choice(len(start), size=episodes, p=start)
    alive = np.ones(episodes, dtype=bool)
    parts = []
    for t in range(steps):
        a = pick(rng, behavior[s])
        after = pick(rng, P[s, a])
        ends = rng.random(episodes) < ending
        part = pd.DataFrame({"episode": np.arange(episodes), "step": t, "state": s, "action": a})
        part["next_state"], part["terminated"] = after, ends
        part["reward"] = R[s, a] + noise * rng.normal(size=episodes)
        part["truncated"] = (t == steps - 1) & ~ends
        part["rho"] = target[s, a] / behavior[s, a]
        parts.append(part[alive])
        alive &= ~ends
        s = after
    return in_order(parts)


def in_order(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Steps of all episodes as a log, one episode after another."""
    rows = pd.concat(parts).sort_values(["episode", "step"], kind="stable")
    return rows.reset_index(drop=True)


# -- a linear system -------------------------------------------------------------------------------


@dataclass
class Linear:
    """`x' = F x + G_a + noise`, reward `c·x - q |x|^2`, actions by `softmax(W x)`."""

    F: Any
    G: Any
    c: Any
    q: float

    @classmethod
    def of(cls, rng: np.random.Generator, size: int, actions: int) -> Linear:
        F = rng.normal(size=(size, size))
        F *= 0.9 / max(np.abs(np.linalg.eigvals(F)).max(), 1e-3)
        q = float(rng.choice([0.0, 0.2]))
        return cls(F, 0.7 * rng.normal(size=(actions, size)), rng.normal(size=size), q)

    def step(self, rng: np.random.Generator, x: Any, a: Any) -> tuple[Any, Any]:
        reward = x @ self.c - self.q * (x**2).sum(axis=1)
        return x @ self.F.T + self.G[a] + 0.2 * rng.normal(size=x.shape), reward

    def value(self, rng: np.random.Generator, W: Any, discount: float) -> float:
        """The value of `softmax(W x)` by roll-outs; an ending is a smaller discount."""
        x = rng.normal(size=(RUNS, self.F.shape[0]))
        total, left = 0.0, 1.0
        while left > 1e-4:
            x, reward = self.step(rng, x, pick(rng, softmax(x @ W)))
            total += left * float(reward.mean())
            left *= discount
        return total


def _linear(kind: str, drawn: Drawn) -> Case:
    rng, actions = drawn.rng, drawn.actions
    system = Linear.of(rng, int(rng.integers(1, 4)), actions)
    size = system.F.shape[0]
    logged = 0.5 * rng.normal(size=(size, actions))
    wanted = logged + 0.5 * drawn.sharp * rng.normal(size=(size, actions))
    x, alive = rng.normal(size=(drawn.episodes, size)), np.ones(drawn.episodes, dtype=bool)
    parts = []
    for t in range(STEPS):
        b, pi = softmax(x @ logged), softmax(x @ wanted)
        a = pick(rng, b)
        after, reward = system.step(rng, x, a)
        ends = rng.random(len(x)) < drawn.ending
        part = pd.DataFrame({"episode": np.arange(len(x)), "step": t, "action": a})
        for j in range(size):
            part[f"obs_{j}"], part[f"next_obs_{j}"] = x[:, j], after[:, j]
        part["reward"] = reward + drawn.noise * rng.normal(size=len(x))
        part["terminated"], part["truncated"] = ends, (t == STEPS - 1) & ~ends
        each = np.arange(len(x))
        part["behavior_prob"], part["target_prob"] = b[each, a], pi[each, a]
        parts.append(part[alive])
        alive &= ~ends
        x = after
    log = in_order(parts)
    if kind == "estimated":
        log = log.drop(columns="behavior_prob")
    truth = system.value(rng, wanted, (1.0 - drawn.ending) * drawn.discount)
    return Case(kind, log, drawn.discount, truth, f"{kind}, {drawn.sort}")


# -- studies ---------------------------------------------------------------------------------------


def study(sets: int, first: int = 0) -> dict[str, Any]:
    tally: dict[str, list[bool]] = {}
    missed = []
    for seed in range(first, first + sets):
        case = make(seed)
        answer = evaluation.evaluate(case.log, case.discount, seed=seed, **case.options)
        assert "NaN" not in answer.to_json()
        for row in answer.estimates:
            hit = row.covers(case.truth)
            tally.setdefault(f"all, {row.verdict}", []).append(hit)
            tally.setdefault(f"{row.method}, {row.verdict}", []).append(hit)
            if row is answer.recommended:
                tally.setdefault(f"recommended, {row.verdict}", []).append(hit)
                tally.setdefault(f"kind {case.kind}, {row.verdict}", []).append(hit)
            if row.verdict == "trust" and not hit:
                missed.append(f"{seed}: {row.method} ({case.sort})")
    found: dict[str, Any] = {
        name: {"covered": float(np.mean(hits)), "of": len(hits)}
        for name, hits in sorted(tally.items())
    }
    return {**found, "trusted and missed": missed}


def hopeless(sets: int) -> dict[str, Any]:
    """Behaviours that never do what the target does, and weights that explode."""
    never, exploded = [], []
    for seed in range(sets):
        case = make(len(KINDS) * seed)
        answer = evaluation.evaluate(case.log.assign(rho=0.0), case.discount, seed=seed)
        assert "NaN" not in answer.to_json()
        never.append(answer.verdict == "cannot answer")
        rng = np.random.default_rng([seed, 5])
        P = rng.dirichlet(np.ones(5), size=(5, 2))
        R = rng.normal(size=(5, 2))
        even, sharp = np.full((5, 2), 0.5), np.tile([0.95, 0.05], (5, 1))
        long = play(rng, P, R, even, sharp, np.full(5, 0.2), 0.0, 100, 0.0, steps=200)
        wide = evaluation.evaluate(long, 0.99, methods="lstd,is,wis,pdis,dr,wdr", seed=seed)
        assert "NaN" not in wide.to_json()
        told = wide.diagnostics["effective_sample_size"] < 10
        exploded.append(told and all(wide[m].verdict == "cannot answer" for m in ("is", "wis")))
    return {
        "never: cannot answer": float(np.mean(never)),
        "exploded: told": float(np.mean(exploded)),
    }


if __name__ == "__main__":
    given = arguments(__doc__ or "", 100)
    begun = time.time()
    report("words", {"sets": given.sets, **study(given.sets, given.first)}, begun, given.json)
    begun = time.time()
    few = max(given.sets // 5, 1)
    report("hopeless", {"sets": few, **hopeless(few)}, begun, given.json)

"""Do intervals of paired differences cover, and is the probability of being best calibrated?

    python -m benchmarks.compare_policies --sets 200 --purpose report --rows compare.ndjson

Four problems with a table: a random one, and three of Gymnasium's, the last one deterministic. In
each data set three target policies are drawn around the behaviour, the log is drawn, and all
differences among the three and to the policy that made the log are estimated. Truths are exact.
`settle` and `report` use different seeds. `--rows` keeps every data set in a file, from which another
run continues, and `--seconds` ends a run early. `--keep` writes the results to
`docs/data/compare.json`.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from o2td import domains, evaluation

KEPT = Path(__file__).resolve().parents[1] / "docs" / "data" / "compare.json"
FIRST = {"settle": 0, "report": 700_000}
NAMES = ("A", "B", "C")
BINS = np.array([0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0])


@dataclass(frozen=True, eq=False)
class Table:
    """A finite problem: transitions (S, A, S), rewards (S, A, S), starts (S,), ends (S,)."""

    transition: Any
    reward: Any
    start: Any
    ends: Any
    discount: float
    behavior: Any

    def value(self, policy: Any) -> float:
        """`E[V(s_0)]` of a policy, exact."""
        P = np.einsum("sa,sat->st", policy, self.transition)
        r = np.einsum("sa,sat,sat->s", policy, self.transition, self.reward)
        r, P = np.where(self.ends, 0.0, r), np.where(self.ends[:, None], 0.0, P)
        return float(self.start @ np.linalg.solve(np.eye(len(r)) - self.discount * P, r))

    def log(self, episodes: int, seed: Any, longest: int = 2000) -> pd.DataFrame:
        """Whole episodes of the behaviour."""
        rng = np.random.default_rng(seed)
        state = _draw(np.tile(self.start, (episodes, 1)), rng)
        alive = np.flatnonzero(~self.ends[state])
        parts = []
        for step in range(longest):
            here = state[alive]
            action = _draw(self.behavior[here], rng)
            after = _draw(self.transition[here, action], rng)
            parts.append(
                {
                    "episode": alive,
                    "step": np.full(len(alive), step),
                    "state": here,
                    "action": action,
                    "reward": self.reward[here, action, after],
                    "terminated": self.ends[after],
                    "next_state": after,
                    "behavior_prob": self.behavior[here, action],
                }
            )
            state[alive] = after
            alive = alive[~self.ends[after]]
            if not len(alive):
                break
        frame = pd.concat([pd.DataFrame(part) for part in parts])
        frame = frame.sort_values(["episode", "step"], kind="stable").reset_index(drop=True)
        last = frame.episode.to_numpy() != np.append(frame.episode.to_numpy()[1:], -1)
        frame["truncated"] = last & ~frame.terminated
        return frame


def _draw(chances: Any, rng: np.random.Generator) -> Any:
    total = np.cumsum(chances, axis=1)
    total /= total[:, -1:]
    return (rng.random(len(chances))[:, None] > total).sum(axis=1)


def near(policy: Any, rng: np.random.Generator, far: float) -> Any:
    """A policy near another: its probabilities, raised and lowered at random."""
    raised = policy * np.exp(far * rng.standard_normal(policy.shape))
    return raised / raised.sum(axis=1, keepdims=True)


def random_table(states: int = 15, actions: int = 3) -> Table:
    """Few successors per action, rewards by state and action, episodes of about twelve steps."""
    rng = np.random.default_rng(20)
    P = np.zeros((states, actions, states))
    for s in range(states):
        for a in range(actions):
            P[s, a, rng.choice(states - 1, 3, replace=False)] = rng.dirichlet(np.ones(3))
    P[:, :, -1] = 0.08
    P /= P.sum(axis=2, keepdims=True)
    R = np.repeat(rng.standard_normal((states, actions))[:, :, None], states, axis=2)
    ends = np.arange(states) == states - 1
    start = np.where(ends, 0.0, 1.0)
    behavior = rng.dirichlet(3.0 * np.ones(actions), states)
    return Table(P, R, start / start.sum(), ends, 0.97, behavior)


def gymnasium_table(name: str, share: float, discount: float, **options: Any) -> Table:
    """One of Gymnasium's tables; the behaviour takes the best action with probability `share`."""
    import gymnasium

    made = gymnasium.make(name, **options).unwrapped
    states, actions = int(made.observation_space.n), int(made.action_space.n)
    P = np.zeros((states + 1, actions, states + 1))
    R = np.zeros_like(P)
    P[states, :, states] = 1.0
    for s in range(states):
        for a in range(actions):
            for chance, after, reward, ends in made.P[s][a]:
                to = states if ends else after
                P[s, a, to] += chance
                R[s, a, to] += chance * reward
    R = np.divide(R, P, out=np.zeros_like(R), where=P > 0.0)
    start = np.append(made.initial_state_distrib, 0.0)
    best = domains.from_gymnasium(name, discount=discount, **options).target[:states]
    best = np.vstack([best, np.full((1, actions), 1.0 / actions)])
    behavior = share * best + (1.0 - share) / actions
    ends = np.arange(states + 1) == states
    return Table(P, R, start, ends, discount, behavior)


# name: the table, episodes, and how far targets are from the behaviour
PROBLEMS: dict[str, tuple[Any, int, float]] = {
    "random table": (random_table, 300, 0.5),
    "FrozenLake 4x4": (
        lambda: gymnasium_table("FrozenLake-v1", 0.5, 0.99, map_name="4x4"),
        400,
        0.5,
    ),
    "CliffWalking, slippery": (
        lambda: gymnasium_table("CliffWalking-v1", 0.9, 0.95, is_slippery=True),
        100,
        0.4,
    ),
    "CliffWalking": (lambda: gymnasium_table("CliffWalking-v1", 0.7, 0.95), 200, 0.4),
}


def one_set(table: Table, episodes: int, far: float, seed: int) -> dict[str, Any]:
    """One log and three policies: the answers, and the truth."""
    rng = np.random.default_rng([seed, 7])
    policies = {name: near(table.behavior, rng, far) for name in NAMES}
    truth = {name: table.value(policy) for name, policy in policies.items()}
    truth["logged"] = table.value(table.behavior)
    log = table.log(episodes, [seed, 8])
    both = evaluation.compare(log, discount=table.discount, policies=policies, seed=seed)
    rows = []
    for of, over in combinations([*NAMES, "logged"], 2):
        found, true = both.difference(of, over), truth[of] - truth[over]
        row = {key: float("nan") if one is None else one for key, one in vars(found).items()}
        rows.append(
            {
                "covers": found.covers(true),
                "widened": found.covers(true, widened=True),
                "joint": row["joint_low"] <= true <= row["joint_high"],
                "width": row["high"] - row["low"],
                "unpaired": 2.0 * 1.96 * row["unpaired_error"],
                "error": row["value"] - true,
                "verdict": found.verdict,
                "above": found.probability,
                "is_above": true > 0.0,
                "logged": over == "logged",
            }
        )
    chances = {one.name: one.best for one in both.policies}
    chances["logged"] = both.logged["probability_best"]
    best = max(truth, key=lambda name: truth[name])
    return {
        "method": both.method,
        "rows": rows,
        "best": [[chances[name], name == best] for name in truth],
    }


def run(name: str, seeds: range, file: Path | None, until: float) -> list[dict[str, Any]]:
    """The data sets of one problem; those already in the file are read."""
    make, episodes, far = PROBLEMS[name]
    table = make()
    lines = file.read_text("utf-8").splitlines() if file is not None and file.exists() else []
    kept = [json.loads(line) for line in lines]
    found = {one["seed"]: one for one in kept if one["problem"] == name and one["seed"] in seeds}
    for seed in seeds:
        if seed in found or time.monotonic() > until:
            continue
        found[seed] = {"problem": name, "seed": seed, **one_set(table, episodes, far, seed)}
        if file is not None:
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(found[seed], default=lambda one: one.item()) + "\n")
    return [found[seed] for seed in seeds if seed in found]


def summary(name: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    """Summarise the data sets of one problem."""
    rows = [row for one in found for row in one["rows"]]
    plain = [row for row in rows if not row["logged"]]
    methods = sorted({one["method"] for one in found})
    return {
        "sets": len(found),
        "episodes": PROBLEMS[name][1],
        "covers": float(np.mean([row["covers"] for row in plain])),
        "covers_logged": float(np.mean([row["covers"] for row in rows if row["logged"]])),
        "widened": float(np.mean([row["widened"] for row in rows])),
        "joint": float(np.mean([all(row["joint"] for row in one["rows"]) for one in found])),
        "width": _ratio(plain),
        "width_logged": _ratio([row for row in rows if row["logged"]]),
        "trust": float(np.mean([row["verdict"] == "trust" for row in rows])),
        "methods": {m: sum(one["method"] == m for one in found) for m in methods},
        "best": [pair for one in found for pair in one["best"]],
        "above": [[row["above"], row["is_above"]] for row in rows],
    }


def _ratio(rows: list[dict[str, Any]]) -> float:
    return float(np.mean([r["width"] for r in rows]) / np.mean([r["unpaired"] for r in rows]))


def calibration(pairs: list[list[Any]]) -> list[dict[str, Any]]:
    """By bins of the stated probability: how often it was true."""
    said = np.array([one for one, _ in pairs if one is not None], dtype=float)
    true = np.array([two for one, two in pairs if one is not None], dtype=float)
    place = np.clip(np.digitize(said, BINS) - 1, 0, len(BINS) - 2)
    return [
        {
            "low": float(BINS[k]),
            "high": float(BINS[k + 1]),
            "said": float(said[place == k].mean()),
            "true": float(true[place == k].mean()),
            "chance": _chance(said[place == k]),
            "count": int((place == k).sum()),
        }
        for k in range(len(BINS) - 1)
        if (place == k).any()
    ]


def _chance(said: Any) -> float:
    """Standard error of the share that came true if all stated probabilities are right."""
    return float(np.sqrt((said * (1.0 - said)).sum()) / len(said))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--purpose", choices=sorted(FIRST), default="settle")
    parser.add_argument("--problem", choices=sorted(PROBLEMS))
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    first = FIRST[given.purpose]
    seeds, until = range(first, first + given.sets), time.monotonic() + given.seconds
    problems, best, above = {}, [], []
    for name in [given.problem] if given.problem else PROBLEMS:
        begun = time.process_time()
        sets = run(name, seeds, given.rows, until)
        if not sets:
            continue
        found = summary(name, sets)
        best += found["best"]
        found["best"] = calibration(found["best"])
        above += found.pop("above")
        problems[name] = found
        print(name, json.dumps(found), f"{time.process_time() - begun:.0f} s", flush=True)
    whole = {
        "problems": problems,
        "best": calibration(best),
        "above": calibration(above),
    }
    for kind in ("best", "above"):
        print(kind, *(json.dumps(row) for row in whole[kind]), sep="\n  ")
    if given.keep:
        KEPT.write_text(json.dumps(whole, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()

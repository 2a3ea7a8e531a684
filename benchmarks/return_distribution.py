"""Do intervals of quantiles and of the mean of the worst tenth cover?

    python -m benchmarks.return_distribution --sets 200 --purpose report

A log of single decisions and one of three steps, with noisy rewards; the truth comes from two million
returns of the target. `hopeless` has thirty steps, whose weights cannot estimate a tail: it must be
refused. `settle` and `report` use different seeds; `--keep` writes `docs/data/returns.json`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from o2td import evaluation

KEPT = Path(__file__).resolve().parents[1] / "docs" / "data" / "returns.json"
FIRST = {"settle": 0, "report": 300_000}
BEHAVIOR, TARGET = np.array([0.4, 0.4, 0.2]), np.array([0.2, 0.3, 0.5])
PAYS, NOISE = np.array([0.0, 1.0, 0.5]), np.array([0.5, 0.8, 2.0])
CASES = {"single decisions": (1, 1000), "three steps": (3, 1000), "hopeless": (30, 500)}
LEVELS = (0.1, 0.5, 0.9)
SHARE = 0.1


def play(policy: Any, episodes: int, steps: int, rng: np.random.Generator) -> tuple[Any, ...]:
    """Actions and rewards; the state is the sum of the actions so far, and raises the rewards."""
    action = rng.choice(3, size=(episodes, steps), p=policy)
    state = np.minimum(np.cumsum(action, axis=1) - action, 3)
    reward = PAYS[action] * (1.0 + 0.3 * state)
    return state, action, reward + NOISE[action] * rng.standard_normal(action.shape)


def log_of(steps: int, episodes: int, seed: Any) -> pd.DataFrame:
    state, action, reward = play(BEHAVIOR, episodes, steps, np.random.default_rng(seed))
    return pd.DataFrame(
        {
            "episode": np.repeat(np.arange(episodes), steps),
            "step": np.tile(np.arange(steps), episodes),
            "state": state.ravel(),
            "action": action.ravel(),
            "reward": reward.ravel(),
            "terminated": np.tile(np.arange(steps) == steps - 1, episodes),
            "behavior_prob": BEHAVIOR[action.ravel()],
            "target_prob": TARGET[action.ravel()],
        }
    )


def truths(steps: int) -> list[float]:
    total = 2_000_000 // steps
    returns = play(TARGET, total, steps, np.random.default_rng(1))[2].sum(axis=1)
    tail = np.sort(returns)[: int(SHARE * total)]
    return [*(float(np.quantile(returns, level)) for level in LEVELS), float(tail.mean())]


def study(name: str, sets: int, first: int) -> dict[str, Any]:
    steps, episodes = CASES[name]
    truth = truths(steps)
    hits: list[list[bool]] = [[] for _ in truth]
    words = []
    for seed in range(first, first + sets):
        log = log_of(steps, episodes, [seed, 5])
        answer = evaluation.evaluate(log, discount=1.0, methods="lstd", seed=seed)
        for place, found in enumerate(answer.returns(quantiles=LEVELS, cvar=SHARE)):
            words.append(found.verdict)
            if found.low is not None and found.high is not None:
                hits[place].append(found.low <= truth[place] <= found.high)
    named = [*(f"quantile {level:g}" for level in LEVELS), f"worst {SHARE:.0%}"]
    return {
        "sets": sets,
        "episodes": episodes,
        "refused": words.count("cannot answer") / len(words),
        "covers": {
            key: float(np.mean(some)) for key, some in zip(named, hits, strict=True) if some
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--purpose", choices=sorted(FIRST), default="settle")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    whole = {}
    for name in CASES:
        whole[name] = study(name, given.sets, FIRST[given.purpose])
        print(name, json.dumps(whole[name]), flush=True)
    if given.keep:
        KEPT.write_text(json.dumps(whole, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()

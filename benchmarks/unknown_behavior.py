"""What does not knowing the behaviour cost, and do intervals still cover?

    python -m benchmarks.unknown_behavior --sets 100 --purpose report --rows behavior.ndjson

Two problems of 150 episodes: a random table whose behaviour is estimated by frequencies, and two
observations with a logistic behaviour. Each log is evaluated three times: with the true
probabilities, with those of models that never saw the episode ("held out", the rule for few rows),
and with those of one model of all rows. `settle` and `report` use different seeds; `--rows` keeps
every data set in a file, from which another run continues; `--keep` writes
`docs/data/unknown_behavior.json`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.compare_policies import near, random_table
from o2td import evaluation
from o2td.sources import behavior

KEPT = Path(__file__).resolve().parents[1] / "docs" / "data" / "unknown_behavior.json"
FIRST = {
    "settle": {"random table": 0, "two observations": 0},
    "report": {"random table": 1000, "two observations": 2000},
}
METHODS = ["lstd", "wpdis", "pdis", "dr", "wdr"]
SHOWN = ("recommended", "wpdis", "wdr")
ARMS = {"known": None, "held out": 10**12, "all rows": behavior._PER_WEIGHT}
EPISODES, STEPS, DISCOUNT, RIGHT = 150, 5, 0.95, 0.7


def drift(seed: Any) -> pd.DataFrame:
    """Two observations that drift; the behaviour is logistic in both, the target pushes right."""
    rng, rows = np.random.default_rng(seed), []
    for episode in range(EPISODES):
        x = rng.normal(size=2)
        for step in range(STEPS):
            right = 1.0 / (1.0 + np.exp(-(0.8 * x[0] - 0.5 * x[1])))
            a = int(rng.random() < right)
            reward = x[0] + 0.5 * a + 0.3 * rng.normal()
            chances = (right if a else 1.0 - right, RIGHT if a else 1.0 - RIGHT, 1.0 - RIGHT, RIGHT)
            rows.append((episode, step, *x, a, reward, step == STEPS - 1, *chances))
            push = np.array([0.7 * x[0] + 0.2 * x[1] + (0.4 if a else -0.4), 0.8 * x[1]])
            x = push + 0.3 * rng.normal(size=2)
    names = ["episode", "step", "obs_0", "obs_1", "action", "reward", "terminated"]
    names += ["behavior_prob", "target_prob", "target_prob_0", "target_prob_1"]
    return pd.DataFrame(rows, columns=names)


def drift_value() -> float:
    """The target's value, exact because mean observations are linear in the previous ones."""
    mean, value = np.zeros(2), 0.0
    for step in range(STEPS):
        value += DISCOUNT**step * (mean[0] + 0.5 * RIGHT)
        push = 0.4 * (2.0 * RIGHT - 1.0)
        mean = np.array([0.7 * mean[0] + 0.2 * mean[1] + push, 0.8 * mean[1]])
    return float(value)


def one_set(name: str, seed: int) -> dict[str, Any]:
    """The answer for one log, and the truth."""
    if name == "random table":
        table = random_table()
        policy = near(table.behavior, np.random.default_rng([seed, 77]), 0.7)
        log, truth = table.log(EPISODES, [seed, 78]), table.value(policy)
        asked = {"discount": table.discount, "target": policy}
    else:
        log, truth = drift([seed, 79]), drift_value()
        asked = {"discount": DISCOUNT, "horizon": STEPS, "features": "polynomial:2"}
    found: dict[str, Any] = {"truth": truth}
    for arm, rows in ARMS.items():
        given = log if rows is None else log.drop(columns="behavior_prob")
        behavior._PER_WEIGHT = rows or behavior._PER_WEIGHT
        answer = evaluation.evaluate(given, methods=METHODS, seed=seed, **asked)
        listed = {one.method: one for one in answer.estimates}
        listed["recommended"] = answer.recommended
        found[arm] = {method: [one.value, one.low, one.high] for method, one in listed.items()}
    return found


def summary(sets: list[dict[str, Any]]) -> dict[str, Any]:
    """Error and coverage of each estimator, by where the probabilities came from."""
    truth = np.array([one["truth"] for one in sets])
    found: dict[str, Any] = {"sets": len(sets), "episodes": EPISODES}
    for arm in ARMS:
        found[arm] = {}
        for method in ("recommended", *METHODS):
            value, low, high = np.array([one[arm][method] for one in sets], dtype=float).T
            found[arm][method] = {
                "rmse": float(np.sqrt(np.square(value - truth).mean())),
                "covers": float(((low <= truth) & (truth <= high)).mean()),
                "half_width": float((high - low).mean() / 2.0),
            }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--purpose", choices=sorted(FIRST), default="settle")
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    lines = given.rows.read_text("utf-8").splitlines() if given.rows.exists() else []
    done = {(one["problem"], one["seed"]): one for one in map(json.loads, lines)}
    whole = {}
    for name, first in FIRST[given.purpose].items():
        for seed in range(first, first + given.sets):
            if (name, seed) not in done:
                done[name, seed] = {"problem": name, "seed": seed, **one_set(name, seed)}
                with given.rows.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(done[name, seed]) + "\n")
        whole[name] = summary([done[name, seed] for seed in range(first, first + given.sets)])
        print(name, json.dumps(whole[name]), flush=True)
    if given.keep:
        KEPT.write_text(json.dumps(whole, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()

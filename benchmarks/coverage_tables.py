"""Do the 95 % intervals of LSTD and the plug-in optimum cover, where the truth is a table?

    python -m benchmarks.coverage_tables --sets 200

Gymnasium's own tables give the truth. Policies take the best action with the stated probability, else
a random one; features are tabular. Also shown: the closed-form sandwich and the plain percentiles of
the same lanes, which undercover where rewards are rare, and weighted per-decision importance
sampling.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.coverage_common import log_of, mixed, run_all, start_value
from o2td import evaluation
from o2td.evaluation.episodes import Log
from o2td.evaluation.plan import run_passes
from o2td.evaluation.study import Settings, Study

# name: environment, share of the best action in behaviour and target, discount, episodes, options
CASES: dict[str, tuple[Any, ...]] = {
    "FrozenLake 4x4": ("FrozenLake-v1", 0.5, 0.9, 0.99, 300, {"map_name": "4x4"}),
    "FrozenLake 8x8": ("FrozenLake-v1", 0.5, 0.9, 0.99, 500, {"map_name": "8x8"}),
    "FrozenLake 8x8, rare": ("FrozenLake-v1", 0.0, 0.3, 0.99, 1500, {"map_name": "8x8"}),
    "CliffWalking": ("CliffWalking-v1", 0.7, 0.9, 0.99, 300, {}),
    "Taxi": ("Taxi-v4", 0.5, 0.8, 0.99, 2000, {}),
}


def study(name: str, sets: int, first: int = 0) -> dict[str, Any]:
    env, behavior, target, discount, episodes, options = CASES[name]
    problem = mixed(env, behavior, target, discount, **options)
    truth = start_value(problem)
    covered: dict[str, list[bool]] = {}
    values, words, rewarded = [], [], []
    for k in range(first, first + sets):
        log = log_of(problem, episodes, [k, 11])
        answer = evaluation.evaluate(
            log, discount=discount, methods=["lstd", "plugin", "wpdis"], seed=k
        )
        for method in ("lstd", "plugin", "wpdis"):
            covered.setdefault(method, []).append(answer[method].covers(truth))
        for plain, ends in others(log, discount, k).items():
            covered.setdefault(plain, []).append(ends[0] <= truth <= ends[1])
        values.append(answer["lstd"].value)
        words.append(answer["lstd"].verdict)
        rewarded.append(int((log.reward > 0).sum()))
    error = np.array(values) - truth
    return {
        "truth": truth,
        "rmse": float(np.sqrt((error**2).mean())),
        "bias": float(error.mean()),
        "rewards a set": float(np.mean(rewarded)),
        "trust": words.count("trust") / len(words),
        **{f"covers {method}": float(np.mean(hits)) for method, hits in covered.items()},
    }


def others(log: Any, discount: float, seed: int) -> dict[str, tuple[float, float]]:
    """The simpler intervals from the same fit."""
    from o2td.evaluation.bootstrap import sandwich
    from o2td.sources import open_logs

    held = Log(open_logs(log, discount=discount))
    study = Study(held, Settings(seed=seed))
    run_passes(held, [study.collect(["lstd"])])
    found = study.cases()[0].outcome
    plain = sandwich(found.value, found.influence, 0.95)
    low, high = np.quantile(found.lanes, [0.025, 0.975])
    return {"sandwich": (plain.low, plain.high), "percentile": (float(low), float(high))}


if __name__ == "__main__":
    run_all(__doc__ or "", 200, CASES, study)

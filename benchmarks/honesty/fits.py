"""Would `LSTD(trace="auto")` beat a fixed trace on the features that `evaluate` chooses?

    python -m benchmarks.honesty.fits --sets 8

prints, for mountain car and cart-pole as in the coverage studies, the root mean squared error of the
value at the start by trace and basis, and stores it in `docs/data/honesty.json` with `--keep`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.coverage_common import cart_pole, cart_pole_value, mountain_car, mountain_car_value
from benchmarks.honesty.record import KEPT
from o2td import LSTD, Transitions
from o2td.features import Fourier

GAMMA, RIDGE, SEED = 0.99, 1e-5, 71
TRACES: tuple[Any, ...] = (0.0, 0.8, "auto")
TASKS: dict[str, tuple[Any, int, dict[str, dict[str, Any]]]] = {
    "mountain car": (
        mountain_car,
        200,
        {
            "Fourier, order 5": {"order": 5, "coupled": True},
            "Fourier, order 7": {"order": 7, "coupled": True},
        },
    ),
    "cart-pole": (
        cart_pole,
        300,
        {
            "Fourier, order 2": {"order": 2, "coupled": True},
            "Fourier in pairs, order 4": {"order": 4, "coupled": 2},
        },
    ),
}


def truth_of(task: str) -> float:
    """The target's value, by roll-outs."""
    if task == "cart-pole":
        return cart_pole_value(40_000, 0.05, GAMMA)[0]
    return mountain_car_value(200_000)[0]


def values(log: pd.DataFrame, features: dict[str, Any]) -> Iterator[float]:
    """The value at the start for each trace."""
    names = [name for name in log if str(name).startswith("obs_")]
    here, ahead = log[names].to_numpy(), log[[f"next_{name}" for name in names]].to_numpy()
    bounds = np.column_stack([here.min(axis=0), here.max(axis=0)])
    basis = Fourier(bounds=bounds, **features).fit()
    start = ~log.duplicated("episode").to_numpy()
    rho = (log.target_prob / log.behavior_prob).to_numpy()
    discount = np.where(log.terminated, 0.0, GAMMA)
    phi, later = (np.asarray(basis.transform(x)) for x in (here, ahead))
    rows = Transitions(phi, log.reward, later, discount=discount, rho=rho, start=start)
    scale = float(
        np.abs((rho[:, None] * phi * (phi - discount[:, None] * later)).sum(axis=0)).mean()
    )
    for trace in TRACES:
        theta = LSTD(trace=trace, ridge=RIDGE * scale).fit(rows).theta
        yield float(phi[start].mean(axis=0) @ theta)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sets", type=int, default=8, help="logs of each task")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    rows = []
    for task, (make, episodes, bases) in TASKS.items():
        truth = truth_of(task)
        logs = [make(episodes, [seed, SEED]) for seed in range(given.sets)]
        for name, features in bases.items():
            off = np.array([list(values(log, features)) for log in logs]) - truth
            errors = np.sqrt(np.square(off).mean(axis=0))
            rows.append({"task": task, "features": name, "errors": errors.tolist()})
            print(task, name, dict(zip(map(str, TRACES), errors.round(2), strict=True)))
    if given.keep:
        found = json.loads(KEPT.read_text("utf-8"))
        found["fits"] = {"sets": given.sets, "traces": list(TRACES), "rows": rows}
        KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Which fit on chosen features? Errors of the candidates on continuous tasks.

    python -m benchmarks.honesty.fits --sets 8
    python -m benchmarks.honesty.fits --sets 8 --chosen
    python -m benchmarks.honesty.fits --sets 8 --auto

The first prints, for mountain car and cart-pole as in the coverage studies, the root mean squared error
of the value at the start by basis and trace, with `LSTD(trace="auto")` among them. The second prints
it for the fits of `evaluate` on the features that it chooses, and for the one that it recommends;
errors on linear systems, each log from another one, are in standard deviations of a logged return. The
third does so for `lstd`, whose panel has fixed traces, and `lstd_auto`, which chooses one for each
basis, and counts the truths in their intervals, widened by the stated approximation errors.
`--keep` stores any of them in `docs/data/honesty.json`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.coverage_common import cart_pole, cart_pole_value, mountain_car, mountain_car_value
from benchmarks.coverage_words import Linear, in_order, pick, softmax
from benchmarks.honesty.cells import CELLS, PURPOSES
from benchmarks.honesty.record import KEPT
from benchmarks.honesty.run import covers
from o2td import LSTD, Transitions, evaluation
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


FITS = ("lstd", "lstdq", "lsetd")
AUTO = ("lstd", "lstd_auto")
SYSTEMS = "linear systems"
CONTROL = ("cart-pole", "mountain car", "pendulum", SYSTEMS)


def linear_system(seed: Any, steps: int = 60) -> tuple[pd.DataFrame, float, float]:
    """100 truncated episodes of a linear system, its discount, and the truth."""
    rng = np.random.default_rng(seed)
    size, actions = int(rng.integers(1, 4)), int(rng.integers(2, 4))
    system, discount = Linear.of(rng, size, actions), float(rng.choice([0.9, 0.95]))
    logged = 0.5 * rng.normal(size=(size, actions))
    wanted = logged + 0.5 * rng.normal(size=(size, actions))
    x, each, parts = rng.normal(size=(100, size)), np.arange(100), []
    for step in range(steps):
        chance, wish = softmax(x @ logged), softmax(x @ wanted)
        action = pick(rng, chance)
        after, reward = system.step(rng, x, action)
        part = pd.DataFrame({"episode": each, "step": step, "action": action, "reward": reward})
        for j in range(size):
            part[f"obs_{j}"], part[f"next_obs_{j}"] = x[:, j], after[:, j]
        for a in range(actions):
            part[f"target_prob_{a}"] = wish[:, a]
        part["behavior_prob"] = chance[each, action]
        part["terminated"], part["truncated"] = False, step == steps - 1
        parts.append(part)
        x = after
    return in_order(parts), discount, system.value(rng, wanted, discount)


def answers(
    task: str, purpose: str, number: int, methods: tuple[str, ...]
) -> dict[str, tuple[float, bool]]:
    """Errors of fits on features that `evaluate` chooses for one log, and whether they are covered."""
    scale = 1.0
    if task == SYSTEMS:
        log, discount, truth = linear_system([number, PURPOSES.index(purpose), SEED])
        returns = (log.reward * discount**log.step).groupby(log.episode).sum()
        scale = float(returns.std())
    else:
        log, discount, truth = CELLS[task].log(purpose, number)
    answer = evaluation.evaluate(log, discount, methods=methods, seed=number)
    found = {name: answer[name] for name in methods} | {"recommended": answer.recommended}
    return {
        name: ((np.nan if one.value is None else one.value - truth) / scale, covers(one, truth))
        for name, one in found.items()
    }


def compared(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Root mean squared errors of all of them, by task, and how many truths their intervals cover."""
    rows = []
    for task in CONTROL:
        if given.only not in task:
            continue
        every: list[dict[str, tuple[float, bool]]] = []
        for number in range(given.first, given.first + given.sets):
            every.append(answers(task, given.purpose, number, AUTO if given.auto else FITS))
            print(task, number, {k: round(off, 3) for k, (off, _) in every[-1].items()}, flush=True)
        off = {name: np.array([one[name][0] for one in every]) for name in every[0]}
        some = [name for name in off if np.isfinite(off[name]).all()]  # LSTDQ needs probabilities
        errors = {name: float(np.sqrt(np.square(off[name]).mean())) for name in some}
        covered = {name: sum(one[name][1] for one in every) for name in some}
        rows.append({"task": task, "sets": len(every), "errors": errors, "covered": covered})
        print(rows[-1], flush=True)
    return rows


def keep(name: str, found: Any) -> None:
    """Store what was found under this name."""
    kept = json.loads(KEPT.read_text("utf-8"))
    if name == "auto":  # tasks run one at a time
        new = [row["task"] for row in found]
        found = [row for row in kept.get(name, []) if row["task"] not in new] + found
    kept[name] = found
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sets", type=int, default=8, help="logs of each task")
    parser.add_argument(
        "--chosen", action="store_true", help="on the features that evaluate chooses"
    )
    parser.add_argument("--auto", action="store_true", help="traces chosen, against fixed ones")
    parser.add_argument(
        "--purpose", choices=PURPOSES, default=PURPOSES[-1], help="with --chosen or --auto"
    )
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first log, with --chosen or --auto"
    )
    parser.add_argument(
        "--only", default="", help="a part of the task's name, with --chosen or --auto"
    )
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    if given.chosen or given.auto:
        found = compared(given)
        if given.keep:
            keep("auto" if given.auto else "chosen", found)
        return
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
        keep("fits", {"sets": given.sets, "traces": list(TRACES), "rows": rows})


if __name__ == "__main__":
    main()

"""Near-optimal without tuning: learners and solvers on many problems, 300 to 100,000 rows.

Problem k is number `k // 15` of family `k % 15`. The last three families were not used in the
design of our methods: they are reported separately. Every learner runs at its defaults (quantity
"default") and at steps `2^-1 … 2^-14` over the mean of `|phi|^2` (quantity "step 2^-k"), solvers
have no step (quantity "solver"). Values are RMSE over that of the best approximation, or over a
thousandth of the error of predicting 0 if features can express every value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from o2td import domains, features, metrics
from o2td.experiments.studies import Measurement
from o2td.learners import (
    ABTD,
    ARCTD,
    ETD,
    GTD2,
    HTD,
    TD,
    TDC,
    TDRC,
    Learner,
    TreeBackup,
    VTrace,
    sweep,
)
from o2td.learners.step_sizes import StepSize
from o2td.problem import Problem
from o2td.simulated import SimulatedProblem
from o2td.solvers import LSTD
from o2td.transitions import Transitions

RECORDS = (300, 1000, 3000, 10_000, 30_000, 100_000)
TRACES = (0.0, 0.5, 0.9)
STEPS = tuple(range(1, 15))
KINDS = (TD, VTrace, TreeBackup, ETD, TDC, TDRC, HTD, GTD2)
FLOOR = 1e-3
AnyProblem = Problem | SimulatedProblem


def _car(k: int, seed: int) -> SimulatedProblem:
    target, behavior = ((0.0, 0.3), (0.1, 0.5), (0.3, 0.3))[k % 3]
    return domains.mountain_car(target, behavior, order=3 + k // 3 % 2)


def _tiles(k: int, seed: int) -> SimulatedProblem:
    target, behavior = ((0.0, 0.3), (0.1, 0.5), (0.2, 0.4))[k % 3]
    bounds = ((-1.2, 0.6), (-0.07, 0.07))
    tiles = features.Tiles(4, 5, bounds=bounds, sparse=False)
    return domains.mountain_car(target, behavior, features=tiles)


def _storage(k: int, seed: int) -> SimulatedProblem:
    target, behavior = ((0.0, 0.5), (0.1, 0.7), (0.2, 0.4))[k % 3]
    return domains.energy_storage(
        epsilon_target=target, epsilon_behavior=behavior, order=3 + k // 3 % 2
    )


def _walk(k: int, seed: int) -> Problem:
    form = ("tabular", "inverted", "dependent")[k % 3]
    return domains.random_walk(form, discount=(1.0, 0.95)[k // 3 % 2])


def _chain(k: int, seed: int) -> Problem:
    return domains.boyan_chain(discount=(0.95, 0.99, 0.9, 0.8)[k % 4])


def _long_walk(k: int, seed: int) -> Problem:
    """Nineteen states, one feature each or one for every three neighbours; ends pay -1 and 1."""
    inner, n = 19, 21
    transition, reward, middle = np.zeros((n, 2, n)), np.zeros((n, 2)), np.eye(n)[10]
    for s in range(1, inner + 1):
        transition[s, 0, s - 1] = transition[s, 1, s + 1] = 1.0
    reward[1, 0], reward[inner, 1] = -1.0, 1.0
    tilt, table = (0.1, 0.0, 0.05, -0.1)[k % 4], np.eye(inner)
    if k // 4 % 2 == 1 or k % 2 == 1:
        table = (table + np.eye(inner, k=1) + np.eye(inner, k=-1)) / 3.0
    features = np.vstack([np.zeros(inner), table, np.zeros(inner)])
    target = np.tile([0.5 - tilt, 0.5 + tilt], (n, 1))
    return Problem(
        transition, reward, 1.0, np.full((n, 2), 0.5), target, features,
        start=middle, terminal=[0, n - 1],
    )  # fmt: skip


def _garnet(**settings: Any) -> Callable[[int, int], Problem]:
    return lambda k, seed: domains.garnet(seed=(seed, k), **settings)


FAMILIES: dict[str, Callable[[int, int], AnyProblem]] = {
    "garnet": _garnet(),
    "garnet, mild": _garnet(peak=1),
    "garnet, discount 0.99": _garnet(discount=0.99),
    "garnet, 300 states": _garnet(states=300, features=40),
    "garnet, on-policy": _garnet(on_policy=True),
    "random MDP": lambda k, seed: domains.random_mdp(100, 5, 20, seed=(seed, k)),
    "Collision": lambda k, seed: domains.collision(seed=(seed, k)),
    "Four Rooms": lambda k, seed: domains.four_rooms(k % 8, ("low", "high")[k // 8 % 2]),
    "random walk": _walk,
    "mountain car": _car,
    "mountain car, tiles": _tiles,
    "energy storage": _storage,
    "Boyan chain": _chain,
    "walk of 19 states": _long_walk,
    "garnet, 60 states": _garnet(
        states=60, actions=3, features=20, branching=5, discount=0.9, peak=2
    ),
}
FRESH = ("Boyan chain", "walk of 19 states", "garnet, 60 states")


def near_optimal(first: int, last: int, seed: int) -> Iterator[Measurement]:
    """Errors over the best approximation's on problems `first` to `last`."""
    names = list(FAMILIES)
    for k in range(first, last):
        family, number = names[k % len(names)], k // len(names)
        problem = FAMILIES[family](number, seed)
        batch, error = problem.sample(RECORDS[-1], seed=(seed, k)), _error(problem)
        least = max(error.value(error.center), FLOOR * error.value(np.zeros(problem.d)))
        for method, quantity, n, value in _measured(batch, error):
            yield Measurement(family, method, quantity, value / least, number, n)


def _error(problem: AnyProblem) -> metrics.Quadratic:
    if isinstance(problem, Problem):
        return metrics.RMSE(problem)
    seen = problem.observations(2000, seed=99_991, every=25)
    return metrics.held_out(problem.phi(seen), problem.rollout_value(seen, seed=5).mean)


def _measured(
    batch: Transitions, error: metrics.Quadratic
) -> Iterator[tuple[str, str, int, float]]:
    named = list(_lanes(_mean_square(batch)))
    lanes = [learner for _, _, learner in named]
    result = sweep(lanes, batch, metrics={"rmse": error}, every=100)
    at = np.searchsorted(result.steps, RECORDS)
    for (method, quantity, _), values in zip(named, result.values["rmse"], strict=True):
        for n, value in zip(RECORDS, values[at], strict=True):
            yield method, quantity, n, float(value)
    for n in RECORDS:
        for trace in (0.0, 0.5, 0.9, "auto"):
            theta = LSTD(trace=trace).fit(batch[:n]).theta
            yield f"LSTD {trace}", "solver", n, float(error.value(theta))


def _mean_square(batch: Transitions) -> float:
    phi = batch.table[batch.state] if batch.layout == "table" else batch.phi
    return float(np.mean(np.sum(phi**2, axis=1)))


def _lanes(square: float) -> Iterator[tuple[str, str, Learner]]:
    """Method, quantity and learner of every lane."""
    yield "ARCTD", "default", ARCTD()
    sizes: list[tuple[str, StepSize]] = [("default", "auto")]
    sizes += [(f"step 2^-{k}", 2.0**-k / square) for k in STEPS]
    for trace in TRACES:
        for quantity, size in sizes:
            yield f"ABTD {trace:g}", quantity, ABTD(size, zeta=trace)
            for kind in KINDS:
                yield f"{kind.__name__} {trace:g}", quantity, kind(size, trace=trace)

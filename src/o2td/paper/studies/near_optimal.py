"""Near-optimal without tuning: learners and solvers on many problems, 300 to 100,000 rows.

Problem k is number `k // 40` of family `k % 40`. The last 22 families were not used in the design of
ARCTD: they are reported separately. Every learner runs at its defaults (quantity "default") and at
steps `2^-1 … 2^-14` over the mean of `|phi|^2` (quantity "step 2^-k"). Solvers have no step (quantity
"solver"), and problems of their own. Values are RMSE over that of the best approximation, or over a
thousandth of the error of predicting 0 if that is larger. Errors below this thousandth count as it,
for every method: where features can express every value and nothing is random, there is no other
limit than rounding. The values of this study are as measured; the count is in `paper.near`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from o2td import metrics
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
from o2td.paper.studies.families import FAMILIES, AnyProblem
from o2td.problem import Problem
from o2td.solvers import LSTD
from o2td.transitions import Transitions

RECORDS = (300, 1000, 3000, 10_000, 30_000, 100_000)
TRACES = (0.0, 0.5, 0.9)
STEPS = tuple(range(1, 15))
KINDS = (TD, VTrace, TreeBackup, ETD, TDC, TDRC, HTD, GTD2)
FLOOR = 1e-3
_Error = tuple[str, str, int, float]  # method, quantity, rows, error


def near_optimal(first: int, last: int, seed: int) -> Iterator[Measurement]:
    """Learners' errors over the best approximation's on problems `first` to `last`."""
    return _measured(first, last, seed, _learned)


def near_solvers(first: int, last: int, seed: int) -> Iterator[Measurement]:
    """The same for solvers."""
    return _measured(first, last, seed, _solved)


def _measured(
    first: int, last: int, seed: int, errors: Callable[..., Iterator[_Error]]
) -> Iterator[Measurement]:
    names = list(FAMILIES)
    for k in range(first, last):
        family, number = names[k % len(names)], k // len(names)
        problem = FAMILIES[family](number, seed)
        batch, error = problem.sample(RECORDS[-1], seed=(seed, k)), _error(problem)
        least = max(error.value(error.center), FLOOR * error.value(np.zeros(problem.d)))
        for method, quantity, n, value in errors(batch, error):
            yield Measurement(family, method, quantity, value / least, number, n)


def _error(problem: AnyProblem) -> metrics.Quadratic:
    if isinstance(problem, Problem):
        return metrics.RMSE(problem)
    seen = problem.observations(2000, seed=99_991, every=25)
    return metrics.held_out(problem.phi(seen), problem.rollout_value(seen, seed=5).mean)


def _learned(batch: Transitions, error: metrics.Quadratic) -> Iterator[_Error]:
    named = list(_lanes(_mean_square(batch)))
    lanes = [learner for _, _, learner in named]
    result = sweep(lanes, batch, metrics={"rmse": error}, every=100)
    at = np.searchsorted(result.steps, RECORDS)
    for (method, quantity, _), values in zip(named, result.values["rmse"], strict=True):
        for n, value in zip(RECORDS, values[at], strict=True):
            yield method, quantity, n, float(value)


def _solved(batch: Transitions, error: metrics.Quadratic) -> Iterator[_Error]:
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

"""Exact figures that others have published, measured again: Baird's star and the Collision task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from o2td import domains, exact
from o2td.errors import O2TDError
from o2td.experiments.studies import Measurement
from o2td.learners import ETD, TD


def published(first: int, last: int, seed: int) -> Iterator[Measurement]:
    """Collision: each method's limit on feature sets `first` to `last`; Baird: once."""
    for k in range(first, last):
        yield from _collision(k, seed)
    if first == 0:
        yield from _baird()


def _collision(k: int, seed: int) -> Iterator[Measurement]:
    problem = domains.collision(seed=(seed, k))

    def record(method: str, theta: Any) -> Measurement:
        return Measurement("collision", method, "rmse", float(exact.rmse(problem, theta)), k)

    yield record("best", exact.best_approximation(problem))
    learners: dict[str, Any] = {
        "TD": TD(0.1),
        "TD lambda 0.9": TD(0.1, trace=0.9),
        "ETD": ETD(0.1),
        "ETD lambda 0.9": ETD(0.1, trace=0.9),
    }
    for name, learner in learners.items():
        try:
            yield record(name, exact.fixed_point(problem, learner).theta)
        except O2TDError:
            continue


def _baird() -> Iterator[Measurement]:
    """The star form at its first weights, and after 1000 expected sweeps of ETD at 0.03."""
    problem = domains.baird()
    theta = np.array(problem.initial_theta)
    yield Measurement("baird", "first weights", "rmse", float(exact.rmse(problem, theta)))
    yield Measurement("baird", "first weights", "rmspbe", float(exact.rmspbe(problem, theta)))
    dynamics = ETD(0.03).mean_dynamics(exact.model(problem))
    for _ in range(1000):
        theta = theta + 0.03 * (dynamics.b - dynamics.A @ theta)
    for index in (0, 6, 7):
        yield Measurement("baird", f"ETD, weight {index + 1}", "theta", float(theta[index]))

"""The geometry figure's numbers: a real three-state problem and where each method lands on it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from o2td import exact
from o2td.experiments.studies import Measurement
from o2td.learners import ETD, O2TD, TD, ResidualGradient
from o2td.problem import Problem
from o2td.solvers import SOTD


def three_states() -> Problem:
    """Three states in a noisy ring, two features, off-policy: V lies well off their plane."""
    ring = np.array([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]])
    back = ring.T
    P = np.stack([ring, back], axis=1)
    return Problem(
        P,
        reward=np.array([[1.0, 0.0], [0.0, 0.0], [-0.5, 0.5]]),
        discount=0.8,
        behavior=np.array([[0.5, 0.5], [0.7, 0.3], [0.4, 0.6]]),
        target=np.array([[0.8, 0.2], [0.9, 0.1], [0.7, 0.3]]),
        features=np.array([[1.0, 0.2], [0.3, 1.0], [0.8, 0.6]]),
        name="three states",
    )


def diverging_cycle() -> Problem:
    """A cycle of three states, on-policy: TD converges and every reading of O2TD diverges."""
    P = np.zeros((3, 1, 3))
    P[[0, 1, 2], 0, [1, 2, 0]] = 1.0
    one = np.ones((3, 1))
    Phi = np.array([[-1.0, 2.0], [-2.0, 2.0], [2.0, 0.0]])
    return Problem(P, np.array([1.0, 0.0, -0.5]), 0.9, one, one, Phi, name="a cycle, on-policy")


def geometry(first: int, last: int, seed: int) -> Iterator[Measurement]:
    """Coordinates of V, of the plane's two features, and of every landing point."""
    problem = three_states()
    Phi = np.asarray(problem.features)
    points = {
        "V": exact.value(problem),
        "feature 1": Phi[:, 0],
        "feature 2": Phi[:, 1],
        "v* (best)": Phi @ exact.best_approximation(problem),
        "TD": Phi @ exact.fixed_point(problem, TD(0.1)).theta,
        "RG": Phi @ exact.fixed_point(problem, ResidualGradient(0.1, double=True)).theta,
        "ETD": Phi @ exact.fixed_point(problem, ETD(0.1)).theta,
        "O2TD (state)": Phi @ exact.fixed_point(problem, O2TD(0.1, omega="state")).theta,
        "SOTD": Phi @ SOTD().limit(exact.model(problem)),
    }
    for name, point in points.items():
        for state, value in enumerate(point):
            yield Measurement("three states", name, "coordinate", float(value), state)
        yield Measurement("three states", name, "weight", float(problem.visits[0]), 0)
    for state, weight in enumerate(problem.visits):
        yield Measurement("three states", "", "visits", float(weight), state)

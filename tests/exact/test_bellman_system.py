"""The Bellman system of a problem, and what is left when the problem is gone."""

from __future__ import annotations

import numpy as np
import pytest

from o2td import exact
from o2td.exact.bellman_system import BellmanSystem

from .conftest import make_problem


def test_visits_are_those_of_a_problem_that_is_there() -> None:
    problem = make_problem(seed=2)
    made = BellmanSystem(problem)
    visits = made.visits
    np.testing.assert_allclose(visits, exact.state_distribution(problem))
    lost = BellmanSystem(make_problem(seed=2))
    with pytest.raises(RuntimeError, match="the problem of this system is gone"):
        _ = lost.visits

"""The Bellman system of a problem, and what is left when the problem is gone."""

from __future__ import annotations

import numpy as np
import pytest

from o2td import chain, exact
from o2td.errors import NoAnswerError
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


def test_the_state_whose_value_is_too_large_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_problem(states=3)
    monkeypatch.setattr(chain, "solve", lambda *_: np.array([1.0, 2.0, np.inf]))
    with pytest.raises(NoAnswerError, match="the value of state 2 is beyond the largest number"):
        exact.value(problem)

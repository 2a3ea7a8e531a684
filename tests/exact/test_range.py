"""Near the ends of the range of numbers: figures that exist are right, others are refused."""

from __future__ import annotations

import numpy as np
import pytest

import o2td
from o2td import Problem, exact, metrics
from o2td.errors import InputError, NoAnswerError

P = np.array([[[0.5, 0.5], [0.2, 0.8]], [[1.0, 0.0], [0.3, 0.7]]])
REWARD = np.array([[1.0, 2.0], [3.0, -1.0]])


def scaled(size: float, behavior: object = ((0.5, 0.5), (0.5, 0.5))) -> Problem:
    target = [[0.3, 0.7], [0.3, 0.7]]
    return Problem(P, REWARD * size, 0.9, behavior, target, np.array([[1.0], [2.0]]))


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-150, 1e150, 1e200, 1e300])
@pytest.mark.parametrize("form", ["target", "dann"])
def test_figures_grow_with_the_rewards(size: float, form: str) -> None:
    one, other = scaled(1.0), scaled(size)
    same = {"rtol": 1e-12, "atol": 0.0}
    for theta in (np.zeros(1), np.array([[0.0, 2.0]])):
        for measure in (exact.rmse, exact.rmspbe, exact.rmsbe):
            options = {} if measure is exact.rmse else {"form": form}
            known = measure(one, theta, **options) * size
            np.testing.assert_allclose(measure(other, theta * size, **options), known, **same)
    assert exact.suboptimality(other, [0.0]) == pytest.approx(exact.suboptimality(one, [0.0]))
    for learner in (o2td.TD(step_size=0.1), o2td.ETD(step_size=0.1), o2td.GTD2(step_size=0.1)):
        here, there = exact.fixed_point(one, learner), exact.fixed_point(other, learner)
        assert there.stable == here.stable
        assert there.suboptimality == pytest.approx(here.suboptimality, rel=1e-9) != 1.0
        np.testing.assert_allclose(there.theta, here.theta * size, rtol=1e-9, atol=0.0)


def test_a_square_that_overflows_is_refused() -> None:
    problem = scaled(1e200)
    for measure in (exact.mse, exact.msbe, exact.mspbe):
        with pytest.raises(NoAnswerError, match="ask for its root, or divide the rewards"):
            measure(problem, [0.0])
    for metric in (metrics.rmse, metrics.rmsbe):
        with pytest.raises(InputError, match="divide the rewards"):
            metric(problem)


def test_a_value_that_overflows_is_refused() -> None:
    with pytest.raises(NoAnswerError, match="value of state 0 is beyond the largest number"):
        exact.value(scaled(5e307))


def test_a_ratio_that_overflows_is_refused_where_limits_are_asked_for() -> None:
    problem = scaled(1.0, [[1.0, 5e-324], [0.5, 0.5]])
    learners = [o2td.TD, o2td.ETD, o2td.O2TD, o2td.GTD2, o2td.TDC]
    for kind in learners:
        with pytest.raises(InputError, match="overflows in state 0 under action 1"):
            exact.fixed_point(problem, kind(step_size=0.1))
    assert scaled(1.0).ratio.tolist() == [[0.6, 1.4], [0.6, 1.4]]

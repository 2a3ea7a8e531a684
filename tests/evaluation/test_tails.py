"""Can the mean reward be estimated? What the test of tails finds, by its formulas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from o2td.evaluation.log_tests import tails
from o2td.evaluation.log_tests.tails import Tails, _shape, pareto_shape, tail_size

from .study import studied


def rewards(values: np.ndarray, rho: float | np.ndarray = 1.0) -> pd.DataFrame:
    """One state, one action, one step each: surprises are rewards minus their mean."""
    n = len(values)
    log = pd.DataFrame({"episode": np.arange(n), "state": 0, "action": 0, "reward": values})
    return log.assign(terminated=True, rho=rho)


def found(values: np.ndarray, rho: float | np.ndarray = 1.0):
    return Tails().find(studied(rewards(values, rho), 0.9))


def test_heavy_tails_may_have_no_variance():
    values = np.random.default_rng(0).pareto(1.0, 3000)
    one = found(values)
    assert one.verdict == "caution"
    assert "variance may be infinite" in one.sentence
    size = np.abs(values - values.mean())
    assert one.figure == pytest.approx(_shape(size)[0], rel=1e-6)


def test_a_shape_has_the_error_of_its_tail():
    size = np.random.default_rng(1).exponential(size=4000)
    shape, error = _shape(size)
    assert shape == pareto_shape(np.sort(size)[::-1])
    assert error == pytest.approx((1.0 + shape) / np.sqrt(tail_size(4000)))
    assert _shape(np.append(size, np.zeros(500))) == (shape, error)
    assert _shape(np.repeat(np.arange(1.0, 100.0), 20)) == (0.0, 0.0)
    assert _shape(np.zeros(600)) == (0.0, 0.0)
    capped = np.append(np.linspace(1.0, 2.0, 340), np.full(100, 9.0))  # a tail of equal values
    assert _shape(capped) == (0.0, 0.0)
    assert _shape(1e-3 * size)[0] == pytest.approx(shape, rel=1e-9)


def test_a_few_rows_that_carry_all_variation_are_a_doubt_where_there_are_enough_rows():
    values = np.zeros(2000)
    values[:4] = 1.0
    one = found(values)
    size = (values - values.mean()) ** 2
    carrying = size.sum() ** 2 / (size**2).sum()
    assert (one.verdict, one.figure) == ("caution", pytest.approx(carrying, rel=1e-9))
    assert f"about {carrying:.0f} rows carry most" in one.sentence
    often = values.copy()
    often[:60] = 1.0
    assert found(often).verdict == "trust"
    assert found(often).figure == 0.0
    few = np.where(np.arange(2000) < 4, 1.0, np.where(np.arange(2000) < 40, 1e-3, 1e-9))
    assert found(values, few).verdict == "trust"  # too few effective rows to tell


def test_rewards_that_state_and_action_determine_need_no_tail():
    one = found(np.full(800, 2.5))
    assert (one.verdict, one.figure, one.sentence) == (
        "trust", None, "state and action determine the reward"
    )  # fmt: skip
    assert found(np.random.default_rng(0).normal(size=499)) is None
    assert found(np.random.default_rng(0).normal(size=500)) is not None


@pytest.mark.parametrize(("shape", "verdict"), [(0.7, "trust"), (0.66, "trust"), (0.67, "caution")])
def test_a_heavy_tail_must_be_surely_heavy(monkeypatch, shape, verdict):
    """Half is heavy; 1.64 standard errors of a tenth are allowed for."""
    error = {0.7: 0.2, 0.66: 0.1, 0.67: 0.1}[shape]
    monkeypatch.setattr(tails, "_shape", lambda size: (shape, error))
    values = np.random.default_rng(0).normal(size=900)
    assert found(values).verdict == verdict

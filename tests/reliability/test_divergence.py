"""Divergence is reported with its step, never as a bare NaN, and stays in its own lane."""

from __future__ import annotations

import numpy as np
import pytest

import o2td
from o2td import Transitions, domains, metrics
from o2td.registry import LEARNERS

from .test_bad_input import made, told

RATIOS = (0.0, 5e-324, 1e-300, 1e6, 1e154, 1e308)


def test_td_on_baird_reports_its_step_and_keeps_the_theta_before_it() -> None:
    problem = domains.baird()
    batch = problem.sample(60_000, seed=0)
    learner = o2td.TD(step_size=0.5, initial_theta=problem.initial_theta).partial_fit(batch)
    assert learner.status.kind == "diverged"
    assert 0 < learner.status.step < 60_000
    assert f"diverged at step {learner.status.step}" in str(learner.status)
    assert np.isfinite(learner.theta).all()
    assert np.abs(learner.theta).max() > 1e100
    before = learner.theta.copy()
    learner.partial_fit(batch[:100])
    np.testing.assert_array_equal(learner.theta, before)
    step = learner.status.step
    short = o2td.TD(step_size=0.5, initial_theta=problem.initial_theta).partial_fit(batch[:step])
    assert short.status.kind == "ok"


@pytest.mark.parametrize("step_size", [1e-3, 1.0, 1e10, 1e200])
@pytest.mark.parametrize("name", LEARNERS.names())
def test_no_learner_ever_shows_a_nan(name: str, step_size: float) -> None:
    problem = domains.baird()
    batch = problem.sample(3000, seed=1, double=True)
    learner = made(LEARNERS[name]).clone(step_size=step_size).partial_fit(batch)
    assert learner.status.kind in ("ok", "diverged")
    assert np.isfinite(learner.theta).all()
    assert np.isfinite(learner.predict(problem.features)).all() or learner.status.kind == "diverged"


@pytest.mark.parametrize("name", LEARNERS.names())
def test_overflow_in_one_lane_leaves_the_others_exact(name: str) -> None:
    problem = domains.random_walk()
    batch = problem.sample(2000, seed=2, double=True)
    kind = made(LEARNERS[name])
    sizes = (0.01, 1e200, 0.02)
    recorded = {"metrics": {"rmse": metrics.rmse(problem)}, "every": 500}
    result = o2td.sweep([kind.clone(step_size=a) for a in sizes], batch, **recorded)
    assert (result.diverged >= 0).tolist() == [False, True, False]
    assert np.isfinite(result.theta).all()
    assert not np.isnan(result.values["rmse"]).any()
    assert np.isinf(result.values["rmse"][1, -1])
    alone = o2td.sweep([kind.clone(step_size=a) for a in (0.01, 0.02)], batch, **recorded)
    np.testing.assert_array_equal(result.theta[:, [0, 2]], alone.theta)


# -- ratios of any size ----------------------------------------------------------------------------


@pytest.mark.parametrize("rho", RATIOS)
@pytest.mark.parametrize("step_size", [1.0, 0.5])
@pytest.mark.parametrize("name", ["TD", "ETD", "O2TD", "TDC", "HTD", "GTD2"])
def test_a_ratio_is_used_as_it_is(name: str, step_size: float, rho: float) -> None:
    """`theta = alpha rho r phi` to the last bit; from 1e150 on, diverged at that very step."""
    batch = Transitions([[1.0]], [1.0], [[1.0]], discount=0.0, rho=[rho], state=[0], next_state=[0])
    assert batch.rho[0] == rho
    learner = made(LEARNERS[name]).clone(step_size=step_size).partial_fit(batch)
    if rho > 1e150:
        assert (learner.status.kind, learner.status.step) == ("diverged", 0)
        assert learner.theta[0] == 0.0
        return
    assert learner.status.kind == "ok"
    first = 0.0 if name == "GTD2" else step_size * rho  # its w is 0 before the first step
    assert learner.theta[0] == first


@pytest.mark.parametrize("rho", RATIOS)
@pytest.mark.parametrize("name", LEARNERS.names())
def test_every_learner_takes_every_ratio_and_stays_finite(name: str, rho: float) -> None:
    rng = np.random.default_rng(3)
    phi = rng.normal(size=(20, 3))
    ratios = np.ones(20)
    ratios[10] = rho
    batch = Transitions(
        phi, rng.normal(size=20), phi[::-1].copy(), 0.9, rho=ratios, state=np.arange(20),
        next_state=np.arange(20)[::-1].copy(), target_prob=np.full(20, 0.5),
        behavior_prob=np.full(20, 0.5),
    )  # fmt: skip
    learner = made(LEARNERS[name]).partial_fit(batch)
    assert np.isfinite(learner.theta).all()
    if learner.status.kind == "diverged":
        assert rho >= 1e6
        assert learner.status.step >= 10
    whole = learner.theta.copy()
    one = made(LEARNERS[name])
    for part in batch.chunks(1):
        one.partial_fit(part)
    np.testing.assert_allclose(one.theta, whole, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("rho", RATIOS)
def test_lstd_takes_every_ratio_or_says_that_its_sums_overflow(rho: float) -> None:
    batch = Transitions(np.eye(2), [1.0, 2.0], np.eye(2), discount=0.5, rho=[1.0, rho])
    if rho == 1e308:  # times a reward of 2 it is beyond floating point
        told(lambda: o2td.LSTD().fit(batch), "rho")
        return
    solver = o2td.LSTD().fit(batch)
    if rho == 0.0:
        assert solver.solution.status == "minimum norm"
        np.testing.assert_allclose(solver.theta, [2.0, 0.0], atol=1e-12)
    else:
        assert np.isfinite(solver.theta).all()
        assert solver.theta[0] == pytest.approx(2.0)
        if rho > 1e-300:  # a subnormal sum has lost its digits
            assert solver.theta[1] == pytest.approx(4.0)

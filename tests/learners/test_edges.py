"""Edges that a changed line would move unnoticed: found by mutating the learners."""

from __future__ import annotations

import numpy as np
import pytest

import o2td
from o2td import Problem, domains, exact, metrics
from o2td.emphasis import Omega
from o2td.errors import InputError
from o2td.learners import PowerDecay
from o2td.learners.sweeping import sweep


@pytest.mark.parametrize(
    ("step_size", "floor"), [(0.0, 0.5), (1.5, 0.5), (np.nan, 0.5), (0.5, 0.0), (0.5, 1.5)]
)
def test_omega_refuses_shares_outside_their_interval(step_size: float, floor: float) -> None:
    with pytest.raises(InputError, match="step_size and floor must be in"):
        Omega("moments", step_size, floor)
    Omega("moments", 1.0, 1.0)


@pytest.mark.parametrize(("c", "p"), [(0.0, 1.0), (-1.0, 1.0), (np.inf, 1.0), (1.0, -0.1)])
def test_power_decay_refuses_what_does_not_decay(c: float, p: float) -> None:
    with pytest.raises(InputError, match="PowerDecay needs c > 0 and p >= 0"):
        PowerDecay(c, p)
    assert PowerDecay(1.0, 0.0).at(np.array([1.0, 9.0])).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "learner",
    [
        o2td.TDC(PowerDecay(0.5, 0.7), second_step_size=0.05),
        o2td.TDC(0.05, second_step_size=PowerDecay(0.5, 0.7)),
        o2td.GTD2(0.05, emphasis=Omega("state")),
        o2td.TD(PowerDecay(0.5, 0.7)),
        o2td.ETD("auto"),
    ],
    ids=repr,
)
def test_rows_one_by_one_where_no_compiled_step_fits(learner: o2td.Learner) -> None:
    batch = domains.random_walk().sample(60, seed=0)
    one = learner.clone()
    for t in range(batch.n):
        assert batch.state is not None
        assert batch.next_state is not None
        one.learn_one(
            batch.phi[t], batch.reward[t], batch.next_phi[t], batch.discount[t], batch.rho[t],
            start=bool(batch.start[t]), state=int(batch.state[t]),
        )  # fmt: skip
    whole = learner.clone().partial_fit(batch)
    np.testing.assert_allclose(one.theta, whole.theta, rtol=1e-12, atol=1e-15)


def test_the_second_weights_can_be_seen_and_not_changed() -> None:
    learner = o2td.TDC(0.05)
    assert learner.w.shape == (0,)
    learner.partial_fit(domains.random_walk().sample(50, seed=0))
    assert learner.w.shape == learner.theta.shape
    assert learner.w.any()
    with pytest.raises(ValueError, match="read-only"):
        learner.w[0] = 1.0


def test_a_lane_counts_up_to_the_step_before_it_diverged() -> None:
    """A record after t rows is good if row t, counted from 0, is the first that cannot be taken."""
    problem = domains.random_walk()
    batch = problem.sample(30, seed=0)
    result = sweep([o2td.TD(1e80)], batch, metrics={"rmse": metrics.rmse(problem)}, every=1)
    at = int(result.diverged[0])
    assert 0 < at < 30
    assert np.isfinite(result.values["rmse"][0, :at]).all()
    assert np.isinf(result.values["rmse"][0, at:]).all()


def test_records_of_a_stream_longer_than_what_is_held_at_a_time() -> None:
    problem = domains.random_walk()
    batch = problem.sample(70_000, seed=0)
    every = 7
    result = sweep([o2td.TD(0.01)], batch, metrics={"rmse": metrics.rmse(problem)}, every=every)
    values = result.values["rmse"][0]
    assert len(values) == 70_000 // every
    assert np.isfinite(values).all()
    for t in (every * 5, 65_534, 69_993):
        learner = o2td.TD(0.01).partial_fit(batch[:t])
        assert values[t // every - 1] == pytest.approx(exact.mse(problem, learner.theta) ** 0.5)


@pytest.mark.parametrize(
    "learner", [o2td.TD(0.1, 0.5), o2td.O2TD(0.1, omega="state"), o2td.GTD2(0.1, trace=0.5)]
)
def test_a_state_that_is_never_visited_does_not_spoil_the_mean(learner: o2td.Learner) -> None:
    transition = np.zeros((3, 1, 3))
    transition[0, 0, 1] = transition[1, 0, 0] = transition[2, 0, 0] = 1.0
    problem = Problem(
        transition, np.array([[1.0], [0.0], [5.0]]), discount=0.9, behavior=np.ones((3, 1)),
        target=np.ones((3, 1)), features=np.eye(3), start=[1.0, 0.0, 0.0],
    )  # fmt: skip
    mean = learner.mean_dynamics(exact.model(problem))
    assert np.isfinite(mean.A).all()
    assert np.isfinite(mean.b).all()
    answer = exact.fixed_point(problem, learner)
    assert np.isfinite(answer.theta).all()
    np.testing.assert_allclose(answer.theta[:2], [1.0 / 0.19, 0.9 / 0.19])


@pytest.mark.parametrize("trace", [-0.1, 1.1, np.nan, "0.5", None])
def test_a_trace_is_a_share(trace: object) -> None:
    with pytest.raises(InputError, match="trace"):
        o2td.TD(0.1, trace)  # type: ignore[arg-type]

"""Steps as another package would write them, with public imports only: checks, sweeps and files."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import o2td
from o2td.checks import check_learner
from o2td.learners import StepLearner
from o2td.learners.step_learner import add, count, dot, follow, index, td_error, value


@njit
def true_online(row, p, s, theta, e):
    v, next_v = dot(row.phi, theta), dot(row.next_phi, theta)
    delta, moved = row.reward + row.discount * next_v - v, v - s.value
    factor, weight = row.rho * row.before * p.trace, row.alpha * row.rho
    follow(e, factor, weight * (1.0 - factor * dot(row.phi, e)), row.phi)
    add(theta, delta + moved, e)
    add(theta, -weight * moved, row.phi)
    s.value = next_v


class OutsideTrueOnlineTD(StepLearner):
    vectors = ("theta", "e")
    traces = ("e",)
    scalars = ("value",)
    step = staticmethod(true_online)


@njit
def tidbd(row, p, s, theta, beta, h, z):
    """TIDBD (Kearney et al. 2018), semi-gradient: a step size per feature, adapted online."""
    delta = row.rho * td_error(row, theta)
    follow(z, row.decay, 1.0, row.phi)
    for k in range(count(row.phi)):
        j = index(row.phi, k)
        beta[j] += p.meta * delta * value(row.phi, k) * h[j]
    for k in range(count(z)):
        j, trace = index(z, k), value(z, k)
        step = row.alpha * np.exp(min(beta[j], 10.0))
        theta[j] += step * delta * trace
        h[j] += step * delta * trace
    for k in range(count(row.phi)):
        j, x = index(row.phi, k), value(row.phi, k)
        step = row.alpha * np.exp(min(beta[j], 10.0))
        moved = step * delta * z.values[j]
        h[j] = (h[j] - moved) * max(0.0, 1.0 - step * x * z.values[j]) + moved


class OutsideTIDBD(StepLearner):
    vectors = ("theta", "beta", "h", "z")
    traces = ("z",)
    linear = False
    step = staticmethod(tidbd)

    def __init__(self, step_size="auto", *, meta=0.01, **axes):
        self.meta = float(meta)
        super().__init__(step_size, **axes)


@njit
def sparse_gtd2mp(row, p, s, theta, w, z):
    follow(z, row.rho * row.before * p.trace, row.rho, row.phi)
    delta, wphi, wz = td_error(row, theta), dot(row.phi, w), dot(z, w)
    zphi = dot(row.phi, z)
    for turn in range(2):  # the midpoint's dot products, then the step itself
        pp = dot(row.phi, w)
        if turn == 0:
            add(theta, row.alpha * wz, row.phi)
            add(theta, -row.alpha * wz * row.discount, row.next_phi)
            middle = td_error(row, theta)
            add(theta, -row.alpha * wz, row.phi)
            add(theta, row.alpha * wz * row.discount, row.next_phi)
        else:
            square = zz = 0.0
            for k in range(count(row.phi)):
                square += value(row.phi, k) ** 2
            for k in range(count(z)):
                zz += value(z, k) ** 2
            there = wz + row.alpha_w * (delta * zz - wphi * zphi)
            pp = wphi + row.alpha_w * (delta * zphi - wphi * square)
            add(theta, row.alpha * there, row.phi)
            add(theta, -row.alpha * there * row.discount, row.next_phi)
            add(w, row.alpha_w * middle, z)
            add(w, -row.alpha_w * pp, row.phi)


class OutsideSparseGTD2MP(StepLearner):
    """GTD2-MP; l1-prox and average come from the axes."""

    vectors = ("theta", "w", "z")
    traces = ("z",)
    step = staticmethod(sparse_gtd2mp)


LEARNERS = [
    OutsideTrueOnlineTD(0.05, trace=0.7),
    OutsideTIDBD(0.05, trace=0.7),
    OutsideSparseGTD2MP(0.05, trace=0.7, l1=0.01, average=True),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_conformance(learner):
    assert len(check_learner(learner).passed) >= 25


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_sixty_four_lanes_with_metrics_saved_and_resumed(learner, tmp_path):
    problem = o2td.domains.random_walk()
    batch = problem.sample(300, seed=5)
    sizes = np.geomspace(0.001, 0.2, 64)
    metrics = {"rmse": o2td.metrics.rmse(problem)}
    lanes = [learner.clone(step_size=a) for a in sizes]
    result = o2td.sweep(lanes, batch, metrics, every=60)
    assert result.values["rmse"].shape == (64, 5)
    alone = lanes[40].clone().partial_fit(batch[:120])
    alone.save(tmp_path / "learner.npz")
    resumed = type(learner).load(tmp_path / "learner.npz").partial_fit(batch[120:])
    np.testing.assert_array_equal(resumed.theta, alone.partial_fit(batch[120:]).theta)
    np.testing.assert_allclose(result.theta[:, 40], resumed.theta, rtol=1e-10, atol=1e-14)


def test_an_outside_gtd2mp_is_the_built_in_one():
    batch = o2td.domains.random_walk().sample(300, seed=5)
    own = OutsideSparseGTD2MP(0.05, trace=0.7).partial_fit(batch).theta
    built_in = o2td.GTD2MP(0.05, trace=0.7).partial_fit(batch).theta
    np.testing.assert_allclose(own, built_in, rtol=1e-9, atol=1e-13)

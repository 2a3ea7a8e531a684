"""Averages, prox, projection, cuts and lambda by state, against slow plain loops on every layout."""

from __future__ import annotations

import numpy as np
import pytest

import o2td
from o2td.errors import InputError, NoAnswerError
from o2td.learners import GTD, GTD2, GTD2MP, HTD, TDCMP, TDRC, ActionDependent, Clipped, Target

from . import golden
from .conftest import LAYOUTS, random_rows

ALPHA = 0.03
LAMBDA = np.linspace(0.1, 0.9, golden.STATES)


def dense(rows):
    return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)


def plain_td(
    batch, cut=lambda rho, pi, b: rho, lam=lambda s: 0.8, average=0.0, l1=0.0, radius=np.inf
):
    """Last theta, average and trace of a TD that is as plain as can be."""
    theta, mean, z = np.zeros((3, batch.d))
    passed = 0.0
    phi, next_phi = dense(batch.phi), dense(batch.next_phi)
    for t in range(batch.n):
        z = (0.0 if batch.start[t] else passed) * lam(batch.state[t]) * z + phi[t]
        delta = batch.reward[t] + batch.discount[t] * next_phi[t] @ theta - phi[t] @ theta
        theta = theta + ALPHA * batch.rho[t] * delta * z
        theta = np.sign(theta) * np.maximum(0.0, np.abs(theta) - ALPHA * l1)
        theta = theta * min(1.0, radius / max(np.linalg.norm(theta), 1e-300))
        mean = mean + (theta - mean) * min(1.0, average / (t + average)) if average else theta
        own = (batch.rho[t], batch.target_prob[t], batch.behavior_prob[t])
        passed = batch.discount[t] * cut(*own)
    return theta, mean


SETTLED = [
    ({"average": True}, {"average": 8.0}),
    ({"average": 1.0}, {"average": 1.0}),
    ({"average": True, "l1": 0.05}, {"average": 8.0, "l1": 0.05}),
    ({"radius": 0.3}, {"radius": 0.3}),
    ({"clip": 1.0, "average": True}, {"average": 8.0, "cut": lambda rho, pi, b: min(1.0, rho)}),
    ({"cut": "target"}, {"cut": lambda rho, pi, b: pi}),
    ({"trace": LAMBDA}, {"lam": lambda s: LAMBDA[s]}),
    ({"trace": lambda s: LAMBDA[s]}, {"lam": lambda s: LAMBDA[s]}),
]


@pytest.mark.parametrize("layout", golden.LAYOUTS)
@pytest.mark.parametrize(("setting", "plain"), SETTLED, ids=lambda x: "-".join(x))
def test_axes_against_a_plain_loop(setting, plain, layout):
    batch = golden.rows(layout)
    theta, mean = plain_td(batch, **plain)
    learner = o2td.TD(ALPHA, **{"trace": 0.8, **setting})
    for cuts in ((300,), (100, 137, 300), range(1, 301)):
        learner.reset()
        for low, high in zip((0, *cuts), cuts, strict=False):
            learner.partial_fit(batch[low:high])
        np.testing.assert_allclose(learner.last_theta, theta, atol=1e-13)
        np.testing.assert_allclose(learner.theta, mean, atol=1e-13)
    swept = o2td.sweep([learner.clone()] * 14, batch, every=7)
    np.testing.assert_allclose(swept.theta[:, 3], mean, atol=1e-13)


def test_predictions_and_metrics_are_those_of_the_average():
    problem = o2td.domains.random_walk()
    batch = problem.sample(300, seed=1)
    learner = o2td.TDRC(0.1, average=True).partial_fit(batch)
    assert not np.allclose(learner.theta, learner.last_theta)
    np.testing.assert_allclose(learner.predict(np.eye(problem.d)), learner.theta)
    metric = o2td.metrics.rmse(problem)
    recorded = o2td.sweep([learner.clone()], batch, {"rmse": metric}).values["rmse"][0, -1]
    assert recorded == pytest.approx(o2td.exact.rmse(problem, learner.theta), rel=1e-9)


@pytest.mark.parametrize("kind", [o2td.TD, o2td.GTD2, o2td.TDC, o2td.TDRC, o2td.HTD, o2td.GTD2MP])
@pytest.mark.parametrize(
    "setting",
    [
        {"clip": 1.0},
        {"cut": Target()},
        {"cut": ActionDependent(0.7), "trace": 1.0},
        {"emphasis": "follow-on"},
        {"emphasis": "omega:state", "clip": 0.9},
        {"trace": [0.1, 0.9, 0.5, 0.3, 0.7, 0.2]},
    ],
    ids=str,
)
def test_mean_dynamics_follow_every_axis(kind, setting):
    """The average of compiled steps is what the closed form says."""
    from o2td.checks import all_checks

    learner = kind(**{"trace": 0.7, **setting})
    (drift,) = [check for check in all_checks("learners", learner) if check.name == "drift"]
    drift()


def test_limits_stay_while_traces_are_cut_and_the_gradient_keeps_them_stable():
    problem = o2td.domains.baird()
    assert not o2td.exact.fixed_point(problem, o2td.TD(trace=0.5, clip=1.0)).stable
    for kind in (o2td.TDC, o2td.GTD2):
        assert o2td.exact.fixed_point(problem, kind(trace=0.5, clip=1.0)).stable


def test_what_is_not_defined_is_refused_by_name():
    with pytest.raises(NoAnswerError, match="l1"):
        o2td.exact.fixed_point(o2td.domains.random_walk(), o2td.TD(l1=0.1))
    with pytest.raises(InputError, match="clip"):
        o2td.TD(clip=1.0, cut=Clipped(1.0))
    with pytest.raises(TypeError, match="emphasis"):
        o2td.ETD(emphasis="uniform")
    with pytest.raises(InputError, match="expanded"):
        o2td.GTD2(form="expanded", clip=1.0)
    rows = golden.plain(golden.rows("dense"))
    with pytest.raises(InputError, match="target_prob"):
        o2td.TD(cut="target", trace=0.5).partial_fit(rows)
    with pytest.raises(TypeError, match="positional"):
        o2td.TD(0.1, 0.5)


def test_lambda_by_state_is_saved_and_a_function_is_not(tmp_path):
    learner = o2td.TD(ALPHA, trace=LAMBDA).partial_fit(golden.rows("dense"))
    learner.save(tmp_path / "td.npz")
    assert o2td.TD.load(tmp_path / "td.npz").trace == tuple(LAMBDA)
    with pytest.raises(InputError, match="function"):
        o2td.TD(ALPHA, trace=lambda s: LAMBDA[s]).save(tmp_path / "no.npz")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "learner",
    [
        *(GTD(0.05), GTD2(0.05, trace=0.6), TDRC(0.05), HTD(0.05, trace=0.6)),
        *(GTD2MP(0.05), TDCMP(0.05), o2td.WISGTD(second_step_size=0.05, trace=0.6)),
        *(o2td.TrueOnlineGTD(0.05, trace=0.6), o2td.TrueOnlineHTD(0.05, trace=0.6)),
        o2td.ProximalGTD2MP(0.05, average=False),
    ],
    ids=repr,
)
def test_rows_with_ratio_zero_can_be_left_out(learner, layout):
    """Neither theta nor w moves in them; in other rows both move as before."""

    def second(x):
        if not x.steps:
            return None
        return x.vector("w") if isinstance(x, o2td.learners.StepLearner) else x.w

    batch = LAYOUTS[layout](*random_rows(200, double=False))
    zero = np.flatnonzero(batch.rho == 0.0)
    skipping, plain = learner.clone(skip_zero_ratio=True), learner.clone()
    moved = 0
    for t in range(batch.n):
        before = [(x.theta, second(x)) for x in (skipping, plain)]
        skipping.partial_fit(batch[t : t + 1])
        plain.partial_fit(batch[t : t + 1])
        if t in zero and t > 0:
            np.testing.assert_array_equal(skipping.theta, before[0][0])
            np.testing.assert_array_equal(second(skipping), before[0][1])
            moved += not np.array_equal(second(plain), before[1][1])
    assert moved > 5
    whole = learner.clone(skip_zero_ratio=True).partial_fit(batch)
    np.testing.assert_allclose(whole.theta, skipping.theta, rtol=1e-12, atol=1e-14)

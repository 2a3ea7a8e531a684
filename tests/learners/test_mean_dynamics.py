"""Theory against code: the closed-form mean dynamics and the average of the kernel's own steps.

With a step size of 1e-9 the iterate stays where it starts, so over n rows of the behaviour
`(x_n - x_0) / (alpha n)` is the average of the kernel's directions at x_0. Its error is estimated
from the means of 32 consecutive stretches. Over the 20 problems a learner makes 20 d (or 40 d)
comparisons; the bound of 7.5 standard errors at 31 degrees of freedom has a false-alarm rate of
about 2e-8 each, below 1e-4 for the whole file.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from o2td import Problem, exact
from o2td.emphasis import FollowOn, Omega
from o2td.learners import (
    ABTD,
    ETD,
    GTD,
    GTD2,
    GTD2MP,
    HTD,
    O2TD,
    TD,
    TDC,
    TDCMP,
    TDRC,
    ResidualGradient,
    TreeBackup,
    VTrace,
)

TINY = 1e-9
STRETCHES, LENGTH = 32, 800
BOUND = 7.5

LEARNERS = [
    *(
        TD(TINY),
        TD(TINY, trace=0.8),
        VTrace(TINY, trace=0.9),
        VTrace(TINY, trace=0.9, clip_update=True),
    ),
    *(
        TreeBackup(TINY, trace=0.9),
        ABTD(TINY, zeta=0.8),
        ETD(TINY),
        ETD(TINY, trace=0.6),
        ETD(TINY, trace=0.3, decay=0.4),
    ),
    *(O2TD(TINY, omega=omega) for omega in ("sample", "printed", "state", "moments")),
    *(O2TD(TINY, omega=omega, trace=0.7) for omega in ("sample", "printed", "state", "moments")),
    *(ResidualGradient(TINY, double=False), ResidualGradient(TINY, double=True)),
    *(
        GTD(TINY, second_step_size=2 * TINY),
        GTD(TINY, trace=0.5),
        GTD2(TINY, second_step_size=3 * TINY),
        GTD2(TINY, trace=0.5),
    ),
    *(GTD2(TINY, trace=0.5, form="expanded"), GTD2(TINY, emphasis=FollowOn())),
    *(GTD2(TINY, trace=0.4, emphasis=Omega("sample")), GTD2(TINY, emphasis=Omega("state"))),
    *(TDC(TINY), TDC(TINY, trace=0.6), TDRC(TINY), TDRC(TINY, trace=0.6, regularizer=0.3)),
    *(
        HTD(TINY),
        HTD(TINY, second_step_size=2 * TINY, trace=0.6),
        GTD2MP(TINY),
        TDCMP(TINY, trace=0.5),
    ),
]


def off_policy_problem(seed):
    """Five states, two of them leading out of an episode; gamma^2 max_s sum_a pi^2 / b < 1."""
    rng = np.random.default_rng(seed)
    n, m, d = 5, 3, 3
    P = rng.dirichlet(np.ones(n), size=(n, m))
    discount = np.where(rng.random((n, m, n)) < 0.15, 0.0, 0.65)
    behavior = 0.2 + 0.4 * rng.dirichlet(np.ones(m), size=n)
    target = rng.dirichlet(3 * np.ones(m), size=n)
    assert 0.65**2 * (target**2 / behavior).sum(axis=1).max() < 1.0
    return Problem(
        P,
        rng.normal(size=(n, m, n)),
        discount,
        behavior,
        target,
        rng.normal(size=(n, d)),
        interest=rng.random(n) + 0.5,
    )


PROBLEMS = [off_policy_problem(seed) for seed in range(20)]


@cache
def rows_of(k, seed, double):
    return PROBLEMS[k].sample((STRETCHES + 4) * LENGTH, seed=(seed, k), double=double)


def average_step(learner, k, theta, w, seed):
    """Mean and standard error of the kernel's directions at (theta, w), in units of TINY."""
    learner = learner.clone(initial_theta=theta)
    batch = rows_of(k, seed, bool(getattr(learner, "double", False)))
    names = [name for name in ("theta", "w") if name in learner.vectors]
    learner.partial_fit(batch[: 4 * LENGTH])
    if "w" in names:
        learner._arrays["w"][:] = w
    steps = []
    for k in range(4, STRETCHES + 4):
        before = np.concatenate([learner._arrays[name][0] for name in names])
        learner.partial_fit(batch[k * LENGTH : (k + 1) * LENGTH])
        after = np.concatenate([learner._arrays[name][0] for name in names])
        steps.append((after - before) / (TINY * LENGTH))
    return np.mean(steps, axis=0), np.std(steps, axis=0, ddof=1) / np.sqrt(STRETCHES)


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_mean_dynamics_is_the_average_step(learner):
    worst = 0.0
    for k, problem in enumerate(PROBLEMS):
        rng = np.random.default_rng(k)
        x = rng.normal(size=2 * problem.d)
        dynamics = learner.mean_dynamics(exact.model(problem))
        expected = dynamics.b - dynamics.A @ x[: len(dynamics.b)]
        mean, error = average_step(learner, k, x[: problem.d], x[problem.d :], 1)
        worst = max(worst, np.max(np.abs(mean - expected) / error))
    assert worst < BOUND


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_the_limit_is_a_point_of_rest(learner):
    for k, problem in enumerate(PROBLEMS[:5]):
        dynamics = learner.mean_dynamics(exact.model(problem))
        x = np.linalg.solve(dynamics.A, dynamics.b)
        w = x[problem.d :] if len(x) > problem.d else np.zeros(problem.d)
        mean, error = average_step(learner, k, x[: problem.d], w, 2)
        # Where w = 0 theta hardly moves at all; what is left is the drift of w, of order TINY n.
        assert np.max(np.abs(mean) / np.maximum(error, 1e-5)) < BOUND
        np.testing.assert_allclose(
            exact.fixed_point(problem, learner).theta, x[: problem.d], rtol=1e-8, atol=1e-10
        )

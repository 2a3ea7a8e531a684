"""TIDBD: against a slow reference on every layout, on every weighted learner, and refused elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from o2td import domains, exact, sweep
from o2td.errors import InputError, NoAnswerError
from o2td.learners import (
    ARCTD,
    ETD,
    GTD2,
    O2TD,
    TD,
    TIDBD,
    Learner,
    ResidualGradient,
    TrueOnlineTD,
    VTrace,
)

from .conftest import LAYOUTS, random_rows

RULE = TIDBD(0.05, rate=0.2)


def reference(batch, lam, weight, clip):
    """Feature by feature, as the algorithm is printed, with ratios."""
    theta, beta, h, z = np.zeros((4, batch.d))
    beta[:] = np.log(RULE.initial)
    phi, next_phi = (np.asarray(getattr(batch, name)) for name in ("phi", "next_phi"))
    passed = 0.0
    for t in range(batch.n):
        g, rho = batch.discount[t], min(clip, batch.rho[t])
        later = g * (theta @ next_phi[t]) if g else 0.0
        delta = rho * (batch.reward[t] + later - theta @ phi[t])
        kept = 0.0 if batch.start[t] else passed
        for i in range(batch.d):
            x = phi[t, i]
            beta[i] += RULE.rate * delta * x * h[i]
            alpha = np.exp(beta[i])
            z[i] = kept * z[i] + weight(batch, t) * x
            theta[i] += alpha * delta * z[i]
            h[i] = h[i] * max(0.0, 1.0 - alpha * rho * x * z[i]) + alpha * delta * z[i]
        passed = lam * rho * g
    return theta, np.exp(beta)


def plain(batch, t):
    return 1.0


def omega(batch, t):
    x = np.asarray(batch.phi)[t]
    dphi = x - (batch.discount[t] * np.asarray(batch.next_phi)[t] if batch.discount[t] else 0.0)
    return dphi @ x / (dphi @ dphi) if dphi.any() else 0.0


CASES = {
    "TD": (TD(RULE), 0.0, plain, np.inf),
    "TD traced": (TD(RULE, trace=0.8), 0.8, plain, np.inf),
    "VTrace": (VTrace(RULE, trace=0.8, clip_update=True), 0.8, plain, 1.0),
    "O2TD": (O2TD(RULE, trace=0.5), 0.5, omega, np.inf),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CASES)
def test_against_the_reference(name, layout):
    learner, lam, weight, clip = CASES[name]
    rows = random_rows(300, double=False)
    theta, sizes = reference(LAYOUTS["dense"](*rows), lam, weight, clip)
    found = learner.clone().partial_fit(LAYOUTS[layout](*rows))
    np.testing.assert_allclose(found.theta, theta, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.feature_step_sizes, sizes, rtol=1e-10)
    assert np.ptp(sizes) > 1e-3


def test_a_rate_of_zero_is_a_plain_step_size():
    batch = LAYOUTS["dense"](*random_rows(300, double=False))
    for kind in (TD, ETD):
        found = kind(TIDBD(0.03, rate=0.0), trace=0.6).partial_fit(batch)
        np.testing.assert_allclose(
            found.theta, kind(0.03, trace=0.6).partial_fit(batch).theta, rtol=1e-10
        )


def test_it_is_saved_resumed_swept_and_taken_row_by_row(tmp_path):
    batch = LAYOUTS["table"](*random_rows(400, double=False))
    whole = TD(RULE, trace=0.7).partial_fit(batch)
    part = TD(RULE, trace=0.7).partial_fit(batch[:150])
    part.save(tmp_path / "td.npz")
    again = Learner.load(tmp_path / "td.npz")
    np.testing.assert_array_equal(again.partial_fit(batch[150:]).theta, whole.theta)
    lanes = [TD(0.05), *(TD(TIDBD(0.05, rate), trace=0.7) for rate in (0.0, 0.2, 0.1))]
    swept = sweep(lanes, batch, every=100)
    np.testing.assert_allclose(swept.theta[:, 2], whole.theta, rtol=1e-12)
    single = TD(RULE, trace=0.7, average=True)
    both = TD(RULE, trace=0.7, average=True).partial_fit(batch[:60])
    phi, next_phi = np.asarray(batch.phi), np.asarray(batch.next_phi)
    for t in range(60):
        row = (phi[t], batch.reward[t], next_phi[t], batch.discount[t], batch.rho[t])
        single.learn_one(*row, bool(batch.start[t]))
    np.testing.assert_allclose(single.theta, both.theta, rtol=1e-10)
    np.testing.assert_allclose(single.last_theta, both.last_theta, rtol=1e-10)


def test_where_it_is_refused():
    batch = LAYOUTS["dense"](*random_rows(10, double=False))
    for kind in (GTD2, TrueOnlineTD, ARCTD, ResidualGradient):
        with pytest.raises(InputError, match="weighted learners"):
            kind(TIDBD())
    with pytest.raises(InputError, match=r"second_step_size.*weighted learners"):
        GTD2(0.1, second_step_size=TIDBD())
    for first, later in ((0.1, TIDBD()), (TIDBD(), 0.1)):
        learner = TD(first).partial_fit(batch)
        learner.step_size = later
        with pytest.raises(InputError, match="clone"):
            learner.partial_fit(batch)
    with pytest.raises(InputError, match="initial"):
        TIDBD(0.0)
    with pytest.raises(InputError, match="one step size for all"):
        _ = TD(0.1).feature_step_sizes
    with pytest.raises(NoAnswerError, match="step sizes change"):
        exact.fixed_point(domains.random_walk(), TD(TIDBD()))

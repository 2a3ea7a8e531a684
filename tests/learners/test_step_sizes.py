"""`step_size="auto"`: the features' scale must not decide whether a learner learns."""

from __future__ import annotations

import numpy as np
import pytest

from o2td import domains, exact
from o2td.learners import (
    GTD,
    GTD2,
    HTD,
    TD,
    TDC,
    TDCMP,
    TDRC,
    AlphaBound,
    SwiftBound,
    TrueOnlineHTD,
)
from o2td.transitions import Transitions

PROBLEM = domains.random_walk()
ROWS = PROBLEM.sample(2000, seed=0)


def predictions(learner, scale):
    table = scale * np.asarray(ROWS.table)
    rows = Transitions.from_table(
        table, ROWS.state, ROWS.reward, ROWS.next_state, ROWS.discount, rho=ROWS.rho
    )
    learned = learner.clone().partial_fit(rows)
    assert learned.status.kind == "ok"
    return learned.predict(table)


@pytest.mark.parametrize("kind", [GTD, GTD2, TDC, HTD])
@pytest.mark.parametrize("scale", [1e-9, 0.1, 30.0, 1e9])
def test_predictions_do_not_depend_on_the_scale(kind, scale):
    np.testing.assert_allclose(predictions(kind(), scale), predictions(kind(), 1.0), rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-9, 0.01, 0.2, 30.0])
@pytest.mark.parametrize("regularizer", [0.1, 1.0, 50.0])
def test_a_regularised_correction_learns_from_features_of_any_size(scale, regularizer):
    """Its limit is TD's whatever kappa is, but its path depends on kappa over `|phi|^2`."""
    found = predictions(TDRC(regularizer=regularizer), scale)
    wanted = predictions(TDC(), 1.0)
    assert np.abs(found - wanted).max() < 0.3 * np.abs(wanted).max()


def test_auto_is_what_the_words_say():
    """Against the formula, row by row, with traces, for TD and for TDRC."""
    rows = domains.collision(seed=0).sample(200, seed=2)
    phi, next_phi = rows.phi, rows.next_phi
    for kind, kappa, second in ((TD, 0.0, False), (TDC, 0.0, True), (TDRC, 0.0, True)):
        z, lengths, squares, passed = np.zeros(rows.d), 0.0, 0.0, 0.0
        theta = kind(trace=0.8)
        theta.partial_fit(rows[:0])
        expected = []
        for t in range(rows.n):
            z = (0.0 if rows.start[t] else passed) * z + phi[t]
            passed = 0.8 * rows.rho[t] * rows.discount[t]
            dphi = phi[t] - rows.discount[t] * next_phi[t]
            size = rows.rho[t] * np.linalg.norm(z) * np.linalg.norm(dphi)
            square = phi[t] @ phi[t]
            lengths, squares = lengths + size**2, squares + square
            scale = np.sqrt(lengths / (t + 1)) + squares / (t + 1) + kappa
            own = size + (square + kappa if second else 0.0)
            bound = 1.0 / own if own > 0.0 else np.inf
            expected.append(min(2.0 / (scale * np.sqrt(1.0 + t / 1000.0)), bound))
        names = ("gain", "second_gain", "weight", "decay", "decay_b", "alpha_t")
        out = {name: np.zeros(rows.n) for name in names}
        theta._fill_rows(rows, out)
        np.testing.assert_allclose(out["alpha_t"], expected, rtol=1e-10)


def test_bounds_are_what_the_words_say():
    rows = domains.random_walk("dependent").sample(50, seed=0)
    names = ("gain", "weight", "decay", "alpha_t")

    def sizes(rule):
        out = {name: np.zeros(rows.n) for name in names}
        learner = TD(rule)
        learner.partial_fit(rows[:0])
        learner._fill_rows(rows, out)
        return out["alpha_t"]

    square = (rows.phi**2).sum(axis=1)
    np.testing.assert_allclose(sizes(SwiftBound(0.3, eta=0.2)), np.minimum(0.3, 0.2 / square))
    dphi = rows.phi - rows.discount[:, None] * rows.next_phi
    along = rows.rho * (rows.phi * dphi).sum(axis=1)
    bounds = np.where(along > 0.0, 1.0 / np.where(along > 0.0, along, 1.0), np.inf)
    np.testing.assert_allclose(sizes(AlphaBound()), np.minimum(1.0, np.minimum.accumulate(bounds)))


@pytest.mark.parametrize("rule", [AlphaBound(0.5), SwiftBound(0.1, 0.3)], ids=repr)
def test_rules_are_saved_and_splits_do_not_matter(rule, tmp_path):
    whole = TD(rule, trace=0.5).partial_fit(ROWS)
    part = TD(rule, trace=0.5).partial_fit(ROWS[:700])
    part.save(tmp_path / "td.npz")
    again = TD.load(tmp_path / "td.npz")
    assert again.step_size == rule
    np.testing.assert_array_equal(again.partial_fit(ROWS[700:]).theta, whole.theta)


@pytest.mark.parametrize("kind", [HTD, TrueOnlineHTD, TDCMP])
@pytest.mark.parametrize("seed", [101, 103, 9001])
def test_cautious_learners_do_not_drift_away_where_the_discount_is_near_one(kind, seed):
    """With the steps of other learners these end at errors of 9 to 1e40 times that of predicting 0."""
    problem = domains.garnet(seed=seed, discount=0.99)
    assert exact.fixed_point(problem, kind()).stable
    learned = kind().partial_fit(problem.sample(50_000, seed=0))
    assert exact.rmse(problem, learned.theta) < 1.2 * exact.rmse(problem, np.zeros(problem.d))


class Careless(HTD):
    """HTD with the steps of other learners."""

    cautious = False


def test_cautious_steps_are_a_share_of_the_others():
    """`min(1, 4 (1 - gamma))`, gamma the mean discount so far and of one row with discount 0.

    On rows with one feature whose errors do not depend on what was learned, so that the moves of w,
    which begins at 0, are in the proportion of the step sizes.
    """
    phi, n = np.eye(400), 200
    rows = Transitions(phi[:n], np.ones(n), phi[n:], discount=0.95)
    careful, careless = (kind().partial_fit(rows).w[:n] for kind in (HTD, Careless))
    t = np.arange(1.0, n + 1)
    share = np.minimum(1.0, 4.0 * (1.0 + 0.05 * t) / t)
    np.testing.assert_allclose(careful, share * careless, rtol=1e-12)
    assert share[0] == 1.0
    assert share[-1] < 0.25

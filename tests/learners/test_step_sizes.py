"""`step_size="auto"`: the features' scale must not decide whether a learner learns."""

from __future__ import annotations

import numpy as np
import pytest

from o2td import domains
from o2td.learners import GTD, GTD2, HTD, TDC, TDRC
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


def test_step_sizes_are_what_the_words_say():
    features = np.array([[3.0, 4.0], [0.0, 1.0]])
    rows = Transitions(features, np.ones(2), np.zeros((2, 2)), discount=0.0)
    names = ("gain", "second_gain", "weight", "decay", "decay_b")

    def sizes(learner):
        out = {name: np.zeros(2) for name in names}
        learner._allocate(2)
        learner._fill_rows(rows, out)
        return out["gain"].tolist(), out["second_gain"].tolist()

    assert sizes(GTD2()) == ([0.1 / 25] * 2, [0.1 / 25] * 2)
    assert sizes(GTD()) == ([0.1 / 625] * 2, [0.1] * 2)
    assert sizes(GTD(second_step_size=0.5)) == ([0.1 / 625] * 2, [0.5] * 2)
    assert sizes(TDRC(regularizer=40.0)) == ([0.1 / 25] * 2, [0.1 / 40] * 2)
    assert sizes(TDRC()) == ([0.1 / 25] * 2, [0.1 / 25] * 2)

"""What learners and sweeps refuse, in the words that say what to do; and files that are not theirs."""

from __future__ import annotations

import numpy as np
import pytest

import o2td
from o2td import Transitions, learners, metrics, sweep
from o2td.emphasis import FollowOn, Omega
from o2td.errors import FormatError, InputError
from o2td.learners import Learner

from .conftest import as_rows, as_table, random_rows

TABLE, BATCH = random_rows(12, d=3, states=5, double=False)
ROWS, STATES = as_rows(TABLE, BATCH), as_table(TABLE, BATCH)
NORM = metrics.Quadratic("norm", np.eye(3), np.zeros(3), 0.0)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: o2td.GEMETD(clip=1.0), "GEMETD is not defined with clip: leave it out"),
        (lambda: o2td.TrueOnlineGTD(trace=[0.1, 0.2]), "TrueOnlineGTD takes one number as trace"),
        (lambda: o2td.TD(clip=1.0, cut="target"), r"clip=1\.0 is short for cut=Clipped\(1\.0\)"),
        (lambda: o2td.TD(cut="nothing"), "cut"),
        (lambda: o2td.TD(average=0.5), r"average must be True, False or a number from 1, got 0\.5"),
        (lambda: o2td.TD(step_size="fast"), "step_size"),
        (lambda: o2td.TD(replicates=1), "replicates must be 0 or at least 2"),
        (lambda: FollowOn(decay=1.5), r"decay must be in \[0, 1\] or None, got 1\.5"),
        (lambda: FollowOn(decay=-0.5), r"decay must be in \[0, 1\] or None, got -0\.5"),
        (lambda: o2td.TD(0.1).feature_step_sizes, "has one step size for all features: give step_size"),
        (lambda: o2td.TD(0.1, trace=[0.5, 0.5]).partial_fit(STATES), "trace has 2 numbers, one per"),
        (lambda: o2td.TD(0.1, trace=lambda s: s * 1.0).partial_fit(STATES), "must give a number in"),
        (lambda: o2td.TD(0.1, trace=lambda s: 0.5).partial_fit(STATES), "must give a number in"),
        (lambda: o2td.TreeBackup(0.1).partial_fit(Transitions(np.eye(3), 1.0, np.eye(3), 0.5)),
         "needs target_prob in the transitions"),
        (lambda: o2td.ResidualGradient(0.1, double=True).partial_fit(ROWS), "needs next_phi_2"),
        (lambda: o2td.TD(0.1).partial_fit(TABLE), "partial_fit takes Transitions, got ndarray"),
        (lambda: o2td.TD(learners.TIDBD(), average=True, replicates=8).partial_fit(ROWS),
         "replicates are not defined with step_size"),
        (lambda: o2td.TD(0.1).partial_fit(ROWS).predict(np.eye(3), interval=0.9), "replicates|interval"),
        (lambda: o2td.TD(average=True, replicates=8).partial_fit(ROWS).predict(np.eye(3), interval=1.0),
         "interval must be between 0 and 1"),
        (lambda: sweep(TABLE, ROWS), "sweep needs at least one learner, in a list"),
        (lambda: sweep([], ROWS), "sweep needs at least one learner, in a list"),
        (lambda: sweep([o2td.TD(0.1), 3], ROWS), "lane 1 of the sweep is 3, not a learner"),
        (lambda: sweep([o2td.TD(0.1)], TABLE), "sweep takes Transitions, or a list of them"),
        (lambda: sweep([o2td.TD(0.1)], [ROWS, TABLE]), "sweep takes Transitions, or a list of them"),
        (lambda: sweep([o2td.TD(0.1)], ROWS, [{}]), "one stream takes one mapping of metrics"),
        (lambda: sweep([o2td.TD(0.1)], [ROWS], [3]), "metrics must be a mapping of names to metrics"),
        (lambda: sweep([o2td.TD(0.1)], ROWS, 3), "metrics are a mapping"),
        (lambda: sweep([o2td.TD(0.1)], ROWS, {"a": 3}, 2), "metric 'a' is 3; take one of o2td"),
        (lambda: sweep([o2td.TD(0.1)], [ROWS, ROWS[:5]]), "sweep takes streams of one length"),
        (lambda: sweep([o2td.TD(0.1)], [ROWS, ROWS], [{"a": NORM}, {"b": NORM}], 2), "the same names"),
    ],
)  # fmt: skip
def test_refusals(call, said):
    with pytest.raises(InputError, match=said):
        call()


def test_regressed_moments_cannot_go_on_from_those_of_states():
    learner = o2td.O2TD(0.1, omega="moments").partial_fit(STATES)
    with pytest.raises(InputError, match="began with states; this batch has none: pass state"):
        learner.partial_fit(Transitions(ROWS.phi, ROWS.reward, ROWS.next_phi, ROWS.discount))


SAVED = [
    o2td.TD(0.1, trace=0.5),
    o2td.TD(learners.PowerDecay(0.5, 0.6), clip=0.8, initial_theta=np.array([1.0, 2.0, 3.0])),
    o2td.TD(learners.TIDBD(), trace=0.3),
    o2td.GTD2(0.1, emphasis=FollowOn(0.4), cut=learners.Target()),
    o2td.O2TD(0.1, omega="state"),
    o2td.O2TD(0.1, omega="moments"),
    o2td.GTD2(0.1, emphasis=Omega("moments")),
    o2td.TrueOnlineTD(0.1, trace=0.5),
    o2td.PERETD(0.1, period=3),
    o2td.TruncatedETD(0.1, length=2),
    o2td.TD(0.1, average=True, replicates=8),
    o2td.ARCTD(),
]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("learner", SAVED, ids=repr)
def test_what_is_saved_goes_on_as_if_it_had_not_been(learner, sparse, tmp_path):
    rows = as_table(TABLE, BATCH, sparse)
    whole = learner.clone().partial_fit(rows)
    half = learner.clone().partial_fit(rows[:7])
    half.save(tmp_path / "half.npz")
    again = Learner.load(tmp_path / "half.npz")
    assert type(again) is type(learner)
    assert repr(again) == repr(half)
    assert again.steps == 7
    np.testing.assert_array_equal(again.theta, half.theta)
    np.testing.assert_allclose(again.partial_fit(rows[7:]).theta, whole.theta, rtol=1e-13)
    with pytest.raises(FormatError, match=r"half\.npz holds a .*, not a HTD"):
        o2td.HTD.load(tmp_path / "half.npz")
    fresh = learner.clone()
    fresh.save(tmp_path / "fresh.npz")
    assert type(learner).load(tmp_path / "fresh.npz").steps == 0

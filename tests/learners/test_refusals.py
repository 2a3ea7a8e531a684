"""What learners and sweeps refuse, in the words that say what to do; and files that are not theirs."""

from __future__ import annotations

import numpy as np
import pytest

import o2td
from o2td import Transitions, learners, metrics, sweep
from o2td.emphasis import FollowOn, Omega
from o2td.errors import FormatError, InputError
from o2td.learners import Learner, cuts, loaded

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


def test_cuts_are_equal_by_kind_and_number():
    assert cuts.Clipped(0.5) == cuts.Clipped(0.5)
    assert cuts.Clipped(0.5) != cuts.Clipped(0.6)
    assert cuts.Ratio() != cuts.Target()
    assert cuts.as_cut("ratio") == cuts.Ratio() == cuts.as_cut(None)
    assert cuts.as_cut("target") == cuts.Target()
    assert cuts.as_cut(None, 0.7) == cuts.Clipped(0.7)


SAVED = [
    o2td.TD(0.1, trace=0.5),
    o2td.TD(learners.PowerDecay(0.5, 0.6), clip=0.8, initial_theta=np.array([1.0, 2.0, 3.0])),
    o2td.TD(learners.TIDBD(), trace=0.3),
    o2td.GTD2(0.1, emphasis=FollowOn(0.4), cut=cuts.Target()),
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


def spoiled(change, learner=None):
    """What `check_loaded` says of a learner whose state was changed."""
    made = (o2td.TD(0.1, trace=0.5) if learner is None else learner).partial_fit(
        as_rows(TABLE, BATCH, sparse=True)
    )
    loaded.check_loaded(made)
    change(made)
    with pytest.raises((ValueError, KeyError)) as caught:
        loaded.check_loaded(made)
    return str(caught.value)


def test_states_that_no_learner_has_are_refused():
    def put(name, where, value):
        def change(made):
            made._arrays[name] = made._arrays[name].copy()
            made._arrays[name][where] = value

        return change

    assert spoiled(put("theta", (0, 1), np.nan)) == "theta is not finite"
    assert spoiled(put("z", (0, 1), np.inf)) == "z is not finite"
    for entry in (-1, 3):
        assert spoiled(put("active", (0, 0), entry)) == "active is out of range"
    for size in (-1, 4):
        assert spoiled(put("size", (0, 0), size)) == "size is out of range"

    def twice(made):
        made._arrays["active"][0, :2] = 1
        made._arrays["size"][0, 0] = 2

    assert spoiled(twice) == "active does not list where z is not zero"

    def shorter(made):
        made._arrays["theta"] = made._arrays["theta"][:, :2]

    assert "has the wrong shape or type" in spoiled(shorter)

    def narrower(made):
        made._arrays["z"] = made._arrays["z"].astype(np.float32)

    assert spoiled(narrower) == "z has the wrong shape or type"
    assert spoiled(lambda made: made._arrays.pop("z")).startswith("it holds ")
    assert spoiled(lambda made: made._memory.update(more=np.zeros(2))) != ""


def test_older_files_have_no_bound_of_the_trace():
    made = o2td.TD(0.1, trace=0.5).partial_fit(ROWS)
    made._arrays.pop("bound")
    loaded.check_loaded(made)
    assert made._arrays["bound"].shape == (1, 1)
    assert made._arrays["bound"][0, 0] == np.abs(made._arrays["z"]).max()


def test_parameters_in_files():
    for value in (
        3,
        0.5,
        None,
        "auto",
        learners.PowerDecay(0.5, 0.6),
        cuts.Clipped(0.5),
        FollowOn(0.3),
    ):
        again = loaded.from_json(loaded.to_json(value))
        assert repr(again) == repr(value)
    assert type(loaded.to_json(np.float64(0.5))) is float
    with pytest.raises(InputError, match="a function of states cannot be saved"):
        loaded.to_json(lambda s: s)

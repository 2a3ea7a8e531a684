"""What is read from files: states that no learner has are refused, and parameters come back."""

from __future__ import annotations

import numpy as np
import pytest

import o2td
from o2td import learners
from o2td.emphasis import FollowOn
from o2td.errors import InputError
from o2td.learners import loaded

from .conftest import as_rows, random_rows

TABLE, BATCH = random_rows(12, d=3, states=5, double=False)


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
    made = o2td.TD(0.1, trace=0.5).partial_fit(as_rows(TABLE, BATCH))
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
        learners.Clipped(0.5),
        FollowOn(0.3),
    ):
        again = loaded.from_json(loaded.to_json(value))
        assert repr(again) == repr(value)
    assert type(loaded.to_json(np.float64(0.5))) is float
    with pytest.raises(InputError, match="a function of states cannot be saved"):
        loaded.to_json(lambda s: s)

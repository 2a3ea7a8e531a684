"""Every option on every learner: it does something, alone and with the others, or is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

import o2td
from o2td.errors import InputError
from o2td.learners import MEMBERS, PowerDecay

AXES = {
    "clip": 0.5,
    "cut": "target",
    "emphasis": "follow-on",
    "average": True,
    "l1": 0.05,
    "radius": 1e-3,
    "step_size": PowerDecay(0.05, 0.3),
}


@pytest.fixture(scope="module")
def rows() -> o2td.Transitions:
    return o2td.domains.collision().sample(300, seed=1, double=True)


def taken(kind: type) -> dict[str, object]:
    """The options that a learner takes; it refuses all others by their names."""
    found, refused = {}, {}
    for name, value in {"trace": 0.5, **AXES}.items():
        try:
            kind(**{name: value})
            found[name] = value
        except (InputError, TypeError) as error:
            refused[name] = str(error)
    assert all(name in told for name, told in refused.items()), refused
    return found


@pytest.mark.parametrize("kind", MEMBERS, ids=lambda kind: kind.__name__)
def test_options_do_something_and_combine(kind: type, rows: o2td.Transitions) -> None:
    given = taken(kind)
    plain = {"step_size": 0.05} | {k: given[k] for k in ("trace",) if k in given}
    if kind is o2td.ProximalGTD2MP:  # it has both by default
        plain |= {"average": False, "l1": 0.0}
    if kind is o2td.ARCTD:
        plain |= {"clip": None, "average": False}
    before = kind(**plain).partial_fit(rows).theta
    if "trace" in given:
        assert (before != kind(**plain | {"trace": 0.0}).partial_fit(rows).theta).any()
    for option, value in given.items():
        if option == "trace" or (kind is o2td.ABTD and option == "emphasis"):
            continue  # at lambda = 1, of which ABTD is a cut, the follow-on emphasis is the interest
        after = kind(**plain | {option: value}).partial_fit(rows).theta
        assert (before != after).any(), option
    if "clip" in given:
        given.pop("cut", None)
    learner = kind(**given).partial_fit(rows)
    assert learner.status.kind == "ok"
    assert np.linalg.norm(learner.theta) <= given.get("radius", np.inf) * (1.0 + 1e-12)

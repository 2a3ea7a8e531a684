"""Small parts of learners by themselves: step sizes, names of weightings, memory."""

from __future__ import annotations

import numpy as np
import pytest

from o2td import TD, TDC, Transitions
from o2td.errors import InputError
from o2td.learners import MEMBERS, PowerDecay
from o2td.learners.step_sizes import Gauge, Measured, as_step_size, rule_of


def filled(value, first=0, size=(1.0, 1.0, 1.0), square=(1.0, 1.0, 1.0)):
    out = np.full(len(size), np.nan)
    measured = Measured(np.array(size), np.array(size), np.array(square))
    rule_of(value).fill(Gauge(first, {}, lambda: measured), out)
    return out.tolist()


def test_step_sizes_of_rows():
    assert filled(0.25) == [0.25, 0.25, 0.25]
    assert filled("auto", 0, (0.0, 4.0, 0.0), (0.0, 0.0, 0.0))[:2] == [0.0, 0.25]
    assert filled(PowerDecay(2.0, 1.0), 3) == [2.0 / 4, 2.0 / 5, 2.0 / 6]


@pytest.mark.parametrize(
    ("given", "taken"),
    [(1, 1.0), (0, 0.0), ("auto", "auto"), ({"c": 2, "p": 0.5}, PowerDecay(2.0, 0.5))],
)
def test_step_sizes_are_taken(given, taken):
    assert as_step_size("step_size", given) == taken


@pytest.mark.parametrize(
    "given",
    [True, "0.1", "Auto", None, -0.1, np.nan, np.inf, {"c": 1.0}, {"c": 1.0, "p": 1.0, "q": 1.0}],
)
def test_step_sizes_are_refused(given):
    with pytest.raises(InputError, match="a_name must be a number >= 0"):
        as_step_size("a_name", given)


def test_features_that_do_not_fit_into_memory_are_refused(monkeypatch):
    """As the allocation of a learner's vectors fails; nothing of them is left."""
    real = np.zeros

    def full(shape, *arguments, **options):
        if np.prod(shape) >= 1000:
            raise MemoryError
        return real(shape, *arguments, **options)

    learner = TD(0.1)
    rows = Transitions(np.ones((2, 1000)), 1.0, np.ones((2, 1000)), 0.9)
    monkeypatch.setattr(np, "zeros", full)
    with pytest.raises(InputError, match="1000 features do not fit into memory"):
        learner.partial_fit(rows)
    monkeypatch.undo()
    assert learner.status.kind == "new"
    assert learner.theta.size == 0
    assert learner.partial_fit(rows).status.kind == "ok"


@pytest.mark.parametrize("kind", MEMBERS, ids=lambda kind: kind.__name__)
def test_dir_of_a_learner_shows_what_a_user_calls(kind):
    learner = kind()
    calls = {"fit", "partial_fit", "learn_one", "predict", "theta", "last_theta", "steps", "status"}
    calls |= {"parameters", "get_params", "set_params", "clone", "reset", "save", "load"}
    calls |= {"mean_dynamics"}
    shown = {name for name in dir(learner) if not name.startswith("_")}
    assert calls | set(kind.parameters()) <= shown
    assert len(shown - calls - set(kind.parameters())) <= 4
    assert shown.isdisjoint({"family", "vectors", "trace_decay", "undefined", *kind.undefined})


def test_tdc_in_both_forms_is_its_equation(monkeypatch: pytest.MonkeyPatch) -> None:
    """`delta z - gamma (1 - lambda) (z.w) phi'`, or for any trace with `phi` and z apart."""
    plain = TDC(0.1, trace=0.25).member()
    assert (plain.theta_delta_z, plain.theta_z_next, plain.w_w_phi) == (1.0, 0.75, -1.0)
    monkeypatch.setattr(TDC, "_ordinary", False)
    whole = TDC(0.1, trace=0.25).member()
    assert (whole.theta_delta_z, whole.theta_w_phi, whole.theta_z_phi) == (1.0, -1.0, 1.0)
    assert (whole.theta_z_next, whole.w_w_phi) == (1.0, -1.0)

"""Parameters by name: a class's own and those that it passes on, and those that it does not have."""

from __future__ import annotations

import inspect

import pytest

from o2td.errors import ParameterError
from o2td.learners import TD, VTrace
from o2td.parameters import whole_signature
from o2td.solvers import LSTD, LSTDQ, SOTD, Averager, BellmanResidual, DantzigTD, MonteCarlo, Solver


def test_a_class_takes_its_own_parameters_and_those_that_it_passes_on():
    names = list(whole_signature(TD).parameters)
    assert names[0] == "step_size"
    assert {"trace", "clip", "cut", "emphasis", "average", "l1", "radius"} < set(names)
    assert "self" not in names
    assert "axes" not in names
    vtrace = list(whole_signature(VTrace).parameters)
    assert vtrace[0] == "step_size"
    assert "cut" not in vtrace
    assert "clip" in vtrace


SOLVERS = [LSTD, LSTDQ, SOTD, MonteCarlo, DantzigTD, BellmanResidual, Averager]


@pytest.mark.parametrize("kind", SOLVERS)
def test_a_solver_refuses_parameters_that_it_does_not_have_under_its_name(kind):
    with pytest.raises(ParameterError, match=f"{kind.__name__} has no parameter 'tracee'; it has"):
        kind(tracee=0.5)
    most = len(kind.parameters())
    with pytest.raises(ParameterError, match=f"{kind.__name__} takes .*{most + 1} were given"):
        kind(*[0.0] * (most + 1))


def test_a_solver_shows_its_signature():
    assert list(inspect.signature(LSTD).parameters) == ["trace", "ridge", "rho_on"]
    assert LSTD(0.5, 0.1).get_params() == {"trace": 0.5, "ridge": 0.1, "rho_on": "difference"}
    assert not inspect.signature(Averager).parameters
    assert not inspect.signature(Solver).parameters


def test_a_solver_of_ones_own_passes_parameters_on():
    class Own(LSTD):
        def __init__(self, scale=1.0, **given):
            self.scale = scale
            super().__init__(**given)

    class Any(LSTD):
        def __init__(self, *given, **named):
            super().__init__(*given, **named)

    own = Own(2.0, trace=0.5)
    assert own.get_params() == {"scale": 2.0, "trace": 0.5, "ridge": 0.0, "rho_on": "difference"}
    assert own.clone(ridge=1.0).ridge == 1.0
    assert Any(0.5, ridge=1.0).ridge == 1.0
    with pytest.raises(ParameterError, match="Own has no parameter 'decay'"):
        Own(decay=1.0)

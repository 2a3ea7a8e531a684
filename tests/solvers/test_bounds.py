"""Every number that a solver takes: accepted and kept at its bounds and inside, refused beyond."""

from __future__ import annotations

import numpy as np
import pytest

import o2td
from o2td.errors import InputError

SMALL = 1e-3
NOT_NEGATIVE = (0.0, SMALL, 0.5, 1.0, 7.5), (-SMALL, np.nan, np.inf, "1")
UNIT = (0.0, SMALL, 0.5, 1.0), (-SMALL, 1.0 + SMALL, np.nan)
COUNT = (1, 2, 50), (0, -1, 1.5)
NUMBERS = {
    o2td.LSTD: {"ridge": NOT_NEGATIVE, "trace": UNIT},
    o2td.LSTDQ: {"ridge": NOT_NEGATIVE},
    o2td.LSETD: {"ridge": NOT_NEGATIVE, "trace": UNIT},
    o2td.DifferentialLSTD: {"ridge": NOT_NEGATIVE, "trace": UNIT},
    o2td.BellmanResidual: {"ridge": NOT_NEGATIVE},
    o2td.MonteCarlo: {"ridge": NOT_NEGATIVE},
    o2td.DantzigTD: {"ridge": NOT_NEGATIVE, "epsilon": NOT_NEGATIVE},
    o2td.SOTD: {"ridge": NOT_NEGATIVE, "tolerance": NOT_NEGATIVE, "max_iterations": COUNT},
    o2td.DiagonalSOTD: {"tolerance": NOT_NEGATIVE, "max_iterations": COUNT},
}
CASES = [(kind, name) for kind, numbers in NUMBERS.items() for name in numbers]


@pytest.mark.parametrize(("kind", "name"), CASES, ids=lambda x: getattr(x, "__name__", x))
def test_numbers_at_their_bounds(kind, name):
    good, bad = NUMBERS[kind][name]
    for one in good:
        solver = kind(**{name: one})
        assert getattr(solver, name) == one
        assert type(getattr(solver, name)) is type(one)
        assert solver.get_params()[name] == one
    for one in bad:
        with pytest.raises(InputError, match=name):
            kind(**{name: one})


@pytest.mark.parametrize("kind", NUMBERS, ids=lambda x: x.__name__)
def test_nothing_that_a_solver_is_given_is_lost(kind):
    """Each argument is kept under its name, beside the defaults of all others."""
    plain = kind().get_params()
    for name, (good, _) in NUMBERS[kind].items():
        assert kind(**{name: good[1]}).get_params() == {**plain, name: good[1]}

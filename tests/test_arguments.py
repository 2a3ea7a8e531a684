"""Numbers that pass the door leave it as Python's own, and what is no real number does not pass."""

from __future__ import annotations

import re
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import o2td
from o2td import evaluation
from o2td.arguments import as_float, number, real, unit, whole
from o2td.emphasis import FollowOn, Omega
from o2td.errors import InputError

REAL = (np.float16(0.5), np.float32(0.5), np.longdouble(0.5), Fraction(1, 2))
NOT_REAL = (
    *(np.complex128(0.1 + 5j), 0.1j, b"0.1", bytearray(b"0.1"), "0.1"),
    *(np.array("0.1"), np.array(True), np.bool_(True), True, np.timedelta64(1, "s"), float("nan")),
)


@pytest.mark.parametrize("value", REAL, ids=repr)
def test_numbers_of_every_kind_become_floats_without_a_warning(value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [number("x", value, low=0.0), number("x", value, above=0.0), number("x", value)]
        found += [unit("x", value), real("x", value), as_float(value)]
        assert all(type(one) is float and one == 0.5 for one in found)
        learner = o2td.TD(value, trace=value, clip=value, radius=value, l1=value)
        solver = o2td.LSTD(value, ridge=value)
    for made in (learner, solver):
        held = made.get_params()
        assert all(type(held[k]) is float for k in held if k in ("clip", "radius", "l1", "ridge"))
        assert type(held["trace"]) is float


@pytest.mark.parametrize("value", [10**400, Fraction(10**400), np.longdouble("1e4000")], ids=type)
def test_numbers_beyond_floats_are_infinite_and_refused_where_they_must_be_finite(value):
    assert real("x", value) == float("inf") == -real("x", -value)
    with pytest.raises(InputError, match="x must be a finite number"):
        number("x", value)


def test_whole_numbers_become_ints():
    found = whole("x", np.int8(3), 0, 2**40)
    assert type(found) is int
    with pytest.raises(InputError, match="from 0 to 2"):
        whole("x", np.uint8(3), 0, 2)


@pytest.mark.parametrize("value", NOT_REAL, ids=repr)
@pytest.mark.parametrize(
    "take",
    [
        o2td.TD,
        lambda x: o2td.TDC(0.1, second_step_size=x),
        lambda x: o2td.PowerDecay(x, 0.5),
        lambda x: o2td.PowerDecay(0.5, x),
        FollowOn,
        lambda x: Omega("sample", x),
        lambda x: Omega("sample", 0.1, x),
    ],
)
def test_step_sizes_and_decays_take_real_numbers_only(take, value):
    with pytest.raises(InputError):
        take(value)


@pytest.mark.parametrize("value", REAL, ids=repr)
def test_an_evaluation_takes_them(value):
    log = pd.DataFrame({"episode": range(60), "state": 0, "reward": [0.0, 1.0] * 30})
    log["terminated"], log["rho"] = True, [0.5, 1.5] * 30
    plain = evaluation.evaluate(log, discount=0.5, confidence=0.5)
    given = evaluation.evaluate(log, discount=value, confidence=value)
    dated = re.compile(r"\d\d:\d\d:\d\d")
    assert dated.sub("", str(given)) == dated.sub("", str(plain))


@pytest.mark.parametrize("value", [True, "0.5", np.complex128(0.5), 1.5], ids=repr)
def test_an_evaluation_refuses_other_discounts(value):
    log = pd.DataFrame({"episode": [0], "reward": [1.0], "terminated": True, "rho": 1.0})
    with pytest.raises(InputError, match=r"discount: .* is not in \[0, 1\]"):
        evaluation.evaluate(log, discount=value)

"""Weightings by name, their memory, and ratios of what may be nothing."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.emphasis import FollowOn, Omega, Uniform, as_emphasis, grown, ratio
from o2td.errors import InputError


class Named:
    """Something that is no text, but would be written as the name of a weighting."""

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("uniform", Uniform()),
        ("follow-on", FollowOn()),
        ("follow_on", FollowOn()),
        ("follow-on:0.5", FollowOn(0.5)),
        ("omega", Omega("sample")),
        ("omega:", Omega("sample")),
        ("omega:state", Omega("state")),
        (Omega("printed"), Omega("printed")),
    ],
    ids=repr,
)
def test_weightings_by_name(name, taken):
    assert as_emphasis(name) == taken
    assert hash(as_emphasis(name)) == hash(taken)
    assert as_emphasis(name) != FollowOn(0.25)


@pytest.mark.parametrize(
    "name",
    ["", "uniform:x", "plain", "omega-state", 3, None]
    + [Named(name) for name in ("uniform", "follow-on", "omega")],
    ids=str,
)
def test_other_names_of_weightings_are_refused(name):
    with pytest.raises(InputError, match="emphasis must be"):
        as_emphasis(name)


def test_memory_grows_and_keeps_what_it_holds():
    memory = {}
    first = grown(memory, "sums", (2, 3))
    first += 1.0
    assert grown(memory, "sums", (2, 3)) is first
    assert grown(memory, "sums", (1, 3)) is first
    np.testing.assert_array_equal(
        grown(memory, "sums", (4, 3)), [[1.0] * 3, [1.0] * 3, [0.0] * 3, [0.0] * 3]
    )


def test_a_ratio_is_nothing_where_nothing_is_below():
    found = ratio(np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 0.0, -1.0, 0.5]))
    np.testing.assert_array_equal(found, [0.5, 0.0, 0.0, 8.0])

"""Sums by state: rows that are held, and sums that are joined."""

from __future__ import annotations

import numpy as np
import pytest

from o2td import Transitions
from o2td.errors import InputError
from o2td.solvers import aggregate
from o2td.solvers.aggregate import HeldRows, StateSums, collect

TABLE = np.array([[1.0, 0.0], [0.5, 2.0], [0.0, 3.0], [-1.0, 1.0]])


def rows(state, reward=1.0, table=TABLE, **more):
    state = np.asarray(state)
    given = {"discount": 0.5, "rho": 0.8} | more
    return Transitions.from_table(table, state, reward, np.roll(state, -1), **given)


def test_held_rows_are_those_of_their_states():
    held = HeldRows(np.array([2, 5, 9]), TABLE[:3])
    np.testing.assert_array_equal(held[np.array([9, 2])], TABLE[[2, 0]])


def test_sums_that_overflow_when_they_are_joined():
    large = rows([0, 1], reward=1e149, rho=1e149)
    one, two = collect(large), collect(large)
    assert isinstance(one.then(collect(rows([0, 1]))), StateSums)
    for part in (one, two):
        part.reward *= 1e10
    with np.errstate(over="ignore"), pytest.raises(InputError):
        one.then(two)


@pytest.mark.parametrize("last", [3, 4, 5])
def test_a_table_is_common_if_it_has_the_states_that_others_hold(last):
    more = np.vstack([TABLE, 7.0 * TABLE[:2]])
    table, other = collect(rows([0, 1, 2])), collect(rows([1, last], table=more))
    for one, two in ((table, other), (other, table)):
        common = aggregate._common_table(one, two)
        np.testing.assert_array_equal(common, more if last > 3 or one is other else TABLE)
    other = collect(rows([1, last], table=more + 1.0))
    assert aggregate._common_table(table, other) is None

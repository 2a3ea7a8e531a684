"""Edges that a changed line would move unnoticed: found by mutating the solvers."""

from __future__ import annotations

import numpy as np
import pytest

import o2td
from o2td import Transitions
from o2td.errors import InputError


def test_choices_are_checked_by_every_solver_that_has_them() -> None:
    for kind in (o2td.PluginOptimal, o2td.SOTD, o2td.DiagonalSOTD, o2td.BellmanResidual):
        with pytest.raises(InputError, match="weighting"):
            kind(weighting="odd")


def test_actions_have_one_integer_a_row() -> None:
    phi = np.ones((3, 2))
    for action in ([0, 1], [0.0, 1.0, 0.0]):
        with pytest.raises(InputError, match="action must be integers"):
            o2td.LSTDQ.features(phi, action, 2)


def test_emphasis_ends_with_the_discount_also_between_parts() -> None:
    """After a row with discount 0 no follow-on weight is left, whatever `decay` says."""
    rng = np.random.default_rng(0)
    discount = np.full(8, 0.9)
    discount[3] = 0.0
    batch = Transitions(
        rng.normal(size=(8, 2)), rng.normal(size=8), rng.normal(size=(8, 2)), discount,
        rho=rng.uniform(0.5, 1.5, 8), start=[True, *[False] * 7],
    )  # fmt: skip
    whole = o2td.LSETD(trace=0.5, decay=0.5).fit(batch)
    parts = o2td.LSETD(trace=0.5, decay=0.5).update(batch[:4])
    parts.merge(o2td.LSETD(trace=0.5, decay=0.5).update(batch[4:]))
    np.testing.assert_allclose(parts.solve().theta, whole.theta, rtol=1e-12)


def test_a_direct_answer_counts_no_iterations() -> None:
    batch = Transitions(np.eye(2), [1.0, 2.0], np.eye(2), discount=0.5)
    assert o2td.LSTD().fit(batch).solution.iterations == 0


def test_a_closed_set_without_discount_has_the_smallest_of_its_values() -> None:
    """`v_0 - v_1 = 1`, and nothing says how large they are."""
    batch = Transitions.from_table(np.eye(2), [0, 1], [1.0, -1.0], [1, 0], discount=1.0)
    solver = o2td.PluginOptimal().fit(batch)
    np.testing.assert_allclose(solver.theta, [0.5, -0.5], atol=1e-12)

"""Sums over time that are kept for the next method."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import o2td
from o2td import chain, exact
from o2td.exact import shared_model
from o2td.exact.shared_model import SharedModel

from .conftest import make_problem


@pytest.fixture
def solves(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The shapes of what was solved for, either way."""
    made: list[Any] = []
    for name in ("solve", "solve_transposed"):
        original = getattr(chain, name)

        def counted(K: Any, B: Any, original: Any = original) -> Any:
            made.append(B.shape)
            return original(K, B)

        monkeypatch.setattr(chain, name, counted)
    return made


def test_a_sum_is_computed_once_for_learners_and_rewards(solves: list[Any]) -> None:
    plain = exact.model(make_problem(seed=5))
    kept = SharedModel.of(plain)
    solves.clear()
    learners = (o2td.TD(trace=0.5), o2td.GTD2(trace=0.5), o2td.TDC(trace=0.5))
    other = replace(kept, reward=np.arange(len(kept.reward), dtype=np.float64))
    found = [learner.mean_dynamics(m) for learner in learners for m in (kept, other)]
    wide = [shape for shape in solves if len(shape) == 2]
    assert len(wide) == 2  # for the features with the ratio, and without it
    expected = [learner.mean_dynamics(plain) for learner in learners]
    for one, two in zip(found[::2], expected, strict=True):
        np.testing.assert_array_equal(one.A, two.A)
        np.testing.assert_array_equal(one.b, two.b)
    for one, two in zip(found[::2], found[1::2], strict=True):
        np.testing.assert_array_equal(one.A, two.A)
        assert not np.array_equal(one.b, two.b)


def test_one_solve_serves_every_emphasis_and_the_solvers(solves: list[Any]) -> None:
    kept = SharedModel.of(exact.model(make_problem(seed=5)))
    solves.clear()
    learners = [o2td.O2TD(trace=0.9, omega=reading) for reading in ("printed", "sample", "state")]
    for learner in (*learners, o2td.ETD(trace=0.9), o2td.TD(trace=0.9)):
        learner.mean_dynamics(kept)
    for solver in (o2td.LSTD(trace=0.9), o2td.LSETD(trace=0.9)):
        solver.limit(kept)
    assert len([shape for shape in solves if len(shape) == 2]) == 1


def test_sums_that_differ_are_told_apart(solves: list[Any]) -> None:
    kept = SharedModel.of(exact.model(make_problem(seed=5)))
    one, factor = np.ones(kept.n_states), 0.5 * kept.discount
    solves.clear()
    first = kept.traced(one, factor)
    for inflow, coefficient in ((2.0 * one, factor), (one, 0.5 * factor), (one[:, None], factor)):
        assert not np.array_equal(kept.traced(inflow, coefficient), first)
    assert len(solves) == 4
    assert not first.flags.writeable


def test_the_oldest_goes_first(monkeypatch: pytest.MonkeyPatch, solves: list[Any]) -> None:
    kept = SharedModel.of(exact.model(make_problem(seed=5)))
    monkeypatch.setattr(shared_model, "_ROOM", 2 * 8 * kept.n_states)
    one, two, three = (np.full(kept.n_states, x) for x in (1.0, 2.0, 3.0))
    solves.clear()
    for inflow in (one, two, one, three, one):
        kept.traced(inflow, 0.5 * kept.discount)
    assert len(solves) == 3
    kept.traced(two, 0.5 * kept.discount)
    assert len(solves) == 4


def test_a_sum_that_is_larger_than_the_room_is_kept_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = SharedModel.of(exact.model(make_problem(seed=5)))
    monkeypatch.setattr(shared_model, "_ROOM", 1)
    for name in ("one", "two"):
        found = kept.once((name, 0.5), lambda: np.ones(4))
        np.testing.assert_array_equal(found, 1.0)
        assert len(kept.kept) == 1


def test_sums_are_told_apart_by_numbers_arrays_and_shapes() -> None:
    kept = SharedModel.of(exact.model(make_problem(seed=5)))
    array = np.arange(6.0)
    keys: list[tuple[Any, ...]] = [("a", 0.5, True), ("a", 0.6, True), ("a", 0.5, False)]
    keys += [(array, 0.5), (array + 1.0, 0.5), (array[None], 0.5), (array, 0.25)]
    found = [kept.once(key, lambda k=k: (np.full(2, k), k)) for k, key in enumerate(keys)]
    assert [one[1] for one in found] == list(range(len(keys)))
    again = [kept.once(key, lambda: (np.zeros(2), -1)) for key in keys]
    assert all(one is two for one, two in zip(found, again, strict=True))
    assert not found[0][0].flags.writeable

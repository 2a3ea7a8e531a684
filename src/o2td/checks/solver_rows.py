"""Checks of solvers on how rows are taken in: chunks, merges, layouts, trajectories, refusals."""

from __future__ import annotations

import copy

import numpy as np

from o2td.checks.base import (
    DoesNotApply,
    expect,
    expect_close,
    expect_equal,
    expect_refusal,
    fingerprint,
    promise,
)
from o2td.checks.data import (
    rows_for,
    stream,
    trajectories,
)
from o2td.errors import InputError
from o2td.solvers.base import Solver
from o2td.transitions import Transitions

FIELDS = ("state", "next_state", "target_prob", "behavior_prob", "interest")


def digits(solver: Solver) -> float:
    """Tolerance between two answers: rounding, or that of an iteration."""
    return max(1e-8, 1e3 * getattr(solver, "tolerance", 0.0) if solver.solution.iterations else 0.0)


def expect_theta(one: Solver, two: Solver, what: str) -> None:
    """The same weights, to rounding or to the solver's own tolerance."""
    expect_close(one.theta, two.theta, what, max(digits(one), digits(two)))


def fitted(solver: Solver) -> tuple[Solver, Transitions]:
    """A solver that has seen the rows of `stream`, and those rows."""
    rows = rows_for(solver, stream(weights=True))
    return solver.clone().fit(rows), rows


@promise(
    "solvers", "update and solve give the bits that fit gives, and fit forgets what came before"
)
def update_is_fit(solver: Solver) -> None:
    """On one batch."""
    whole, rows = fitted(solver)
    expect_equal(solver.clone().update(rows).solve().theta, whole.theta, "theta by update and fit")
    expect_equal(solver.clone().update(rows).theta, whole.theta, "theta without calling solve")
    again = solver.clone().fit(rows[:50]).fit(rows)
    expect_equal(again.theta, whole.theta, "theta of a second fit")
    expect(again.rows == rows.n, f"{again.rows} rows after a second fit on {rows.n}")


@promise("solvers", "any split of the rows into updates gives what one fit gives")
def chunks(solver: Solver) -> None:
    """Also inside trajectories, and one row at a time."""
    whole, rows = fitted(solver)
    for cuts in (range(1, 90), (1, 2, 40, 40, 89), (45,)):
        parts = solver.clone()
        for low, high in zip((0, *cuts), (*cuts, 90), strict=True):
            parts.update(rows[low:high])
        expect_theta(parts, whole, f"theta of {len(cuts) + 1} updates")
        expect(parts.rows == rows.n, f"{parts.rows} rows counted of {rows.n}")


@promise("solvers", "merging solvers in order gives what one pass over all rows gives")
def merged(solver: Solver) -> None:
    """In any grouping; the solver merged into another does not change."""
    whole, rows = fitted(solver)
    a, b, c = (solver.clone().update(rows[k : k + 30]) for k in (0, 30, 60))
    before = fingerprint(b)
    left = solver.clone().merge(a).merge(b).merge(c)
    expect(fingerprint(b) == before, "a solver that changed by being merged into another")
    expect_theta(left, whole, "theta of ((a, b), c)")
    tail = copy.deepcopy(b).merge(c)
    expect_theta(copy.deepcopy(a).merge(tail), whole, "theta of (a, (b, c))")
    expect_equal(copy.deepcopy(whole).merge(solver.clone()).theta, whole.theta, "theta and nothing")


@promise("solvers", "only solvers of the same kind and parameters merge, and none with itself")
def merge_refused(solver: Solver) -> None:
    """The state stays as it is."""
    whole, rows = fitted(solver)
    before = fingerprint(whole)
    related = type("Related", (type(solver),), {})(**solver.get_params()).fit(rows)
    expect_refusal(lambda: whole.merge(whole), "itself")
    expect_refusal(lambda: whole.merge(related), "another kind")
    expect(fingerprint(whole) == before, "another state after a refused merge")


@promise("solvers", "whole trajectories may come in another order")
def trajectory_order(solver: Solver) -> None:
    """The last one stays, which may be unfinished."""
    if solver.selects:
        raise DoesNotApply("chooses by estimates that depend on the order of the rows")
    whole, _ = fitted(solver)
    *others, last = trajectories(stream(weights=True))
    shuffled = solver.clone()
    for part in (*others[::-1], last):
        shuffled.update(rows_for(solver, part))
    expect_theta(shuffled, whole, "theta of reordered trajectories")


@promise("solvers", "the same rows twice give the same answer as once")
def duplicates(solver: Solver) -> None:
    """Answers depend on means, not on the number of rows."""
    if getattr(solver, "ridge", 0.0) > 0.0:
        raise DoesNotApply("has a ridge, which more rows outweigh")
    if solver.selects:
        raise DoesNotApply("chooses by estimated errors, which more rows make smaller")
    fields = stream(weights=True)
    fields["discount"][-1] = 0.0
    rows = rows_for(solver, fields)
    once, twice = solver.clone().fit(rows), solver.clone().update(rows).update(rows)
    expect_theta(twice, once, "theta of the rows twice")


@promise(
    "solvers", "a truncated row bootstraps or is left out; if taken as an end, that is counted"
)
def truncation_is_no_end(solver: Solver) -> None:
    """Replacing truncations by terminations changes the answer."""
    fields = stream(weights=True)
    cut = np.append(fields["start"][1:], True) & (fields["discount"] > 0.0)
    ended = np.where(cut, 0.0, fields["discount"])
    one = solver.clone().fit(rows_for(solver, fields))
    two = solver.clone().fit(rows_for(solver, fields, discount=ended))
    told = any("truncated" in count for count in one.solution.counts)
    differs = np.abs(one.theta - two.theta).max() > 1e-9
    expect(differs or told, "the same answer for truncated and terminated rows")


@promise(
    "solvers", "no rows give theta = 0 with status 'no data', and an empty update changes nothing"
)
def empty_batch(solver: Solver) -> None:
    """The number of features is known."""
    whole, rows = fitted(solver)
    nothing = solver.clone().fit(rows[:0])
    expect(nothing.solution.status == "no data", f"status {nothing.solution.status!r}")
    expect_equal(nothing.theta, np.zeros(rows.d), "theta and zero")
    expect_equal(copy.deepcopy(whole).update(rows[:0]).theta, whole.theta, "theta after nothing")
    expect_theta(nothing.update(rows), whole, "theta of a solver that began empty")


@promise("solvers", "bad input is refused with a sentence and the state stays as it is")
def bad_input(solver: Solver) -> None:
    """Things that are no transitions, and another number of features."""
    whole, _ = fitted(solver)
    before = fingerprint(whole)
    fields = stream(20, weights=True)
    wide = dict(fields, table=np.column_stack([fields["table"] / 2.0, fields["table"] / 2.0]))
    for thing in (None, "rows", fields["table"]):
        expect_refusal(lambda: whole.update(thing), type(thing).__name__)  # type: ignore[arg-type] # noqa: B023
        expect_refusal(lambda: whole.fit(thing), type(thing).__name__)  # type: ignore[arg-type] # noqa: B023
    expect_refusal(lambda: whole.update(rows_for(solver, wide)), "10 features", "features")
    expect_refusal(lambda: whole.predict(wide["table"]), "predict of 10 features", "features")
    expect(fingerprint(whole) == before, "another state after a refusal")


@promise("solvers", "a field that is missing and needed is refused by name, nothing changed")
def missing_fields(solver: Solver) -> None:
    """Fields that are not needed may be left out."""
    for name in FIELDS:
        one, left_out = solver.clone(), {name: None}
        before = fingerprint(one)
        try:
            one.update(rows_for(solver, stream(weights=True), "dense", **left_out))
        except InputError as error:
            expect(name.split("_")[-1] in str(error), f"rows without {name} refused with: {error}")
            expect(fingerprint(one) == before, f"another state after rows without {name}")

"""Checks of learners on how rows are taken in: splits, layouts, trajectories, terminations."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

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
    Fields,
    batch,
    dense_fields,
    needs_second,
    rows_for,
    select,
    stream,
)
from o2td.errors import InputError, NoAnswerError
from o2td.learners.base import Learner
from o2td.learners.step_sizes import PowerDecay

STEP_SIZE = 0.05
FIELDS = ("state", "target_prob", "behavior_prob", "interest")


def made(learner: Learner, **changes: Any) -> Learner:
    """A new learner of this kind; parameters that it does not have are left out."""
    known = learner.get_params()
    return learner.clone(**{name: value for name, value in changes.items() if name in known})


def constant(learner: Learner, **changes: Any) -> Learner:
    """A new learner whose step sizes depend neither on time nor on the rows."""
    return made(learner, **{"step_size": STEP_SIZE, **changes})


def weights(learner: Learner) -> npt.NDArray[np.float64]:
    """The last theta, the second vector w where there is one, and the average where there is one."""
    return np.concatenate([moved(learner), learner.theta if learner.average else np.empty(0)])


def moved(learner: Learner) -> npt.NDArray[np.float64]:
    """`weights` without the average, which counts the rows before a start too."""
    return learner._moving()


def traced(learner: Learner) -> None:
    """Skip a learner that keeps no trace from row to row."""
    if not getattr(learner, "_traced", False):
        raise DoesNotApply("keeps no trace from one row to the next")


def counted(learner: Learner) -> None:
    """Skip a learner that remembers more than its weights across trajectories."""
    if learner.counts_rows:
        raise DoesNotApply("remembers more than weights across trajectories")


def silent_prefix(fields: Fields) -> Fields:
    """Rows without reward that leave a trace, in states that occur in no other row."""
    shifted = dict(select(fields, slice(0, 12)))
    states = len(fields["table"])
    shifted["table"] = np.concatenate([fields["table"], fields["table"][::-1]])
    shifted["state"] = shifted["state"] + states
    shifted["next_state"] = shifted["next_state"] + states
    shifted["next_state_2"] = shifted["next_state_2"] + states
    shifted |= {"reward": np.zeros(12), "discount": np.full(12, 0.9), "rho": np.ones(12)}
    shifted |= {"target_prob": np.full(12, 0.5), "behavior_prob": np.full(12, 0.5)}
    shifted["start"] = np.arange(12) == 0
    return shifted


@promise("learners", "any split of the rows gives what one call gives, to 1e-12")
def splits(learner: Learner) -> None:
    """With all step sizes; batches of one row, of uneven size, and empty ones."""
    fields = stream()
    for size in (STEP_SIZE, PowerDecay(0.5, 0.6), "auto"):
        rows = rows_for(learner, fields)
        whole = made(learner, step_size=size).partial_fit(rows)
        for cuts in (range(1, 90), (1, 2, 40, 40, 89), (45,)):
            parts = made(learner, step_size=size)
            for low, high in zip((0, *cuts), (*cuts, 90), strict=True):
                parts.partial_fit(rows[low:high])
            expect_close(weights(parts), weights(whole), f"weights with step_size={size}")


@promise("learners", "learn_one on every field of each row gives what partial_fit gives")
def learn_one(learner: Learner) -> None:
    """Fields of the row are passed by name."""
    _one_by_one(learner, stream(40), _names(learner), {})


@promise(
    "learners", "learn_one on features, reward, discount and ratio gives what partial_fit gives"
)
def learn_one_plain(learner: Learner) -> None:
    """The quick path: no further fields."""
    plain: dict[str, Any] = dict.fromkeys((*FIELDS, "next_state"))
    rows = batch(stream(40), **plain)
    try:
        constant(learner).partial_fit(rows[:1])
    except InputError as error:
        raise DoesNotApply(f"needs more fields than these: {error}") from None
    _one_by_one(learner, stream(40), (), plain)


def _names(learner: Learner) -> tuple[str, ...]:
    """Fields that `learn_one` is given by name."""
    return FIELDS + (("next_phi_2", "discount_2", "rho_2") if needs_second(learner) else ())


def _row(given: Fields, t: int, names: tuple[str, ...]) -> dict[str, Any]:
    own = ("phi", "reward", "next_phi", "discount", "rho", "start")
    return {name: given[name][t] for name in (*own, *names)}


def _one_by_one(
    learner: Learner, fields: Fields, names: tuple[str, ...], changes: dict[str, Any]
) -> None:
    rows = rows_for(learner, fields, **changes)
    for size in (STEP_SIZE, PowerDecay(0.5, 0.6), "auto"):
        whole = made(learner, step_size=size).partial_fit(rows)
        single = made(learner, step_size=size)
        given = dense_fields(fields)
        for t in range(rows.n):
            single.learn_one(**_row(given, t, names))
        expect_close(weights(single), weights(whole), f"weights with step_size={size}")
        expect(single.status.step == whole.status.step, "another number of steps")


@promise("learners", "CSR rows, dense ones and learn_one in turn give what dense rows give")
def layouts_in_turn(learner: Learner) -> None:
    """Row by row, on one-hot features, so that traces have zeros to fill."""
    fields = stream(60)
    fields["table"] = np.eye(len(fields["table"]))
    whole = constant(learner).partial_fit(rows_for(learner, fields))
    mixed, given = constant(learner), dense_fields(fields)
    for t in range(60):
        kind = ("csr", "csr", "dense", "one", "csr", "one", "table")[t % 7]
        if kind == "one":
            mixed.learn_one(**_row(given, t, _names(learner)))
        else:
            mixed.partial_fit(rows_for(learner, select(fields, slice(t, t + 1)), kind))
    expect_close(weights(mixed), weights(whole), "weights of layouts in turn", 1e-10)


@promise("learners", "a start cuts the trace: what follows it does not depend on what came before")
def start_cuts(learner: Learner) -> None:
    """A trajectory without reward is truncated, and must not affect the next one."""
    if not learner.linear:
        raise DoesNotApply("keeps means over all rows, also over those before a start")
    counted(learner)
    fields = stream()
    before = silent_prefix(fields)
    after = {**fields, "table": before["table"]}
    fresh = constant(learner).partial_fit(rows_for(learner, after))
    second = constant(learner).partial_fit(rows_for(learner, before))
    expect(not weights(second).any(), "weights that moved without any reward")
    second.partial_fit(rows_for(learner, after))
    expect_close(moved(second), moved(fresh), "weights after a truncated trajectory")
    if getattr(learner, "_traced", False):
        joined = constant(learner).partial_fit(rows_for(learner, before))
        unmarked = np.append(False, fields["start"][1:])
        joined.partial_fit(rows_for(learner, after, start=unmarked))
        carried = np.abs(moved(joined) - moved(fresh)).max()
        expect(carried > 1e-9, "no trace of what came before even without a start")


@promise("learners", "a termination ends the trace, with or without a start mark on the next row")
def termination_cuts(learner: Learner) -> None:
    """Traces decay by the discount of the transition into a state, here 0."""
    if not learner.linear:
        raise DoesNotApply("keeps means over all rows, also over those before a start")
    counted(learner)
    fields = stream()
    before = silent_prefix(fields)
    before["discount"] = np.append(before["discount"][:-1], 0.0)
    after = {**fields, "table": before["table"]}
    fresh = constant(learner).partial_fit(rows_for(learner, after))
    second = constant(learner).partial_fit(rows_for(learner, before))
    unmarked = np.append(False, fields["start"][1:])
    second.partial_fit(rows_for(learner, after, start=unmarked))
    expect_close(moved(second), moved(fresh), "weights after a terminated trajectory")


@promise("learners", "the trace carries what came before into a terminal row, whose discount is 0")
def trace_reaches_the_end(learner: Learner) -> None:
    """The last reward of an episode is credited to earlier states."""
    traced(learner)
    fields = select(stream(), np.zeros(4, dtype=int))
    fields |= {"state": np.array([0, 1, 0, 1]), "next_state": np.array([1, -1, 1, -1])}
    fields |= {"discount": np.array([0.9, 0.0, 0.9, 0.0]), "reward": np.array([0.0, 1.0] * 2)}
    fields |= {"rho": np.ones(4), "target_prob": np.full(4, 0.5), "behavior_prob": np.full(4, 0.5)}
    joined, cut = np.array([True, False] * 2), np.ones(4, dtype=np.bool_)
    with_trace = constant(learner).partial_fit(rows_for(learner, fields, start=joined))
    without = constant(learner).partial_fit(rows_for(learner, fields, start=cut))
    difference = np.abs(weights(with_trace) - weights(without)).max()
    expect(difference > 1e-6, "the same weights whether or not the trace is cut before that row")


@promise("learners", "a truncated row bootstraps from its successor")
def truncation_bootstraps(learner: Learner) -> None:
    """Its discount is not 0, so its successor's features count, although a start comes next."""
    counted(learner)
    fields = select(stream(), np.zeros(3, dtype=int))
    fields |= {"rho": np.ones(3), "start": np.ones(3, dtype=np.bool_), "discount": np.full(3, 0.9)}
    fields |= {"state": np.zeros(3, dtype=int), "reward": np.ones(3)}
    results = [
        weights(
            constant(learner, initial_theta=1.0).partial_fit(
                rows_for(learner, fields, next_state=np.array([successor, 1, 1]))
            )
        )
        for successor in (1, 2)
    ]
    expect(np.abs(results[0] - results[1]).max() > 1e-9, "weights that ignore the successor")


@promise("learners", "the reward of a row with ratio 0 changes nothing")
def zero_ratio_ignores_reward(learner: Learner) -> None:
    """An action that the target never takes says nothing about its value."""
    fields = stream()
    other = np.where(fields["rho"] == 0.0, 1e3, fields["reward"])
    one = constant(learner, initial_theta=1.0).partial_fit(rows_for(learner, fields))
    two = constant(learner, initial_theta=1.0).partial_fit(rows_for(learner, fields, reward=other))
    expect_equal(weights(one), weights(two), "weights with other rewards in such rows")


@promise("learners", "a row with ratio 0 leaves theta as it is and advances the step counter")
def zero_ratio_keeps_theta(learner: Learner) -> None:
    """Bitwise; a learner with a second vector may still move theta by it."""
    if "w" in learner.vectors:
        raise DoesNotApply("has a second vector w, by which theta may move in any row")
    if learner.l1 > 0.0:
        raise DoesNotApply("shrinks theta by l1 in every row")
    fields = stream()
    learned = constant(learner, initial_theta=1.0).partial_fit(rows_for(learner, fields))
    theta, step = learned.last_theta.copy(), learned.status.step
    ones = np.zeros(5, dtype=int)
    zero: dict[str, Any] = {
        "rho": np.zeros(5),
        "target_prob": np.zeros(5),
        "reward": np.full(5, 7.0),
    }
    learned.partial_fit(rows_for(learner, select(fields, ones), **zero))
    expect_equal(learned.last_theta, theta, "theta before and after such rows")
    expect(learned.status.step == step + 5, f"{learned.status.step} steps after {step} and 5 rows")


@promise("learners", "an empty batch changes nothing")
def empty_batch(learner: Learner) -> None:
    """Whether new or trained."""
    fields = stream()
    rows = rows_for(learner, fields)
    learned = constant(learner).partial_fit(rows)
    before = fingerprint(learned)
    learned.partial_fit(rows[:0])
    expect(fingerprint(learned) == before, "another state")
    late = constant(learner).partial_fit(rows[:0]).partial_fit(rows)
    expect_equal(weights(late), weights(learned), "weights of a learner that began empty")


@promise("learners", "fields that its theory does not use are ignored")
def interest_ignored(learner: Learner) -> None:
    """Interest matters if and only if it changes the learner's mean dynamics."""
    from dataclasses import replace

    from o2td import exact
    from o2td.checks.data import problem

    model = exact.model(problem())
    try:
        learner.mean_dynamics(model)
    except NoAnswerError as error:
        raise DoesNotApply(f"has no theory to ask: {error}") from None
    other = replace(model, interest=np.arange(1.0, model.n_states + 1.0))
    fields = stream()
    with_it, without = (
        weights(constant(learner).partial_fit(rows_for(learner, fields, interest=interest)))
        for interest in (fields["interest"], None)
    )
    one, two = (learner.mean_dynamics(m) for m in (model, other))
    if np.array_equal(one.A, two.A) and np.array_equal(one.b, two.b):
        expect_equal(with_it, without, "weights with and without interest")
    else:
        expect(
            not np.array_equal(with_it, without),
            "the same weights, although the theory uses interest",
        )


@promise("learners", "a field that is missing and needed is refused by name, nothing changed")
def missing_fields(learner: Learner) -> None:
    """Whether listed in `needs` or required by the emphasis."""
    fields = stream()
    for name in FIELDS:
        left_out: dict[str, Any] = {name: None}
        rows = rows_for(learner, fields, **left_out)
        learned = constant(learner)
        before = fingerprint(learned)
        if name in learner.needs:
            expect_refusal(lambda: learned.partial_fit(rows), f"rows without {name}", name)  # noqa: B023
        else:
            try:
                learned.partial_fit(rows)
            except InputError as error:
                expect(name in str(error), f"rows without {name} refused with: {error}")
            else:
                continue
        expect(fingerprint(learned) == before, f"another state after rows without {name}")
    if needs_second(learner):
        learned = constant(learner)
        before = fingerprint(learned)
        expect_refusal(lambda: learned.partial_fit(batch(fields)), "one successor", "next_phi_2")
        expect(fingerprint(learned) == before, "another state after rows with one successor")

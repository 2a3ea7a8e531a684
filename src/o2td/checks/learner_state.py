"""Checks of learners on what they remember: purity, files, parameters, refusals, divergence."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np

from o2td.arrays import freeze
from o2td.checks.base import (
    DoesNotApply,
    expect,
    expect_close,
    expect_equal,
    expect_refusal,
    fingerprint,
    promise,
)
from o2td.checks.data import dense_fields, fields_for, needs_second, rows_for, select, stream
from o2td.checks.learner_rows import FIELDS, STEP_SIZE, constant, made, weights
from o2td.errors import InputError
from o2td.learners.base import Learner
from o2td.transitions import Transitions


def trained(learner: Learner, **changes: Any) -> Learner:
    """A learner that has seen the rows of `stream`."""
    return constant(learner, **changes).partial_fit(rows_for(learner, stream()))


@promise("learners", "theta cannot be changed from outside, and status says how it fares")
def answers(learner: Learner) -> None:
    """Before and after the first rows."""
    new = constant(learner)
    expect(new.status.kind == "new", f"status {new.status.kind!r} before the first row")
    learned = trained(learner)
    expect(not learned.theta.flags.writeable, "a writeable theta")
    status = learned.status
    expect((status.kind, status.step) == ("ok", 90), f"status {status.kind}, {status.step}")
    expect(bool(str(status)), "a status without a sentence")


@promise("learners", "read-only, strided, Fortran and float32 arrays are taken like any others")
def input_forms(learner: Learner) -> None:
    """The same numbers give the same weights."""
    fields = fields_for(learner)
    fields["table"] = fields["table"].astype(np.float32).astype(np.float64)
    given = dense_fields(fields)
    expected = weights(constant(learner).partial_fit(Transitions(**given)))
    forms: dict[str, Any] = {
        "read-only": lambda a: freeze(a.copy()),
        "strided": lambda a: np.repeat(a, 2, axis=0)[::2],
        "Fortran": np.asfortranarray,
        "reversed": lambda a: a[::-1].copy()[::-1],
    }
    for name, form in forms.items():
        rows = Transitions(**{k: form(v) for k, v in given.items()})
        expect_equal(weights(constant(learner).partial_fit(rows)), expected, f"{name} weights")
    narrow = {k: v.astype(np.float32) if "phi" in k else v for k, v in given.items()}
    result = weights(constant(learner).partial_fit(Transitions(**narrow)))
    expect_equal(result, expected, "float32 weights")


@promise("learners", "the same rows give the same bits, and fit forgets what came before")
def reproducible(learner: Learner) -> None:
    """There is no hidden randomness; `reset` and `clone` start afresh."""
    rows = rows_for(learner, stream())
    first = constant(learner).partial_fit(rows)
    expect_equal(weights(constant(learner).partial_fit(rows)), weights(first), "weights")
    theta = first.theta.copy()
    expect_equal(first.fit(rows).theta, theta, "theta after fit")
    expect_equal(first.clone().partial_fit(rows).theta, theta, "theta of a clone")
    expect_equal(first.reset().partial_fit(rows).theta, theta, "theta after reset")


@promise("learners", "parameters come back as given, through get_params, set_params and clone")
def parameters(learner: Learner) -> None:
    """Unknown names are refused."""
    given = learner.get_params()
    again = type(learner)(**given)
    expect(repr(again) == repr(learner), f"{again!r} from {learner!r}")
    changed = learner.clone().set_params(**given)
    expect(repr(changed) == repr(learner), f"{changed!r} after set_params")
    for name, value in given.items():
        kept = again.get_params()[name]
        expect(type(kept) is type(value), f"{name} as {type(kept).__name__}, not as given")
    expect_refusal(lambda: learner.clone().set_params(no_such=1), "an unknown name", "no_such")
    learned = trained(learner)
    expect(learned.clone().status.kind == "new", "a clone that has learned something")
    learned.set_params(initial_theta=None)
    expect(learned.status.kind == "new", "a learner that remembers after set_params")


@promise("learners", "theta begins at initial_theta, one number or d of them")
def initial_theta(learner: Learner) -> None:
    """A wrong number of them is refused, and the learner stays untrained."""
    rows = rows_for(learner, stream())
    given = np.linspace(-1.0, 1.0, 5)
    expect_equal(constant(learner, initial_theta=given).partial_fit(rows[:0]).theta, given, "theta")
    broadcast = constant(learner, initial_theta=2.0).partial_fit(rows[:0]).theta
    expect_equal(broadcast, np.full(5, 2.0), "theta from one number")
    wrong = constant(learner, initial_theta=np.ones(6))
    before = fingerprint(wrong)
    expect_refusal(lambda: wrong.partial_fit(rows), "six weights for five", "initial_theta")
    expect(fingerprint(wrong) == before, "another state after the refusal")


@promise("learners", "bad input is refused with a sentence and the state stays as it is")
def bad_input(learner: Learner) -> None:
    """By batch and by row, also with another number of features."""
    learned = trained(learner)
    fields = stream(5)
    given = dense_fields(fields)
    before = fingerprint(learned)
    for thing in (None, "rows", given["phi"]):
        expect_refusal(lambda: learned.partial_fit(thing), f"{type(thing).__name__}")  # type: ignore[arg-type] # noqa: B023
    wide = dict(fields, table=np.column_stack([fields["table"], fields["table"]]))
    expect_refusal(lambda: learned.partial_fit(rows_for(learner, wide)), "10 features", "features")
    expect_refusal(lambda: learned.predict(wide["table"]), "predict of 10 features", "features")
    expect(fingerprint(learned) == before, "another state after a refused batch")
    more = {name: given[name][0] for name in FIELDS}
    if needs_second(learner):
        more |= {name: given[name][0] for name in ("next_phi_2", "discount_2", "rho_2")}
    good = {"phi": given["phi"][0], "next_phi": given["phi"][1], "reward": 1.0}
    good |= {"discount": 0.9, "rho": 1.0}
    unrated = {k: v for k, v in more.items() if not k.endswith("_prob")}
    for name, value in (
        *(("reward", np.nan), ("reward", np.inf), ("discount", 1.5), ("discount", np.nan)),
        *(("phi", np.full(5, np.nan)), ("next_phi", np.full(5, np.inf)), ("phi", np.ones(10))),
        *(("phi", np.ones(3)), ("rho", -1.0), ("rho", np.nan), ("rho", np.inf)),
    ):
        for extra in ({}, unrated if name == "rho" else more):
            row = {**good, name: value, **extra}
            expect_refusal(lambda: learned.learn_one(**row), f"learn_one with {name}={value}")  # noqa: B023
            unchanged = fingerprint(learned) == before
            expect(unchanged, f"another state after learn_one with {name}={value}")


@promise(
    "learners", "divergence is reported with its step, theta stays finite, and later rows pass by"
)
def divergence(learner: Learner) -> None:
    """With a step size of 1e30; the step is the same however the rows are split."""
    if "step_size" not in learner.get_params():
        raise DoesNotApply("has no step_size")
    if learner.radius is not None:
        raise DoesNotApply("is projected onto a ball")
    fields = stream()
    fields["rho"] = np.maximum(fields["rho"], 0.5)
    fields["target_prob"] = fields["rho"] * fields["behavior_prob"]
    rows = rows_for(learner, fields)
    whole = made(learner, step_size=1e30).partial_fit(rows)
    expect(whole.status.kind == "diverged", f"status {whole.status.kind!r}")
    expect(0 <= whole.status.step < 90, f"step {whole.status.step} of 90 rows")
    expect(str(whole.status.step) in str(whole.status), "a message without the step")
    expect(np.isfinite(whole.theta).all(), f"theta {whole.theta}")
    parts = made(learner, step_size=1e30)
    for part in rows.chunks(7):
        parts.partial_fit(part)
    expect(parts.status.step == whole.status.step, f"step {parts.status.step} when split")
    theta = whole.theta.copy()
    expect_equal(whole.partial_fit(rows).theta, theta, "theta after more rows")
    expect(np.isfinite(whole.predict(fields["table"])).all(), "predictions that are not finite")


@promise(
    "learners", "theta stays finite and nothing warns, or the rows are refused, however extreme"
)
def extremes(learner: Learner) -> None:
    """Ratios, rewards and features of 5e-324, 1e-300, 1e154 and 1e308 end in numbers or a status."""
    second = needs_second(learner)
    fields = {k: v for k, v in stream(30).items() if second or not k.endswith("_2")}
    fields["rho"] = np.ones(30)
    values = (5e-324, 1e-300, 1e6, 1e154, 1e308)
    for name, value, row in product(("rho", "reward", "phi", "next_phi"), values, (0, 20)):
        given = dense_fields(fields)
        given["reward"][0] = 1e9
        given[name] = given[name].copy()
        given[name][row] = value
        for size in (STEP_SIZE, "auto"):
            learned = made(learner, step_size=size)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                before = fingerprint(learned)
                try:
                    learned.partial_fit(Transitions(**given))
                except InputError:
                    expect(fingerprint(learned) == before, "another state after a refusal")
                    continue
            told = f"{name}={value} in row {row}, step_size={size}"
            expect(np.isfinite(learned.theta).all(), f"theta {learned.theta} with {told}")
            kind = learned.status.kind
            expect(kind in ("ok", "diverged"), f"status {kind!r} with {told}")


@promise(
    "learners", "a lane of sweep learns what the learner learns alone, whatever other lanes do"
)
def lanes(learner: Learner) -> None:
    """One neighbour diverges, another has other parameters."""
    from o2td.learners.sweeping import sweep

    rows = rows_for(learner, stream())
    alone = constant(learner).partial_fit(rows)
    neighbours = [made(learner, step_size=1e30), constant(learner), made(learner, step_size=0.01)]
    result = sweep(neighbours, rows)
    expect_close(weights(result.learners[1]), weights(alone), "weights of the lane and alone")
    expect(np.isfinite(result.theta).all(), "a theta that is not finite")


@promise("learners", "an unknown state is given room when it first comes")
def new_states(learner: Learner) -> None:
    """States need not be known beforehand."""
    fields = stream()
    order = np.argsort(fields["state"], kind="stable")
    sorted_rows = select(fields, order) | {"start": np.ones(90, dtype=np.bool_)}
    whole = constant(learner).partial_fit(rows_for(learner, sorted_rows))
    parts = constant(learner)
    for part in rows_for(learner, sorted_rows).chunks(10):
        parts.partial_fit(part)
    expect_close(weights(parts), weights(whole), "weights when states come bit by bit")

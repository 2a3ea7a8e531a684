"""Checks of solvers on their answers: symmetries, singular systems, files, limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from o2td import exact
from o2td.checks.base import (
    DoesNotApply,
    expect,
    expect_close,
    expect_equal,
    expect_refusal,
    promise,
)
from o2td.checks.data import (
    dense_fields,
    fields_for,
    needs_second,
    problem,
    rows_for,
    sampled,
    stream,
)
from o2td.checks.solver_rows import (
    digits,
    fitted,
)
from o2td.errors import InputError, NoAnswerError
from o2td.solvers.base import Solver
from o2td.transitions import Transitions


@promise(
    "solvers", "without rewards theta is zero, and where the limit is linear in them so is theta"
)
def linear_in_rewards(solver: Solver) -> None:
    """Scaled by 4, and added."""
    fields = stream(weights=True)
    zero = solver.clone().fit(rows_for(solver, fields, reward=0.0))
    expect(np.abs(zero.theta).max() <= 1e-12, f"theta {zero.theta} without rewards")
    if solver.selects:
        raise DoesNotApply("chooses by the rewards, too")
    try:
        model = exact.model(problem(True))
        plain, four = (solver.limit(replace(model, reward=c * model.reward)) for c in (1.0, 4.0))
        linear = np.allclose(four, 4.0 * plain, rtol=1e-6, atol=1e-9)
    except NoAnswerError:
        linear = True
    if not linear:
        raise DoesNotApply("its own limit is not linear in the rewards")
    other = np.random.default_rng(3).normal(size=90)
    rewards = (fields["reward"], other, fields["reward"] + other, 4.0 * fields["reward"])
    fits = [solver.clone().fit(rows_for(solver, fields, reward=reward)) for reward in rewards]
    one, two, both, scaled = (fit.theta for fit in fits)
    expect_close(scaled, 4.0 * one, "theta of four times the rewards", digits(fits[0]))
    scale = np.abs(one).max() + np.abs(two).max()
    gap = np.abs(both - one - two).max() / scale
    expect(gap <= digits(fits[0]), f"theta of added rewards off by {gap:.3g}")


@promise(
    "solvers", "a feature split into two copies changes no prediction, and a lost rank is reported"
)
def singular_features(solver: Solver) -> None:
    """The minimum-norm solution splits the weight between the copies, and the status says so."""
    if getattr(solver, "ridge", 0.0) > 0.0:
        raise DoesNotApply("has a ridge, which makes every system regular")
    if getattr(solver, "epsilon", 0.0) > 0.0:
        raise DoesNotApply("has an epsilon, and takes the smallest theta within it")
    fields = stream(weights=True)
    table = fields["table"]
    plain = solver.clone().fit(rows_for(solver, fields))
    for parts in ((0.6, 0.8), (0.5, 0.5)):
        split = np.column_stack([parts[0] * table[:, 0], parts[1] * table[:, 0], table[:, 1:]])
        try:
            other = solver.clone().fit(rows_for(solver, fields, table=split))
            break
        except InputError:  # features that must sum to one can only be halved
            continue
    expect_close(split @ other.theta, table @ plain.theta, "predictions", 100 * digits(plain))
    if other.solution.rank < 6:
        expect(other.solution.status == "minimum norm", f"status {other.solution.status!r}")
        shared = parts[1] * other.theta[0], parts[0] * other.theta[1]
        expect_close(*shared, "shares of the two copies", 1e-6)


@promise("solvers", "a feature that is always zero gets the weight zero")
def dead_feature(solver: Solver) -> None:
    """And the other weights do not change."""
    fields = stream(weights=True)
    table = np.column_stack([fields["table"], np.zeros(7)])
    plain = solver.clone().fit(rows_for(solver, fields))
    wider = solver.clone().fit(rows_for(solver, fields, table=table))
    expect(abs(wider.theta[5]) <= 1e-9, f"weight {wider.theta[5]} of a feature that is always zero")
    expect_close(wider.theta[:5], plain.theta, "weights of the others", 100 * digits(plain))


@promise(
    "solvers",
    "solution has a status with a sentence, rank, condition, residual and a finite, read-only theta",
)
def solution(solver: Solver) -> None:
    """Whatever the data."""
    whole, rows = fitted(solver)
    answer = whole.solution
    expect(np.isfinite(answer.theta).all(), f"theta {answer.theta}")
    for theta in (answer.theta, whole.theta):
        expect(not theta.flags.writeable, "a writeable theta")
    expect(bool(answer.status) and bool(answer.message), "no status or no sentence")
    expect(0 <= answer.rank <= rows.d, f"rank {answer.rank} of {rows.d}")
    expect(answer.condition >= 1.0, f"condition {answer.condition}")
    expect(answer.residual >= 0.0, f"residual {answer.residual}")
    exactly = answer.iterations == 0 and getattr(solver, "epsilon", 0.0) == 0.0
    if answer.status == "ok" and exactly:
        expect(answer.residual < 1e-8, f"status ok with residual {answer.residual}")


@promise("solvers", "rows whose ratios are all zero give theta = 0 where ratios are used at all")
def zero_ratios(solver: Solver) -> None:
    """Nothing is known about the target in that case."""
    fields = stream(weights=True)
    one, two = (solver.clone().fit(rows_for(solver, fields, rho=rho)).theta for rho in (1.0, None))
    if np.array_equal(one, two):
        raise DoesNotApply("uses no ratios")
    theta = solver.clone().fit(rows_for(solver, fields, rho=0.0, target_prob=0.0)).theta
    expect(not theta.any(), f"theta {theta}")


@promise("solvers", "the same rows give the same bits, whether read-only, strided or Fortran")
def reproducible(solver: Solver) -> None:
    """There is no hidden randomness."""
    given = dense_fields(fields_for(solver, weights=True))
    expected = solver.clone().fit(Transitions(**given)).theta
    forms: tuple[Any, ...] = (np.copy, np.asfortranarray, lambda a: np.repeat(a, 2, axis=0)[::2])
    for form in forms:
        rows = Transitions(**{k: form(v) for k, v in given.items()})
        expect_equal(solver.clone().fit(rows).theta, expected, "theta")


@promise("solvers", "parameters come back as given, and reset forgets all rows")
def parameters(solver: Solver) -> None:
    """A new solver made from them is the same."""
    whole, _ = fitted(solver)
    expect(repr(whole.clone()) == repr(solver), f"{whole.clone()!r} from {solver!r}")
    whole.reset()
    expect(whole.rows == 0, f"{whole.rows} rows after reset")
    expect_refusal(whole.solve, "solve without data", "data")
    expect_refusal(lambda: solver.clone().set_params(no_such=1), "an unknown name", "no_such")
    changed = fitted(solver)[0].set_params(**solver.get_params())
    expect((repr(changed), changed.rows) == (repr(solver), 0), f"{changed!r} after set_params")
    expect_refusal(lambda: solver.clone().predict(np.ones((1, 5))), "predict without data", "data")


@promise("solvers", "100,000 rows bring theta within 5 % of its own limit")
def near_limit(solver: Solver) -> None:
    """What infinitely many rows would give, in closed form."""
    if not getattr(solver, "discounted", True):
        raise DoesNotApply(
            "discounts hardly tell an average reward from values: it needs more rows"
        )
    try:
        limit = solver.limit(exact.model(problem(True)))
    except NoAnswerError as error:
        raise DoesNotApply(f"has no limit here: {error}") from None
    rows = sampled(100_000, double=needs_second(solver), weights=True)
    theta = solver.clone().fit(rows).theta
    off = np.abs(problem(True).features @ (theta - limit)).max()
    scale = np.abs(problem(True).features @ limit).max()
    expect(off <= 0.05 * scale, f"predictions off by {off:.3g} of {scale:.3g}")

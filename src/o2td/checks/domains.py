"""Checks of domains: samples against tables, reproducible, documented."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from o2td.checks.base import DoesNotApply, expect, expect_close, expect_equal, promise
from o2td.errors import InputError, MissingExtraError
from o2td.problem import Problem
from o2td.registry import DOMAINS
from o2td.transitions import Transitions

ROWS = 20_000
SIGMAS = 6.0
VECTORS = ("state", "next_state", "reward", "discount", "rho", "start")


class Domain:
    """A problem, and the function that made it, if any."""

    def __init__(self, problem: Any, function: Any) -> None:
        self.problem, self.function = problem, function

    def finite(self) -> Problem:
        """The problem with its tables."""
        if not isinstance(self.problem, Problem):
            raise DoesNotApply("is simulated: there are no tables to compare with")
        return self.problem


def subject(given: Any) -> tuple[Any, str]:
    """A domain from a problem, a function or a registered name, with the name to show."""
    if isinstance(given, str):
        given = DOMAINS[given]
    if not callable(given):
        return Domain(given, None), getattr(given, "name", repr(given))
    name = getattr(given, "__name__", repr(given))
    return _Lazy(given), name


class _Lazy(Domain):
    """Makes its problem when the first check asks for it."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self._problem: Any = None

    @property
    def problem(self) -> Any:
        """The problem with all defaults."""
        if self._problem is None:
            missing = [
                p.name
                for p in inspect.signature(self.function).parameters.values()
                if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
            ]
            if missing:
                raise DoesNotApply(f"has no default for {missing[0]}")
            try:
                self._problem = self.function()
            except MissingExtraError as error:
                raise DoesNotApply(str(error)) from None
        return self._problem

    @problem.setter
    def problem(self, value: Any) -> None:
        self._problem = value


@promise("domains", "a domain says what it is, and its parameters, in its docstring")
def documented(domain: Domain) -> None:
    """All parameters by name."""
    if domain.function is None:
        raise DoesNotApply("is a problem, not a function")
    text = inspect.getdoc(domain.function) or ""
    expect(len(text) > 40, "no docstring to speak of")
    for name in inspect.signature(domain.function).parameters:
        expect(name in text, f"parameter {name} not in the docstring")


@promise("domains", "one seed gives the same rows bit by bit, and another seed gives others")
def seeded(domain: Domain) -> None:
    """From numbers or sequences of numbers."""
    sample = domain.problem.sample
    one, two, other = sample(500, seed=7), sample(500, seed=7), sample(500, seed=8)
    for name in ("reward", "discount", "rho", "start"):
        expect_equal(getattr(one, name), getattr(two, name), f"{name} of the same seed")
    expect_equal(_dense(one.phi), _dense(two.phi), "features of the same seed")
    differs = any(not np.array_equal(getattr(one, k), getattr(other, k)) for k in ("reward", "rho"))
    differs |= not np.array_equal(_dense(one.phi), _dense(other.phi))
    expect(differs, "the same rows from two seeds")
    expect_equal(sample(20, seed=[1, 2]).rho, sample(20, seed=(1, 2)).rho, "rho from sequences")


@promise("domains", "rows are good transitions: a start first, and one after every terminal state")
def rows_are_good(domain: Domain) -> None:
    """And there are as many as requested."""
    rows = domain.problem.sample(500, seed=3)
    expect(isinstance(rows, Transitions) and rows.n == 500, f"{rows!r}")
    expect(bool(rows.start[0]), "a first row that is not a start")
    terminal = getattr(domain.problem, "terminal", None)
    if isinstance(terminal, np.ndarray) and rows.next_state is not None:
        ended = (rows.discount == 0.0) & terminal[np.maximum(rows.next_state, 0)]
        expect(rows.start[1:][ended[:-1]].all(), "no start after a terminal state")
    expect(np.isfinite(rows.reward).all() and (rows.rho >= 0.0).all(), "bad rewards or ratios")


@promise(
    "domains", "rows follow each other: a row begins where the one before has led, or is a start"
)
def rows_follow(domain: Domain) -> None:
    """By state if there are states, else by features."""
    rows = domain.problem.sample(500, seed=4)
    inside = ~rows.start[1:] & (rows.discount[:-1] != 0.0)
    if rows.state is not None and rows.next_state is not None:
        led, begun = rows.next_state[:-1][inside], rows.state[1:][inside]
    else:
        led, begun = _dense(rows.next_phi)[:-1][inside], _dense(rows.phi)[1:][inside]
    expect_equal(begun, led, "states begun in and led to")


@promise("domains", "samples follow the tables within six standard errors")
def sampler_follows_matrices(domain: Domain) -> None:
    """Frequencies of successors, mean rewards, mean ratios and visits, in 20,000 independent rows."""
    problem = domain.finite()
    rows: Any = problem.sample(ROWS, seed=5, scheme="iid")
    expect(bool(rows.start.all()), "independent rows that are not starts")
    pairs = problem.pairs
    b, pi = (policy[pairs.state, pairs.action] for policy in (problem.behavior, problem.target))
    share = problem.visits[pairs.state] * b * pairs.probability
    ratio = np.divide(pi, b, out=np.zeros_like(b), where=b > 0.0)
    going, goes = (discount != 0.0 for discount in (pairs.discount, rows.discount))
    led = np.where(goes, rows.next_state, 0)
    for name, where, weight, seen_at, seen in (
        ("visits", pairs.state, np.ones_like(share), rows.state, np.ones(ROWS)),
        ("rewards", pairs.state, pairs.reward, rows.state, rows.reward),
        ("discounts", pairs.state, pairs.discount, rows.state, rows.discount),
        ("ratios", pairs.state, ratio, rows.state, rows.rho),
        ("successors", pairs.next_state, going * 1.0, led, goes * 1.0),
    ):
        theory = np.bincount(where, share * weight, minlength=problem.n_states)
        square = np.bincount(where, share * weight**2, minlength=problem.n_states)
        mean = np.bincount(seen_at, seen, minlength=problem.n_states) / ROWS
        _expect_means(name, mean, theory, square, float(np.abs(weight).max()))


def _expect_means(name: str, mean: Any, theory: Any, square: Any, largest: float) -> None:
    """Compare a sample's means by state with the table's, allowing for a few rare events."""
    error = np.sqrt(np.maximum(square - theory**2, 0.0) / ROWS)
    off = np.abs(mean - theory) - SIGMAS * error - SIGMAS * largest / ROWS
    worst = int(np.argmax(off))
    expect(
        off[worst] <= 0.0,
        f"{name} of state {worst} are {mean[worst]:.5g}, not {theory[worst]:.5g}",
    )


@promise("domains", "behaviour and target are policies, and ratios are their quotient")
def policies(domain: Domain) -> None:
    """A target row of zeros says that the target is not followed there."""
    problem = domain.finite()
    going = ~problem.terminal
    expect_close(problem.behavior[going].sum(axis=1), np.ones(going.sum()), "sums of b", 1e-8)
    sums = problem.target[going].sum(axis=1)
    expect(
        np.isin(sums.round(8), (0.0, 1.0)).all(), "rows of the target that sum to neither 0 nor 1"
    )
    rows = problem.sample(500, seed=6)
    if rows.target_prob is not None and rows.behavior_prob is not None:
        expect_close(rows.rho, rows.target_prob / rows.behavior_prob, "ratios and quotients", 1e-12)


@promise("domains", "a second successor is independent and drawn from the same tables")
def double_sampling(domain: Domain) -> None:
    """Two successors of a row differ if they can."""
    problem = domain.finite()
    rows: Any = problem.sample(2000, seed=9, double=True)
    expect(rows.next_state_2 is not None, "no second successor")
    spread = len(problem.pairs.state) > len(np.unique(problem.pairs.state))
    if spread:
        expect(not np.array_equal(rows.next_state, rows.next_state_2), "two equal successors")


@promise("domains", "an invalid number of rows is refused")
def refusals(domain: Domain) -> None:
    """And so is a sampling scheme that does not exist."""
    for arguments in ({"n": -1}, {"n": 10, "scheme": "no such scheme"}):
        try:
            domain.problem.sample(**arguments)
        except (InputError, TypeError):
            continue
        expect(False, f"{arguments} accepted")


def _dense(rows: Any) -> Any:
    return rows.toarray() if hasattr(rows, "toarray") else rows

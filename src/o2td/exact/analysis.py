"""Where each known method lands on a problem: its limit, stability, and distance from the best.

Methods come from the registries: a learner gives its mean dynamics, a solver its limit from
infinitely many rows. A method that needs something the problem lacks is listed with the reason.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from o2td import chain
from o2td.arguments import answer_of, function, listed, unit
from o2td.arrays import Floats
from o2td.emphasis import READINGS
from o2td.errors import O2TDError
from o2td.exact.bellman_system import system
from o2td.exact.dynamics import LinearDynamics, land
from o2td.exact.objectives import rmse, rmspbe, suboptimality
from o2td.exact.oblique import amplification, recipes, solve_direction
from o2td.exact.shared_model import SharedModel
from o2td.exact.truth import model
from o2td.linear_algebra import compress, dense
from o2td.problem import Problem
from o2td.registry import LEARNERS, SOLVERS, Registry

_CHOICES = {"omega": READINGS, "start": ("zero", "td")}  # options that change where a method lands
_PROBED = 128  # states up to which a direction is found by rewarding one state at a time
_SAME = 1e-7


@dataclass(frozen=True)
class Landing:
    """Where one method lands. Fields without a meaning are None, and `reason` says why.

    `reason` also says what the theory leaves out of a learner that changes as it learns.

    `method` is its name with its settings, `kind` is "learner" or "solver". `rmse`, `suboptimality`
    and `rmspbe` are those of the limit or, if `stable` is False, of the fixed point that repels.
    Solvers have neither stability nor `max_step_size`. `amplification` is the worst ratio of RMSE
    to the best RMSE, over all rewards.
    """

    method: str
    kind: str
    rmse: float | None = None
    suboptimality: float | None = None
    rmspbe: float | None = None
    stable: bool | None = None
    max_step_size: float | None = None
    amplification: float | None = None
    reason: str = ""


def analyze(
    problem: Problem,
    traces: Iterable[float] = (0.0, 0.9),
    progress: Callable[[str], Any] = lambda method: None,
) -> list[Landing]:
    """Analyse every registered learner and solver on `problem`, in the order of their names.

    Methods that take a `trace` appear once for each of `traces`. `progress` is called with what is
    being worked on: directions first, then each name.

    >>> from o2td import domains, exact
    >>> rows = {row.method: row for row in exact.analyze(domains.collision(seed=0))}
    >>> rows["TD"].suboptimality > rows["TD(trace=0.9)"].suboptimality > 1.0
    True
    """
    traces = _distinct(traces)
    function("progress", progress)
    finder = _Amplification(problem, traces, progress)
    found = []
    for registry, look in ((LEARNERS, _learner), (SOLVERS, _solver)):
        for name, build in variants(registry, traces):
            answer_of("progress", progress, name)
            kind = registry.kind.removesuffix("s")
            try:
                found.append(look(problem, name, build(), finder))
            except O2TDError as error:
                found.append(Landing(name, kind, reason=str(error)))
    return found


def methods(traces: Iterable[float]) -> list[str]:
    """The methods that `analyze` will consider, in its order."""
    once = _distinct(traces)
    return [name for registry in (LEARNERS, SOLVERS) for name, _ in variants(registry, once)]


def _distinct(traces: Iterable[float]) -> tuple[float, ...]:
    return tuple(dict.fromkeys(unit("traces", one) for one in listed("traces", traces, "numbers")))


def variants(
    registry: Registry, traces: tuple[float, ...]
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names and constructors of every method, with each option that changes where it lands."""
    for name in registry.names():
        factory = registry[name]
        accepted = inspect.signature(factory).parameters
        settings: list[dict[str, Any]] = [{}]
        for option, choices in (("trace", traces), *_CHOICES.items()):
            if option in accepted and (option == "trace" or accepted[option].default in choices):
                settings = [{**given, option: choice} for given in settings for choice in choices]
        for given in settings:
            shown = [f"{k}={v}" for k, v in given.items() if v != accepted[k].default]
            label = f"{name}({', '.join(shown)})" if shown else name
            yield label, partial(factory, **given)


def _learner(problem: Problem, name: str, learner: Any, finder: _Amplification) -> Landing:
    if not hasattr(learner, "mean_dynamics"):
        return Landing(name, "learner", reason="it gives no mean dynamics")
    if not getattr(learner, "discounted", True):
        return Landing(name, "learner", reason="it predicts no discounted values")
    mean = learner.mean_dynamics(finder.model)
    dynamics = LinearDynamics(mean.A, finder.system.scale)
    point = land(problem, learner, dynamics, mean.b)
    if point.theta is None:
        reason = "its mean dynamics have no fixed point"
        return Landing(name, "learner", stable=False, max_step_size=0.0, reason=reason)

    def landed(reward: Floats) -> Floats | None:
        b = np.asarray(learner.mean_dynamics(finder.rewarded(reward)).b)
        x = dynamics.limit(b, np.zeros(len(b)))
        return None if x is None else x[: problem.d]

    worst, reason = finder(landed)
    reason = "; ".join(filter(None, (reason, getattr(learner, "simplified", ""))))
    errors = (point.rmse, point.suboptimality, point.rmspbe)
    return Landing(name, "learner", *errors, point.stable, point.max_step_size, worst, reason)


def _solver(problem: Problem, name: str, solver: Any, finder: _Amplification) -> Landing:
    if not hasattr(solver, "limit"):
        return Landing(name, "solver", reason="it gives no limit")
    if not getattr(solver, "discounted", True):
        return Landing(name, "solver", reason="it predicts no discounted values")
    theta = np.asarray(solver.limit(finder.model))
    worst, reason = finder(lambda reward: solver.limit(finder.rewarded(reward)))
    errors = (rmse(problem, theta), suboptimality(problem, theta), rmspbe(problem, theta))
    return Landing(name, "solver", *errors, None, None, worst, reason)


class _Amplification:
    """The amplification of a method that is known only by where it lands for given rewards.

    Landing points for random rewards reveal which direction of the table it has. A direction that
    is not in the table, if there is one, is found state by state: it reproduces every value in span
    Phi.
    """

    def __init__(
        self, problem: Problem, traces: tuple[float, ...], progress: Callable[[str], Any]
    ) -> None:
        self.problem, self.model = problem, SharedModel.of(model(problem))
        self.system = s = system(problem)
        self._seen = np.flatnonzero(s.weight > 0.0)
        self._root = np.sqrt(s.weight[self._seen])
        rng = np.random.default_rng(0)
        self._reward = rng.standard_normal(problem.n_states)
        self._coefficients = rng.standard_normal(problem.d)
        self._known: list[tuple[Floats, float]] = []
        made: set[str] = set()
        for trace in traces:
            for name, build in recipes(problem, trace).items():
                if name not in made:
                    made.add(name)
                    answer_of("progress", progress, f"direction of {name}")
                    self._known.append(self._best() if name == "best" else self._land(build()))

    def __call__(self, land: Callable[[Floats], Floats | None]) -> tuple[float | None, str]:
        landed = land(self._reward)
        if landed is None:
            return None, "it has no direction X: for some rewards it lands nowhere"
        for known, worst in self._known:
            if _near(self._values(landed), known):
                return worst, ""
        if len(self._seen) > _PROBED:
            return (
                None,
                f"a direction X, if any, is not tabulated, and over {_PROBED} states not searched",
            )
        expected = self._values(self._coefficients)
        there = land(np.asarray(self.system.delta @ self._coefficients))
        if there is None or not _near(self._values(there), expected):
            return None, "it has no direction X: it misses values that the features can express"
        return self._probe(land), ""

    def rewarded(self, reward: Floats) -> Any:
        """The model with a reward for each state."""
        return replace(self.model, reward=reward[self.model.state])

    def _values(self, theta: Floats) -> Floats:
        """`Phi theta` in the states that count, times the root of their weights."""
        return np.asarray(self._root * (self.system.phi @ theta)[self._seen])

    def _land(self, X: Floats) -> tuple[Floats, float]:
        try:
            theta = solve_direction(self.system, X, self._reward)
            return self._values(theta), amplification(self.problem, X)
        except O2TDError:
            return np.full(len(self._seen), np.nan), np.nan

    def _best(self) -> tuple[Floats, float]:
        """As `_land` for `X*`, without building it: it lands on the best approximation."""
        s = self.system
        value = chain.solve(s.P_gamma, self._reward)
        return self._values(compress(s.phi, value, s.weight, s.scale).center), 1.0

    def _probe(self, land: Callable[[Floats], Floats | None]) -> float:
        """`|Phi G L|_xi` for the map G from rewards to theta, column by column."""
        landed = [land(_unit(self.problem.n_states, int(s))) for s in self._seen]
        phi = dense(self.system.phi[self._seen]) * self._root[:, None]
        G = phi @ np.column_stack(landed)  # type: ignore[arg-type]
        P = dense(self.system.P_gamma[self._seen][:, self._seen])
        projection = (G - G @ P) / self._root
        return max(1.0, float(np.linalg.norm(projection, 2)))


def _near(one: Floats, other: Floats) -> bool:
    return bool(np.linalg.norm(one - other) <= _SAME * np.linalg.norm(other))


def _unit(n: int, k: int) -> Floats:
    unit = np.zeros(n)
    unit[k] = 1.0
    return unit

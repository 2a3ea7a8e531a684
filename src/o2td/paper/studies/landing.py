"""Where every method lands, exactly: claims 14 and 15 and the report's "how near to optimal"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from o2td import domains, exact
from o2td.emphasis import READINGS, Omega
from o2td.errors import O2TDError
from o2td.exact.analysis import variants
from o2td.experiments.studies import Measurement
from o2td.learners import ABTD, ETD, GTD2, HTD, O2TD, TD, TDC, TDRC, TreeBackup, VTrace
from o2td.problem import Problem
from o2td.registry import LEARNERS, SOLVERS

CLASSIC: dict[str, dict[str, Any]] = {
    "boyan_chain": {},
    "collision": {},
    "random_walk": {"form": "dependent"},
    "random_mdp": {"states": 100, "features": 21},
    "four_rooms": {"target": 0},
}
TRACES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99, 1.0)


def nearness(first: int, last: int, seed: int) -> Iterator[Measurement]:
    """RMSE of each method's limit over that of the best approximation.

    All methods at lambda 0 and 0.9 on garnets and the classic domains; some of them for lambda from
    0 to 1 on the garnets.
    """
    for k in range(first, last):
        problem = domains.garnet(seed=(seed, k))
        yield from _landings("garnet", problem, k)
        for trace in TRACES:
            for name, learner in _by_trace(trace).items():
                yield from _ratio("garnet by lambda", name, problem, learner, k, trace)
    if first == 0:
        for name, parameters in CLASSIC.items():
            yield from _landings(name, getattr(domains, name)(**parameters), 0)


def _landings(domain: str, problem: Problem, k: int) -> Iterator[Measurement]:
    for name, build in variants(LEARNERS, (0.0, 0.9)):
        learner = build()
        if getattr(learner, "discounted", True):
            yield from _ratio(domain, name, problem, learner, k, 0.0)
    model = exact.model(problem)
    for name, build in variants(SOLVERS, (0.0, 0.9)):
        solver = build()
        if not getattr(solver, "discounted", True):
            continue
        try:
            theta = solver.limit(model)
            yield Measurement(domain, name, "suboptimality", exact.suboptimality(problem, theta), k)
        except O2TDError:
            continue
    for name, X in exact.directions(problem).items():
        try:
            yield Measurement(domain, name, "amplification", exact.amplification(problem, X), k)
        except O2TDError:
            continue


def _by_trace(trace: float) -> dict[str, Any]:
    return {
        "TD": TD(0.1, trace=trace),
        "ETD": ETD(0.1, trace=trace),
        "O2TD state": O2TD(0.1, omega="state", trace=trace),
        "O2TD sample": O2TD(0.1, omega="sample", trace=trace),
        "VTrace": VTrace(0.1, trace=trace),
        "TreeBackup": TreeBackup(0.1, trace=trace),
    }


def _ratio(
    domain: str, name: str, problem: Problem, learner: Any, k: int, x: float
) -> Iterator[Measurement]:
    try:
        point = exact.fixed_point(problem, learner)
        yield Measurement(domain, name, "suboptimality", point.suboptimality, k, x)
    except O2TDError:
        return


def stability(first: int, last: int, seed: int) -> Iterator[Measurement]:
    """Whether each learner's mean dynamics is stable, on- and off-policy, on random problems.

    Few features against many states, gamma = 0.99: where instability shows. GTD2 with omega
    emphasis is the repair of O2TD. With the first part comes a cycle of three states, on-policy,
    as a counterexample that can be checked by hand.
    """
    learners: dict[str, Any] = {
        "TD": TD(0.1),
        "TD 0.9": TD(0.1, trace=0.9),
        "VTrace 0.9": VTrace(0.1, trace=0.9),
        "TreeBackup 0.9": TreeBackup(0.1, trace=0.9),
        "ABTD 0.5": ABTD(0.1, zeta=0.5),
        "ETD": ETD(0.1),
        "ETD 0.9": ETD(0.1, trace=0.9),
        "ETD beta 0.5": ETD(0.1, decay=0.5),
        **{f"O2TD {reading}": O2TD(0.1, omega=reading) for reading in READINGS},
        "O2TD state 0.9": O2TD(0.1, omega="state", trace=0.9),
        **{f"GTD2 omega {w}": GTD2(0.1, emphasis=Omega(w)) for w in READINGS},
        "GTD2": GTD2(0.1),
        "TDC": TDC(0.1),
        "TDRC": TDRC(0.1),
        "HTD": HTD(0.1),
    }
    if first == 0:
        for name, learner in learners.items():
            least = exact.fixed_point(_cycle(), learner).eigenvalues.real.min()
            yield Measurement("cycle", name, "least eigenvalue", float(least))
    for on_policy in (True, False):
        domain = "on-policy" if on_policy else "off-policy"
        for k in range(first, last):
            problem = domains.garnet(
                states=30, features=5, discount=0.99, peak=4, seed=(seed, k), on_policy=on_policy
            )
            for name, learner in learners.items():
                try:
                    point = exact.fixed_point(problem, learner)
                except O2TDError:
                    continue
                yield Measurement(domain, name, "unstable", float(not point.stable), k)


def _cycle() -> Problem:
    """0 to 1 to 2 to 0 for certain, gamma = 0.9, no reward: A of O2TD has a negative eigenvalue."""
    return Problem(
        np.roll(np.eye(3), 1, axis=1)[:, None, :],
        reward=np.zeros((3, 1)),
        discount=0.9,
        behavior=np.ones((3, 1)),
        target=np.ones((3, 1)),
        features=np.array([[-1.0, 2.0], [-2.0, 2.0], [2.0, 0.0]]),
        name="cycle",
    )

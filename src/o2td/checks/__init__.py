"""Conformance checks: promises that learners, solvers, domains and sources keep, also for your own.

A package that registers an algorithm by entry point is found, and its tests are three lines::

    import pytest
    from o2td.checks import all_checks

    @pytest.mark.parametrize("check", all_checks("learners", MyTD), ids=str)
    def test_conformance(check):
        check()

`all_checks("learners")` without a class covers every registered one. A check fails with a sentence
that says what was expected and what was found; one that makes no sense for a subject is reported as
skipped, with the property of the subject that says so.

>>> from o2td import TD
>>> from o2td.checks import check_learner
>>> report = check_learner(TD(trace=0.5))
>>> "splits" in report.passed, report.not_applicable
(True, {})
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from o2td.arguments import shown
from o2td.checks import (  # noqa: F401  (their import registers the checks)
    alike,
    domains,
    learner_rows,
    learner_state,
    learner_theory,
    solver_answers,
    solver_rows,
    sources,
)
from o2td.checks.base import (
    BoundCheck,
    Check,
    CheckError,
    DoesNotApply,
    Report,
    bound,
    checks_of,
    fingerprint,
    run,
)
from o2td.checks.settings import members
from o2td.errors import InputError
from o2td.registry import DOMAINS, LEARNERS, SOLVERS

__all__ = [
    "BoundCheck",
    "Check",
    "CheckError",
    "DoesNotApply",
    "Report",
    "all_checks",
    "check_domain",
    "check_learner",
    "check_solver",
    "check_source",
    "checks_of",
    "fingerprint",
]

_REGISTRIES = {"learners": LEARNERS, "solvers": SOLVERS, "domains": DOMAINS}


def all_checks(kind: str, *subjects: Any) -> list[BoundCheck]:
    """Every check of a kind on every subject, ready to be called.

    Parameters
    ----------
    kind : "learners", "solvers", "domains" or "sources"
        What the subjects are.
    *subjects : classes, instances or registered names; for domains functions, problems or names
        If none is given, all that are registered, including those of other packages. A class stands
        for all its settings (`o2td.checks.settings`). Sources are not registered: pass some.

    Examples
    --------
    >>> names = {check.name for check in all_checks("learners", "td")}
    >>> len(names) >= 25
    True
    """
    checks_of(kind)
    if kind == "sources" and not subjects:
        raise InputError("sources: pass the sources to check, such as open_logs(...)")
    chosen = subjects or tuple(_REGISTRIES[kind].names())
    pairs = [pair for subject in chosen for pair in _instances(kind, subject)]
    return [check for member, label in pairs for check in bound(kind, member, label)]


def check_learner(subject: Any) -> list[Report] | Report:
    """Run every check on a learner: one report for an instance, one per setting for a class.

    >>> from o2td import TD
    >>> print(check_learner(TD()))
    TD(): ... passed, 1 not applicable
    """
    return _run("learners", subject)


def check_solver(subject: Any) -> list[Report] | Report:
    """Run every check on a solver: one report for an instance, one per setting for a class.

    >>> from o2td import LSTD
    >>> "merged" in check_solver(LSTD(trace=0.5)).passed
    True
    """
    return _run("solvers", subject)


def check_domain(subject: Any) -> list[Report] | Report:
    """Run every check on a domain: a function that makes a problem, its name, or a problem.

    >>> report = check_domain("random_walk")
    >>> "sampler_follows_matrices" in report.passed
    True
    """
    return _run("domains", subject)


def check_source(subject: Any) -> Report:
    """Run every check on a source of logged data.

    >>> import numpy as np
    >>> from o2td import sources
    >>> even = lambda x: np.full((len(x), 2), 0.5)
    >>> played = sources.rollouts("CartPole-v1", even, discount=0.99, episodes=5)
    >>> "chunk_sizes" in check_source(played).passed
    True
    """
    return run("sources", *sources.subject(subject))


def _run(kind: str, subject: Any) -> list[Report] | Report:
    reports = [run(kind, member, label) for member, label in _instances(kind, subject)]
    whole = kind != "domains" and (isinstance(subject, (str, type)))
    return reports if whole else reports[0]


def _instances(kind: str, subject: Any) -> Iterator[tuple[Any, str]]:
    if kind in ("domains", "sources"):
        yield (domains if kind == "domains" else sources).subject(subject)
        return
    if isinstance(subject, str):
        subject = _REGISTRIES[kind][subject]
    if not callable(getattr(subject, "predict", None)):
        raise InputError(f"{kind}: check a class, an instance or a name, not {shown(subject)}")
    if isinstance(subject, type):
        yield from ((member, repr(member)) for member in members(subject))
    else:
        yield subject, repr(subject)

"""Passes over a log, shared by everything that needs one.

An estimator or a test of the log that needs passes is a generator: it yields the statistics that
the next pass should fill. All generators advance together, so one pass serves all of them, and a
statistic that several ask for is filled once.
"""

from __future__ import annotations

from collections.abc import Iterable

from o2td.evaluation.episodes import Episodes, Log
from o2td.evaluation.statistic import Passes, Statistic


class Together:
    """Several statistics that one pass fills."""

    def __init__(self, members: list[Statistic]) -> None:
        self.members = members

    def add(self, episodes: Episodes) -> None:
        """Hand the episodes to every member."""
        for member in self.members:
            member.add(episodes)

    def merge(self, other: Together) -> None:
        """Merge member by member."""
        for mine, theirs in zip(self.members, other.members, strict=True):
            mine.merge(theirs)


def together(jobs: Iterable[Passes]) -> Passes:
    """Run all jobs as one: each pass fills what any of them asks for, each statistic once.

    >>> def job(*names):
    ...     yield from ([name] for name in names)
    >>> list(together([job("a", "b", "c"), job("a", "d")]))
    [['a'], ['b', 'd'], ['c']]
    """
    waiting = list(jobs)
    while waiting:
        asked = [(job, next(job, None)) for job in waiting]
        waiting = [job for job, wanted in asked if wanted is not None]
        if waiting:
            members = {id(one): one for _, wanted in asked for one in wanted or ()}
            yield list(members.values())


def run_passes(log: Log, jobs: Iterable[Passes]) -> None:
    """Advance all jobs until none asks for another pass."""
    for wanted in together(jobs):
        if wanted:
            log.collect(Together(list(wanted)))

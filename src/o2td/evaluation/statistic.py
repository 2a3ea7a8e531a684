"""What a pass over a log fills, and how those who want something of it take their turns.

A statistic takes in whole episodes, and two of them that took in different episodes merge into one
of all. Whoever needs passes, an estimator or a test of the log, is a generator that yields the
statistics which the next pass shall fill. All generators go on together, so that a pass serves
everybody who waits for one, and a statistic that several ask for is filled once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from o2td.evaluation.episodes import Episodes, Log

__all__ = ["Passes", "Statistic", "run_passes"]


@runtime_checkable
class Statistic(Protocol):
    """Something that is computed from episodes, a part of them at a time.

    Order does not matter to what it says in the end, but for rounding. It must be possible to copy
    and to pickle one: on a cluster each worker fills its own.

    >>> class Rewards:
    ...     total = 0.0
    ...     def add(self, episodes):
    ...         self.total += episodes.rows.reward.sum()
    ...     def merge(self, other):
    ...         self.total += other.total
    >>> isinstance(Rewards(), Statistic)
    True
    """

    def add(self, episodes: Episodes, /) -> None:
        """Take in more episodes."""

    def merge(self, other: Any, /) -> None:
        """Take in what another one of the same kind has seen."""


Passes = Iterator[Sequence[Statistic]]


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


def run_passes(log: Log, jobs: Iterable[Passes]) -> None:
    """Let all jobs go on until none asks for another pass; a pass fills what all of them ask for."""
    waiting = list(jobs)
    while waiting:
        asked = [(job, next(job, None)) for job in waiting]
        waiting = [job for job, wanted in asked if wanted is not None]
        members = {id(one): one for _, wanted in asked for one in wanted or ()}
        if members:
            log.collect(Together(list(members.values())))

"""What a pass over a log fills: something that takes in whole episodes and can be merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from o2td.evaluation.episodes import Episodes

__all__ = ["Passes", "Statistic"]


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

    def __init__(self) -> None:
        """Start with nothing."""

    def add(self, episodes: Episodes, /) -> None:
        """Take in more episodes."""

    def merge(self, other: Any, /) -> None:
        """Take in what another one of the same kind has seen."""


Passes = Iterator[Sequence[Statistic]]

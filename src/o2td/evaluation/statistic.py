"""What one pass over a log accumulates: it takes in whole episodes and can be merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from o2td.evaluation.episodes import Episodes


@runtime_checkable
class Statistic(Protocol):
    """A result that is accumulated from episodes, batch by batch.

    The order of batches does not change the result, except for rounding. It must be possible to
    copy and to pickle a statistic: on a cluster each worker fills its own.

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
        """Start empty."""

    def add(self, episodes: Episodes, /) -> None:
        """Take in more episodes."""

    def merge(self, other: Any, /) -> None:
        """Add what another statistic of the same kind has accumulated."""


Passes = Iterator[Sequence[Statistic]]

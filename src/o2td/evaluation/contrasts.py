"""Differences between estimates, with each episode's influence on them.

Two estimates from the same episodes err together, so the spread of their difference is that of the
difference of the episodes' influences and not the sum of both spreads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from o2td.evaluation.episodes import Episodes
from o2td.evaluation.influence import Influences
from o2td.evaluation.moments import Moments, Spread

Traced = tuple[Influences, int]  # a column, and the influences that have it


@dataclass(eq=False)
class Contrasts:
    """Moments of differences between columns of `Influences`, of one study or of several.

    In a pass it comes after all of them.
    """

    pairs: list[tuple[Traced, Traced]] = field(default_factory=list)
    moments: Moments | None = None

    def want(self, one: Traced, two: Traced) -> int:
        """Track the difference `one - two`; returns its number."""
        self.pairs.append((one, two))
        return len(self.pairs) - 1

    def add(self, block: Episodes) -> None:
        """Add the episodes that the influences have just added."""
        if not self.pairs:
            return
        first = self.pairs[0][0][0]
        if self.moments is None:
            self.moments = Moments(len(self.pairs), users=first.users)
        columns = [one.latest(a) - two.latest(b) for (one, a), (two, b) in self.pairs]
        self.moments.add(np.column_stack(columns), first.latest_keys())

    def merge(self, other: Contrasts) -> None:
        """Add another one's moments."""
        if self.moments is None:
            self.moments = other.moments
        elif other.moments is not None:
            self.moments.merge(other.moments)

    def spread(self, number: int) -> Spread:
        """Moments of a difference, without lanes: those are differences of the estimates' lanes."""
        assert self.moments is not None  # noqa: S101
        return self.moments.spread(number)

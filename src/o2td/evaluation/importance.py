"""Sums over weighted histories for all estimators and diagnostics, from the first pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from o2td.arrays import Ints
from o2td.evaluation.episodes import Episodes
from o2td.evaluation.histories import HORIZON, Horizon, histories
from o2td.evaluation.moments import Moments, Spread
from o2td.evaluation.pareto import Largest
from o2td.evaluation.returns import EpisodeReturns

LARGEST = 1 << 16  # weights kept: the whole tail, 3 sqrt(episodes), of up to 477 million episodes
_NUMBERS = ("is", "pdis", "weight", "plain")


@dataclass(eq=False)
class Totals:
    """Sums over episodes; `left` is the discount that a truncation leaves, `apart` is `rho - 1`."""

    opened: float = 0.0
    ended: float = 0.0
    left: float = 0.0
    positive: float = 0.0
    weight_squared: float = 0.0
    rho: float = 0.0
    rho_squared: float = 0.0
    rows: float = 0.0
    rows_squared: float = 0.0
    apart: float = 0.0
    apart_squared: float = 0.0
    apart_by_rows: float = 0.0

    def add(self, **values: Any) -> None:
        """Add to the sums by name."""
        for name, value in values.items():
            setattr(self, name, getattr(self, name) + float(value))


@dataclass(eq=False)
class Weighed:
    """First pass: moments and sums over episodes, sums by step, lengths, and the largest weights."""

    users: bool = False

    horizon: Horizon = field(default_factory=Horizon)
    moments: Moments = field(init=False)
    totals: Totals = field(default_factory=Totals)
    top: Largest = field(default_factory=lambda: Largest(LARGEST))
    lengths: Ints = field(default_factory=lambda: np.zeros(HORIZON + 1, dtype=np.int64))
    largest: float = 0.0  # ratio of an action
    lone: int = 0  # episodes with a start but no rows
    returns: EpisodeReturns = field(default_factory=EpisodeReturns)

    def __post_init__(self) -> None:
        self.moments = Moments(len(_NUMBERS), users=self.users)

    def add(self, block: Episodes) -> None:
        """Take in a block."""
        weight, gone, step = histories(block)
        rows, last = block.rows, block.first[1:] - 1
        lone = 0 if block.lone is None else len(block.lone)
        self.lone += lone
        reward = gone * rows.reward
        weighted = weight * reward
        self.horizon.add(block, weight, step, weighted)
        final, plain = weight[last], block.sums(reward)
        each = np.column_stack([final * plain, block.sums(weighted), final, plain])
        self.moments.add(each, block.key)
        self.returns.add(block.key, plain, final)
        self.top.add(final[final > 0.0])
        length = np.diff(block.first)
        self.lengths += np.bincount(np.minimum(length, HORIZON), minlength=HORIZON + 1)
        self.largest = max(self.largest, float(rows.rho.max()))
        apart = block.sums(rows.rho) - length
        self.totals.add(
            opened=block.opens.sum() + lone,
            ended=rows.terminated[last].sum(),
            left=np.where(rows.terminated[last], 0.0, gone[last] * rows.discount[last]).sum(),
            positive=np.count_nonzero(final),
            weight_squared=final @ final,
            rho=rows.rho.sum(),
            rho_squared=rows.rho @ rows.rho,
            rows=length.sum(),
            rows_squared=length @ length,
            apart=apart.sum(),
            apart_squared=apart @ apart,
            apart_by_rows=apart @ length,
        )

    def merge(self, other: Weighed) -> None:
        """Add another one's sums."""
        self.horizon.merge(other.horizon)
        self.moments.merge(other.moments)
        self.returns.merge(other.returns)
        self.totals.add(**vars(other.totals))
        self.top.add(other.top.sorted())
        self.lengths += other.lengths
        self.lone += other.lone
        self.largest = max(self.largest, other.largest)

    @property
    def count(self) -> int:
        """Number of episodes that have rows."""
        return self.moments.count

    @property
    def units(self) -> int:
        """Number of episodes, including those with a start but no rows."""
        return self.count + self.lone

    def spread(self, name: str) -> Spread:
        """Moments of `is` and `pdis` by episode, of the `weight` or of the `plain` return."""
        return self.moments.spread(_NUMBERS.index(name))

"""Cross-checks without a model: importance sampling, and doubly robust corrections of a fit.

With histories' weights `w_t`, discounts `g_t` and episodes' ends T:

| name | estimate |
|---|---|
| `is` | `mean_e w_T sum_t g_t r_t` |
| `wis` | `sum_e w_T sum_t g_t r_t / sum_e w_T` |
| `pdis` | `mean_e sum_t g_t w_t r_t` |
| `wpdis` | `sum_t (sum_e g_t w_t r_t) / (sum_e w_t)` |
| `dr` | `mean_e [V(s_0) + sum_t g_t w_t delta_t]` (Jiang and Li 2016) |
| `wdr` | the same with `w_t / sum_e w_t` (Thomas and Brunskill 2016) |

`V` in the last two is fitted on the other folds of episodes. Where an episode was truncated, `dr` and
`wdr` go on with `V` of the final observation; the first four count what was seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from o2td.evaluation.episodes import Episodes, Floats, Ints
from o2td.evaluation.histories import HORIZON, Horizon, histories
from o2td.evaluation.moments import Moments, Spread
from o2td.evaluation.tail import Largest

FAMILY = ("is", "wis", "pdis", "wpdis")
ROBUST = ("dr", "wdr")
SHORT = "short"  # the weighted doubly robust correction over the first steps
LARGEST = 1 << 16  # weights held: the whole tail of up to 477 million episodes, 3 sqrt(episodes)
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

    horizon: Horizon = field(default_factory=Horizon)
    moments: Moments = field(default_factory=lambda: Moments(len(_NUMBERS)))
    totals: Totals = field(default_factory=Totals)
    top: Largest = field(default_factory=lambda: Largest(LARGEST))
    lengths: Ints = field(default_factory=lambda: np.zeros(HORIZON + 1, dtype=np.int64))
    largest: float = 0.0  # ratio of an action
    lone: int = 0  # episodes of which only the start is known

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
        """Add what another one holds."""
        self.horizon.merge(other.horizon)
        self.moments.merge(other.moments)
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
        """Number of episodes, those included of which only the start is known."""
        return self.count + self.lone

    def spread(self, name: str) -> Spread:
        """Moments of `is` and `pdis` by episode, of the `weight` or of the `plain` return."""
        return self.moments.spread(_NUMBERS.index(name))

    def value(self, method: str) -> float:
        """The estimate of one of the family."""
        if method == "wpdis":
            return float(self.horizon.weighted().sum())
        if method != "wis":
            return self.spread(method).mean
        weight = self.spread("weight").mean
        return self.spread("is").mean / weight if weight > 0.0 else float("nan")


@dataclass(frozen=True, eq=False)
class Corrected:
    """Second pass: influence of all that weighs histories, with errors of a cross-fitted `V`.

    The columns of `dr` and `wdr` average to their distance from `base`, the mean of `V(s_0)`, those of
    the others to 0; that of the last to the correction of `V` over the first `reach` steps. Averages
    are over all episodes: one of which only the start is known moves `dr` and `wdr` by it, and
    nothing else.
    """

    weighed: Weighed
    methods: tuple[str, ...]
    reach: int  # steps up to which histories still have weight
    base: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        return (*self.methods, SHORT)

    def columns(self, block: Episodes, first: Floats, delta: Floats) -> Floats:
        """One number an episode for each name.

        `first` is `V(s_0)` by episode and `delta` the error by row, both of the episode's own fold.
        """
        weight, gone, step = histories(block)
        horizon, units = self.weighed.horizon, self.weighed.units
        each = units / self.weighed.count
        opens, last = block.opens, weight[block.first[1:] - 1]
        discounted = gone * block.rows.reward
        reward, error = weight * discounted, weight * gone * delta
        total = horizon.total
        inverse = np.divide(1.0, total, out=np.zeros(len(total)), where=total > 0.0)
        share = units * error * inverse[step]
        start = self._start(np.where(opens, first - self.base, 0.0))
        made: dict[str, Callable[[], Floats]] = {
            "is": lambda: each * (last * block.sums(discounted) - self.weighed.value("is")),
            "wis": lambda: each * self._normalised(last, block.sums(discounted)),
            "pdis": lambda: each * (block.sums(reward) - self.weighed.value("pdis")),
            "wpdis": lambda: units * horizon.centered(block, weight, step, reward),
            "dr": lambda: start + each * block.sums(error),
            "wdr": lambda: start + block.sums(share),
            SHORT: lambda: block.sums(np.where(step < self.reach, share, 0.0)),
        }
        return np.column_stack([made[name]() for name in self.names])

    def lone(self, first: Floats) -> Floats:
        """The same of episodes of which only the start is known, with `V(s_0)` as `first`."""
        start = self._start(first - self.base)
        nothing = np.zeros(len(first))
        return np.column_stack([start if name in ROBUST else nothing for name in self.names])

    def _start(self, apart: Floats) -> Floats:
        return apart * (self.weighed.units / max(self.weighed.totals.opened, 1.0))

    def _normalised(self, weight: Floats, plain: Floats) -> Floats:
        mean = self.weighed.spread("weight").mean
        if mean <= 0.0:
            return np.zeros(len(weight))
        return weight * (plain - self.weighed.value("wis")) / mean

    def value(self, method: str, influence: Spread) -> float:
        """The estimate."""
        return self.base + influence.mean if method in ROBUST else self.weighed.value(method)

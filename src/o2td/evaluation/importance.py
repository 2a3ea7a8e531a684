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

from dataclasses import dataclass, field

import numpy as np

from o2td.evaluation.blocks import Block, Floats
from o2td.evaluation.histories import Episodes, Horizon, histories

FAMILY = ("is", "wis", "pdis", "wpdis")


@dataclass(eq=False)
class Weighed:
    """First pass: one number an episode, and sums by step."""

    episodes: Episodes = field(default_factory=Episodes)
    horizon: Horizon = field(default_factory=Horizon)

    def add(self, block: Block) -> None:
        """Take in a block."""
        weight, gone, step = histories(block)
        rows = block.rows
        reward = gone * rows.reward
        weighted = weight * reward
        self.horizon.add(block, weight, step, weighted)
        last = block.first[1:] - 1
        self.episodes.add(
            key=block.key,
            opens=block.opens,
            length=np.diff(block.first),
            weight=weight[last],
            plain=block.sums(reward),
            decided=block.sums(weighted),
            ended=rows.terminated[last],
            left=gone[last] * rows.discount[last],
            ratio=block.sums(rows.rho),
            square=block.sums(rows.rho**2),
            largest=np.maximum.reduceat(rows.rho, block.first[:-1]),
            rewarded=np.add.reduceat((rows.reward != 0.0) & (rows.rho > 0.0), block.first[:-1]),
        )

    def estimate(self, method: str) -> tuple[float, Floats]:
        """Value and influence values of one of the first three; `wpdis` needs a second pass."""
        total, weight = self.episodes["decided"], self.episodes["weight"]
        if method in ("is", "wis"):
            total = weight * self.episodes["plain"]
        if method != "wis":
            value = float(total.mean())
            return value, total - value
        mean = float(weight.mean())
        value = float(total.mean() / mean) if mean > 0.0 else float("nan")
        return value, (total - value * weight) / mean if mean > 0.0 else np.zeros(len(weight))


@dataclass(eq=False)
class Corrected:
    """Second pass: influence of `wpdis`, and doubly robust estimates of a cross-fitted `V`."""

    weighed: Weighed
    reach: int  # steps up to which histories still have weight, for the short correction
    parts: Episodes = field(default_factory=Episodes)
    errors: Horizon = field(default_factory=Horizon)

    def add(self, block: Block, first: Floats, delta: Floats) -> None:
        """Take in a block with `V(s_0)` by episode and `delta` by row, of the episode's own fold."""
        weight, gone, step = histories(block)
        rows = block.rows
        horizon = self.weighed.horizon
        reward = weight * gone * rows.reward
        error = weight * gone * delta
        total = horizon.total
        inverse = np.divide(1.0, total, out=np.zeros(len(total)), where=total > 0.0)
        self.errors.add(block, weight, step, error)
        short = np.where(step < self.reach, error, 0.0)
        self.parts.add(
            wpdis=horizon.centered(block, weight, step, reward),
            first=first,
            dr=block.sums(error),
            wdr=block.sums(error * inverse[step]),
            short=block.sums(short * inverse[step]),
        )

    def estimate(self, method: str) -> tuple[float, Floats]:
        """Value and influence values of `wpdis`, `dr` or `wdr`."""
        opens = self.weighed.episodes["opens"]
        count = len(opens)
        if method == "wpdis":
            value = float(self.weighed.horizon.weighted().sum())
            return value, count * self.parts["wpdis"]
        base, around = self._base()
        each = self.parts[method] * (1.0 if method == "dr" else count)
        value = base + float(each.mean())
        return value, around + each - each.mean()

    def _base(self) -> tuple[float, Floats]:
        opens = self.weighed.episodes["opens"]
        first = self.parts["first"]
        base = float(first[opens].mean())
        return base, np.where(opens, first - base, 0.0) * (len(opens) / max(opens.sum(), 1))

    def correction(self) -> tuple[float, float]:
        """The doubly robust correction over the first `reach` steps, and its standard error."""
        from o2td.evaluation.bootstrap import standard_error

        each = self.parts["short"] * len(self.parts["short"])
        return float(each.mean()), standard_error(each)

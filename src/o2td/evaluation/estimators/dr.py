"""Doubly robust: `mean_e [V(s_0) + sum_t g_t w_t delta_t]` (Jiang and Li 2016).

`V` is fitted on the other folds of episodes, unless the user gives one. A truncated episode is
continued by `V` of the final observation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from o2td.arrays import Floats
from o2td.evaluation.families import HybridEstimator
from o2td.evaluation.influence import Column, Histories

if TYPE_CHECKING:
    from o2td.evaluation.importance import Weighed
    from o2td.evaluation.study import Study


class DoublyRobust(HybridEstimator):
    """A fitted value, corrected by the mean of weighted TD errors."""

    name = "dr"
    title = "doubly robust"

    def make_column(self, study: Study) -> Column:
        """What each episode adds to the fit's mean."""
        weighed, baseline = study.weighed, study.control
        number = study.influences.correct(baseline)
        start = weighed.units / max(weighed.totals.opened, 1.0)
        return DoublyRobustColumn(number, baseline.mean, start, self._share(weighed))

    def _share(self, weighed: Weighed) -> Floats:
        """The weight of an error by step, besides that of its history."""
        return np.full(len(weighed.horizon.inverse), weighed.units / weighed.count)


class DoublyRobustColumn(Column):
    """`V(s_0) - mean V(s_0) + sum_t share_t g_t w_t delta_t` of an episode."""

    def __init__(self, baseline: int, base: float, start: float, share: Floats) -> None:
        self.baseline, self.base, self.start, self.share = baseline, base, start, share

    def of(self, histories: Histories) -> Floats:
        """One number per episode."""
        h, block = histories, histories.episodes
        apart = np.where(block.opens, h.first[self.baseline] - self.base, 0.0)
        error = h.weight * h.gone * h.delta[self.baseline]
        return apart * self.start + block.sums(error * self.share[h.step])

    def alone(self, count: int, first: list[Floats]) -> Floats:
        """The part of an episode without rows."""
        return (first[self.baseline] - self.base) * self.start

"""Weighted trajectory importance sampling: `sum_e w_T sum_t g_t r_t / sum_e w_T`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from o2td.arrays import Floats
from o2td.evaluation.families import HistoryEstimator
from o2td.evaluation.influence import Column, Histories

if TYPE_CHECKING:
    from o2td.evaluation.study import Study


class WeightedTrajectoryIS(HistoryEstimator):
    """`is` with weights divided by their sum."""

    name = "wis"
    title = "weighted trajectory importance sampling"
    whole = True

    def value(self, study: Study) -> float:
        """The weighted mean over episodes."""
        weight = study.weighed.spread("weight").mean
        return study.weighed.spread("is").mean / weight if weight > 0.0 else float("nan")

    def make_column(self, study: Study) -> Column:
        """Each episode's contribution, minus the weighted mean."""
        weighed = study.weighed
        each = weighed.units / weighed.count
        return WeightedTrajectoryColumn(self.value(study), weighed.spread("weight").mean, each)


class WeightedTrajectoryColumn(Column):
    """`w_T (G - value) / mean w_T` of an episode; `each` is episodes over those with rows."""

    def __init__(self, value: float, mean: float, each: float) -> None:
        self.value, self.mean, self.each = value, mean, each

    def of(self, histories: Histories) -> Floats:
        """One number per episode."""
        block = histories.episodes
        if self.mean <= 0.0:
            return np.zeros(block.count)
        plain = block.sums(histories.gone * block.rows.reward)
        weight = histories.weight[block.first[1:] - 1]
        return np.asarray(self.each * (weight * (plain - self.value) / self.mean))

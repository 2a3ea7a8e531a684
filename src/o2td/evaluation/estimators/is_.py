"""Trajectory importance sampling: `mean_e w_T sum_t g_t r_t`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from o2td.arrays import Floats
from o2td.evaluation.families import HistoryEstimator
from o2td.evaluation.influence import Column, Histories

if TYPE_CHECKING:
    from o2td.evaluation.study import Study


class TrajectoryIS(HistoryEstimator):
    """Returns, each weighted by the product of its episode's ratios."""

    name = "is"
    title = "trajectory importance sampling"
    whole = True

    def value(self, study: Study) -> float:
        """The mean over episodes."""
        return study.weighed.spread("is").mean

    def make_column(self, study: Study) -> Column:
        """Each episode's contribution, minus the mean."""
        return TrajectoryColumn(self.value(study), study.weighed.units / study.weighed.count)


class TrajectoryColumn(Column):
    """`w_T G` of an episode, about the mean; `each` is episodes over those with rows."""

    def __init__(self, value: float, each: float) -> None:
        self.value, self.each = value, each

    def of(self, histories: Histories) -> Floats:
        """One number per episode."""
        block = histories.episodes
        plain = block.sums(histories.gone * block.rows.reward)
        return self.each * (histories.weight[block.first[1:] - 1] * plain - self.value)

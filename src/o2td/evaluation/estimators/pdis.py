"""Per-decision importance sampling: `mean_e sum_t g_t w_t r_t`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from o2td.arrays import Floats
from o2td.evaluation.families import HistoryEstimator
from o2td.evaluation.influence import Column, Histories

if TYPE_CHECKING:
    from o2td.evaluation.study import Study


class PerDecisionIS(HistoryEstimator):
    """Rewards, each weighted by the product of the ratios up to its step."""

    name = "pdis"
    title = "per-decision importance sampling"

    def value(self, study: Study) -> float:
        """The mean over episodes."""
        return study.weighed.spread("pdis").mean

    def make_column(self, study: Study) -> Column:
        """Each episode's contribution, minus the mean."""
        return PerDecisionColumn(self.value(study), study.weighed.units / study.weighed.count)


class PerDecisionColumn(Column):
    """`sum_t g_t w_t r_t` of an episode, about the mean; `each` is episodes over those with rows."""

    def __init__(self, value: float, each: float) -> None:
        self.value, self.each = value, each

    def of(self, histories: Histories) -> Floats:
        """One number per episode."""
        block = histories.episodes
        reward = histories.weight * (histories.gone * block.rows.reward)
        return self.each * (block.sums(reward) - self.value)

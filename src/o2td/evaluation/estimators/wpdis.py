"""Weighted per-decision importance sampling: `sum_t (sum_e g_t w_t r_t) / (sum_e w_t)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from o2td.arrays import Floats
from o2td.evaluation.families import HistoryEstimator
from o2td.evaluation.histories import Horizon
from o2td.evaluation.influence import Column, Histories

if TYPE_CHECKING:
    from o2td.evaluation.study import Study


class WeightedPerDecisionIS(HistoryEstimator):
    """`pdis` with weights that are normalised at each step."""

    name = "wpdis"
    title = "weighted per-decision importance sampling"

    def value(self, study: Study) -> float:
        """The sum over steps of weighted means."""
        return float(study.weighed.horizon.weighted().sum())

    def make_column(self, study: Study) -> Column:
        """Each episode's contribution, minus the weighted means of its steps."""
        return WeightedPerDecisionColumn(study.weighed.horizon, study.weighed.units)


class WeightedPerDecisionColumn(Column):
    """`E sum_t (g_t w_t r_t - w_t m_t) / W_t` of an episode."""

    def __init__(self, horizon: Horizon, units: int) -> None:
        self.horizon, self.units = horizon, units

    def of(self, histories: Histories) -> Floats:
        """One number per episode."""
        h = histories
        reward = h.weight * (h.gone * h.episodes.rows.reward)
        return self.units * self.horizon.centered(h.episodes, h.weight, h.step, reward)

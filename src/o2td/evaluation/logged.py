"""The value of the policy that made the log: `mean_e sum_t g_t r_t`.

Where episodes were truncated, the rest is that policy's value by LSTD(0) with all ratios 1, fitted
to the other folds of episodes. This does not estimate the target; every answer shows it next to the
target's value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from o2td.arrays import Floats
from o2td.evaluation.families import HistoryEstimator
from o2td.evaluation.influence import Baseline, Column, Histories
from o2td.evaluation.statistic import Passes

if TYPE_CHECKING:
    from o2td.evaluation.study import Study


class LoggedValue(HistoryEstimator):
    """Mean of the logged returns, with an estimate of what follows truncations."""

    name = "logged"
    title = "the policy that made the log"

    def collect(self, study: Study) -> Passes:
        """Fit values of the logged policy where they are needed, then accumulate returns."""
        self.baseline: Baseline | None = None
        self.cut = study.survey.left() > 0.0
        if self.cut:
            system = study.fitting.want(study.choice.lead.logged())
            yield [study.fitting]
            self.baseline = Baseline.of(system, study.weighed.totals.opened)
            yield from self._trace(study)
        else:
            yield from super().collect(study)

    def _trace(self, study: Study) -> Passes:
        self.column = study.influences.want(self.make_column(study))
        yield [study.influences]

    def make_column(self, study: Study) -> Column:
        """Each episode's return."""
        weighed = study.weighed
        start = weighed.units / max(weighed.totals.opened, 1.0)
        each = weighed.units / weighed.count
        if self.baseline is None:
            return LoggedColumn(-1, 0.0, start, each)
        return LoggedColumn(
            study.influences.correct(self.baseline), self.baseline.mean, start, each
        )

    def value(self, study: Study) -> float:
        """The mean over episodes."""
        base = 0.0 if self.baseline is None else self.baseline.mean
        return base + study.influences.spread(self.column).mean


class LoggedColumn(Column):
    """The return of an episode, from a baseline's errors if there is one."""

    def __init__(self, baseline: int, base: float, start: float, each: float) -> None:
        self.baseline, self.base, self.start, self.each = baseline, base, start, each

    def of(self, histories: Histories) -> Floats:
        """One number per episode."""
        h, block = histories, histories.episodes
        if self.baseline < 0:
            return self.each * block.sums(h.gone * block.rows.reward)
        apart = np.where(block.opens, h.first[self.baseline] - self.base, 0.0)
        return apart * self.start + self.each * block.sums(h.gone * h.delta[self.baseline])

    def alone(self, count: int, first: list[Floats]) -> Floats:
        """The part of an episode without rows."""
        if self.baseline < 0:
            return np.zeros(count)
        return (first[self.baseline] - self.base) * self.start

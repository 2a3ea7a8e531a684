"""LSTD: `A theta = b` with `A = sum_t z_t (phi_t - gamma phi'_t)^T`, `b = sum_t z_t r_t`.

On chosen features the estimate is the mean of the middle half of several fits, and their mean
distance from it is the approximation error; on given features the distance between this fit and
that mean is added. It is at least the weighted doubly robust correction over the steps at which
histories have weight, or half of it if the estimate is a mean of fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from o2td.arrays import Floats
from o2td.evaluation.estimator import Outcome
from o2td.evaluation.families import FitEstimator
from o2td.evaluation.fitting import Fit, mean_of, middle, spread_of, usable
from o2td.evaluation.importance import Weighed
from o2td.evaluation.influence import Column, Histories
from o2td.evaluation.moments import Spread
from o2td.evaluation.statistic import Passes

if TYPE_CHECKING:
    from o2td.evaluation.study import Study

_REACH = 0.25  # histories correct a fit down to this share of effective episodes
_FEW = 50.0  # and test one down to this number of them


class LSTDEstimator(FitEstimator):
    """Least-squares TD on given features, on states, or on automatically chosen features."""

    name = "lstd"
    title = "LSTD"

    def collect(self, study: Study) -> Passes:
        """Fit the lead and the panel, then accumulate the influence of episodes."""
        choice, fitting = study.choice, study.fitting
        if not choice.average:
            choice.lead.wanted = study.settings.lanes
        for system in (choice.lead, *choice.panel):
            fitting.want(system)
        if choice.finer is not None:
            fitting.want(choice.finer)
        yield [fitting]
        self.lead: Fit = fitting.fit(choice.lead)
        self.members = usable([fitting.fit(system) for system in choice.panel])
        self.middle = middle(self.members)
        self.blend = self.middle if choice.average else [(1.0, self.lead)]
        self.column = study.influences.blend(self.blend)
        self.short = self._corrections(study)
        yield [study.influences]

    def _corrections(self, study: Study) -> dict[int, int]:
        """Columns of corrections, by the number of steps over which histories correct."""
        size, influences = study.weighed.horizon.effective_size, study.influences
        if not study.fitting.has(study.corrected):  # nobody else asked for action values
            return {}
        least = {max(_REACH * study.survey.episodes, 1.0)}
        if study.choice.exact:
            least.add(_FEW)
        found = {}
        for few in sorted(least):
            enough = size >= few
            reach = int(len(size) if enough.all() else np.argmin(enough))
            if reach and reach not in found:
                baseline = influences.correct(study.baseline)
                found[reach] = influences.want(Correction(study.weighed, baseline, reach))
        return found

    def corrections(self, study: Study) -> Iterator[tuple[int, Spread]]:
        """What weighted histories add to the values, by the number of steps."""
        return ((steps, study.influences.spread(k)) for steps, k in self.short.items())

    def estimate(self, study: Study) -> Outcome:
        """The lead's value, or the mean of the panel's."""
        value = mean_of(self.blend)
        approximation = self._from_states(study, value)
        about = f"LSTD: {self.lead.system.label}"
        if study.choice.average:
            about = f"LSTD: mean of {len(self.blend)} of {len(self.members)} fits; as model"
            about += f" {self.lead.system.label}"
        if self.members:
            apart = abs(mean_of(self.middle) - value)
            approximation = apart + spread_of(self.members, self.middle)
        for _, short in self.corrections(study) if not study.choice.exact else ():
            if approximation is not None:
                approximation = max(approximation, off_by(short, study.choice.average))
        return Outcome(
            value,
            *study.influences.found(self.column, self.blend),
            approximation=approximation,
            condition=self.lead.condition,
            about=about,
            model=self.lead.model(),
            variants=self._variants(study),
        )

    def _variants(self, study: Study) -> dict[str, float]:
        """The value under each of the panel's features, or with one weight per state."""
        panel = study.choice.panel
        found = {
            f"{place}: {system.label}": fit.value
            for place, system in enumerate(panel)
            for fit in self.members
            if fit.system is system
        }
        finer = study.choice.finer
        return found if finer is None else {**found, "states": study.fitting.fit(finer).value}

    def _from_states(self, study: Study, value: float) -> float | None:
        """The error of coarse features on states: the distance to one weight per state."""
        if study.choice.exact:
            return 0.0
        finer = study.choice.finer
        return None if finer is None else abs(study.fitting.fit(finer).value - value)


def off_by(short: Spread, average: bool) -> float:
    """The error of values that a correction shows, beyond two standard errors.

    A correction is the change of their error between the start and the last step, so they are off
    by at least half of it at one of the two; a mean of fits is not one of those values itself.
    """
    return abs(short.mean) / (2.0 if average else 1.0) - 2.0 * short.error


class Correction(Column):
    """The weighted doubly robust correction of a baseline over the first `reach` steps."""

    def __init__(self, weighed: Weighed, baseline: int, reach: int) -> None:
        self.units, self.inverse = weighed.units, weighed.horizon.inverse
        self.baseline, self.reach = baseline, reach

    def of(self, histories: Histories) -> Floats:
        """`E sum_t g_t w_t delta_t / W_t` of each episode."""
        h, step = histories, histories.step
        error = h.weight * h.gone * h.delta[self.baseline]
        share = self.units * error * self.inverse[step]
        return h.episodes.sums(np.where(step < self.reach, share, 0.0))

"""LSTD on observations and their change since the previous row, if observations are not Markov.

Used only if the test of memory fails on continuous observations: the change (a hidden velocity,
say) is added to the observation, features are chosen again on held-out episodes, and memory is
tested again.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from o2td.arrays import Floats
from o2td.evaluation.basis import FeatureRows, States
from o2td.evaluation.episodes import Episodes
from o2td.evaluation.estimator import Outcome
from o2td.evaluation.families import FitEstimator
from o2td.evaluation.fitting import agreeing, mean_of, middle
from o2td.evaluation.log_tests.memory import gains_from_past
from o2td.evaluation.log_tests.seen import Seen, seen
from o2td.evaluation.select import Choice, judge, panel, systems_of
from o2td.evaluation.statistic import Passes
from o2td.evaluation.survey import by_fold

if TYPE_CHECKING:
    from o2td.evaluation.study import Study
    from o2td.sources.log_rows import LoneStarts

_LEAST = 400  # with fewer rows nothing is chosen


def lagged(block: Episodes) -> Episodes:
    """The same episodes; each observation is followed by its change since the previous row."""
    rows = block.rows
    here, ahead = np.asarray(rows.observation), np.asarray(rows.next_observation)
    change = np.zeros_like(here)
    change[1:] = here[1:] - here[:-1]
    change[block.first[:-1]] = 0.0
    both = np.hstack([here, change]), np.hstack([ahead, ahead - here])
    return replace(block, rows=replace(rows, observation=both[0], next_observation=both[1]))


class LaggedStates(States):
    """Features of an observation and its change."""

    @property
    def name(self) -> str:
        """The features in words."""
        return f"{super().name} of the observation and its change"

    def first(self, lone: LoneStarts) -> Floats:
        """`phi(s_0)`, with a change of 0."""
        return self.phi(np.hstack([lone.input, np.zeros_like(lone.input)]))

    def rows(self, block: Episodes) -> FeatureRows:
        """Rows of a block, including changes."""
        return super().rows(lagged(block))


class LaggedEstimator(FitEstimator):
    """LSTD on observations together with their change since the previous row."""

    name = "lagged"
    title = "LSTD with the change in the observation"

    def missing(self, study: Study) -> str:
        """What is missing: observations that are not Markov."""
        self._study = study
        rows = study.sample.rows
        if rows.observation is None or len(rows) < _LEAST or not gains_from_past(seen(study)):
            return "the row before adds little to the observation"
        return "" if self._kept else "no features could be fitted to observations and their changes"

    @cached_property
    def _kept(self) -> list[Choice]:
        from o2td.evaluation.features import first_episodes

        study = self._study
        choices = judge(lagged(by_fold(first_episodes(study.sample))), study.settings.seed)
        return panel(choices) if choices else []

    @cached_property
    def _enough(self) -> bool:
        return not gains_from_past(Seen(lagged(seen(self._study).episodes)), paid=False)

    def collect(self, study: Study) -> Passes:
        """Fit the panel, then accumulate the influence of episodes."""
        if self.missing(study):
            return
        systems = [study.fitting.want(one) for one in systems_of(self._kept, LaggedStates)]
        yield [study.fitting]
        fits = [study.fitting.fit(system) for system in systems]
        fine = agreeing(np.array([fit.value for fit in fits]))
        self.members = [fit for fit, one in zip(fits, fine, strict=True) if one]
        self.blend = middle(self.members)
        self.column = study.influences.blend(self.blend)
        yield [study.influences]

    def estimate(self, study: Study) -> Outcome:
        """The mean of the middle half, as for LSTD on chosen features."""
        why = self.missing(study)
        if why:
            return Outcome.none(why)
        value = mean_of(self.blend)
        values = [fit.value for fit in self.members]
        return Outcome(
            value,
            *study.influences.found(self.column, self.blend),
            approximation=float(np.ptp(values)) / 2.0,
            condition=self.members[0].condition,
            about=f"LSTD: mean of {len(self.blend)} of {len(values)} fits, the first on"
            f" {self.members[0].system.label}",
        )

    def spared(self, study: Study) -> tuple[str, ...]:
        """Exempt from the test of memory if it passes now."""
        self._study = study
        return ("memory",) if not self.missing(study) and self._enough else ()

    def fault(self, test: str) -> float:
        """Prefer part of the past to none."""
        return 0.5 if test == "memory" else 1.0

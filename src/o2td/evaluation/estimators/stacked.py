"""The plug-in on states with part of their past, if the state alone is not Markov.

Used only if the test of memory fails. The part of the past is chosen by held-out loss, and memory
is tested again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from o2td.evaluation.cells import CellSystem
from o2td.evaluation.estimator import Doubt, Outcome
from o2td.evaluation.estimators.tstep import clock_doubts
from o2td.evaluation.families import SystemEstimator
from o2td.evaluation.fitting import AnySystem
from o2td.evaluation.horizon import ModelSystem
from o2td.evaluation.log_tests.memory import dependence
from o2td.evaluation.log_tests.seen import seen
from o2td.evaluation.past import PastCells, strata
from o2td.evaluation.thresholds import CAUTION
from o2td.evaluation.verdicts import WIDTH

if TYPE_CHECKING:
    from o2td.evaluation.study import Study
    from o2td.evaluation.verdicts import Case


class StackedEstimator(SystemEstimator):
    """A model of the logged states with part of their past, solved exactly."""

    name = "stacked"
    title = "plug-in with the past in the state"

    def missing(self, study: Study) -> str:
        """What is missing: states whose past matters, and a part of it that helps."""
        if study.past is None:
            return "the past adds nothing to the state, or no part of it helps on held-out episodes"
        return ""

    def too_large(self, study: Study) -> bool:
        """Never: pasts that do not occur cost nothing."""
        return False

    @cached_property
    def _enough(self) -> bool:
        view = seen(self._study)
        assert self._study.past is not None  # noqa: S101
        return not dependence(view, strata(view, self._study.past))[0].alarming

    def spared(self, study: Study) -> tuple[str, ...]:
        """Exempt from the test of memory if it passes now, and from that of the clock it counts."""
        self._study = study
        return ("clock", "memory") if study.past is not None and self._enough else ("clock",)

    def fault(self, test: str) -> float:
        """Prefer part of the past to none."""
        return 0.5 if test == "memory" else 1.0

    def doubts(self, case: Case, study: Study) -> Iterator[Doubt]:
        """Doubt whether more of the past matters, and whether a detected time limit is meant."""
        apart, bounds = self._further(study), study.settings.thresholds
        scale = abs(case.value) + study.grounds.spread
        if apart > bounds.approximation_caution * scale:
            yield (
                CAUTION,
                f"one row of the past in the state moved the answer by {self._moved(study):.2g}; earlier"
                f" rows might move it by {apart:.2g}",
                WIDTH,
            )
        system = self.fit.system
        if study.steps is not None and isinstance(system, ModelSystem):
            counted = system.steps is None  # the step is in the state: without a clock no value
            yield from clock_doubts(case, study, float("nan") if counted else system.endless())

    def system(self, study: Study) -> AnySystem:
        """The model, with the time limit's number of steps unless the state has the step."""
        assert study.past is not None  # noqa: S101
        counted = "step" in study.past.parts
        return study.model(PastCells(study.past), None if counted else study.steps)

    def estimate(self, study: Study) -> Outcome:
        """The value; there is no value model for states alone."""
        why = self.missing(study)
        if why:
            return Outcome.none(why)
        return Outcome(
            self.fit.value,
            *study.influences.found(self.column, [(1.0, self.fit)]),
            approximation=self._further(study),
            about=f"plug-in model of {self.fit.system.d} cells: {self.fit.system.label}",
        )

    def _moved(self, study: Study) -> float:
        """How far the past that was added moved the answer; ends by a clock are not counted."""
        system = self.fit.system
        assert isinstance(system, ModelSystem)  # noqa: S101
        value = self.fit.value if system.steps is None else system.endless()
        return abs(value - study.reference.value)

    def _further(self, study: Study) -> float:
        """How far more of the past might move it: as far, but in steps that have more of it."""
        alive = np.cumsum(study.weighed.lengths[::-1])[::-1][1:]  # episodes with a row at this step
        visits = alive * study.survey.largest_discount ** np.arange(len(alive))
        return float(self._moved(study) * visits[2:].sum() / visits.sum())

    def unlogged(self, study: Study) -> float:
        """Measured on its own cells."""
        system = self.fit.system
        assert isinstance(system, CellSystem)  # noqa: S101
        return system.unlogged(study.survey.ahead())

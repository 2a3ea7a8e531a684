"""The T-step plug-in: the value over T steps, from a model of the log's states.

`V_{k+1}(s) = sum_a pi(a, s) (r(s, a) + sum_s' gamma p(s', s, a) V_k(s'))`, T times. T is the
requested horizon, or the step at which a time limit ends the log's episodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from o2td.evaluation.basis import Cells
from o2td.evaluation.estimator import Doubt, Outcome
from o2td.evaluation.families import SystemEstimator
from o2td.evaluation.fitting import AnySystem
from o2td.evaluation.horizon import ModelSystem
from o2td.evaluation.thresholds import CAUTION

if TYPE_CHECKING:
    from o2td.evaluation.study import Study
    from o2td.evaluation.verdicts import Case

_SETTLED = 0.25  # of the interval's half-width: smaller differences do not matter
_WIDE = 2048  # states: the influence of rows is a matrix of them


def clock_doubts(case: Case, study: Study, endless: float) -> Iterator[Doubt]:
    """Doubt whether the value up to a detected time limit is meant, if it matters.

    If it hardly matters, the difference counts as an error of approximation.
    """
    apart = abs(endless - case.value)
    if study.settings.horizon is not None:
        return
    if apart < _SETTLED * case.half_width:
        found = case.outcome
        case.outcome = replace(found, approximation=max(found.approximation or 0.0, apart))
    else:
        yield (
            CAUTION,
            f"a clock ends episodes at step {study.steps}, and this is the value up to then; had they"
            f" continued, it would be {endless:.4g}; say which you want (horizon={study.steps}, or mark"
            " these ends as truncated)",
        )


class TStepEstimator(SystemEstimator):
    """A model of the logged states, followed for a fixed number of steps."""

    name = "tstep"
    title = "T-step plug-in"

    def missing(self, study: Study) -> str:
        """What is missing: a horizon, and states that recur."""
        if study.steps is None:
            return "no horizon was requested, and no clock ends the episodes"
        return "" if study.choice.tabular is not None else "the log has no states that recur"

    def too_large(self, study: Study) -> bool:
        """Whether there are too many states to run it unasked."""
        return int(study.choice.tabular.n_features_out_) > _WIDE

    def spared(self, study: Study) -> tuple[str, ...]:
        """Exempt from the test of the clock, which it models."""
        return ("clock",)

    def doubts(self, case: Case, study: Study) -> Iterator[Doubt]:
        """Doubt whether the value up to a detected time limit is what was asked for."""
        yield from super().doubts(case, study)
        system = self.fit.system
        assert isinstance(system, ModelSystem)  # noqa: S101
        yield from clock_doubts(case, study, system.endless())

    def system(self, study: Study) -> AnySystem:
        """One weight per state."""
        assert study.steps is not None  # noqa: S101
        return study.model(Cells(study.choice.tabular), study.steps)

    def estimate(self, study: Study) -> Outcome:
        """The value over the horizon, exact for the model."""
        why = self.missing(study)
        if why:
            return Outcome.none(why)
        assert isinstance(self.fit.system, ModelSystem)  # noqa: S101
        return Outcome(
            self.fit.value,
            *study.influences.found(self.column, [(1.0, self.fit)]),
            approximation=0.0,
            about=f"{study.steps} steps through a plug-in model of {self.fit.system.d} states;"
            f" without an end the same model gives {self.fit.system.endless():.4g}",
            model=self.fit.model(),
        )

    def unlogged(self, study: Study) -> float:
        """Measured over the requested steps."""
        system = self.fit.system
        assert isinstance(system, ModelSystem)  # noqa: S101
        return system.unlogged(study.survey.ahead())

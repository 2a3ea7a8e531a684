"""The plug-in optimum: a model of the log's states, normalised by ratios, and its exact value.

`V(s) = (sum rho r + sum_s' sum(rho gamma) V(s')) / sum rho`, which is LSTD(0) with one weight per state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from o2td.evaluation.cells import CellSystem
from o2td.evaluation.estimator import Outcome
from o2td.evaluation.families import FitEstimator
from o2td.evaluation.fitting import Fit
from o2td.evaluation.statistic import Passes

if TYPE_CHECKING:
    from o2td.evaluation.study import Study


class PluginEstimator(FitEstimator):
    """A model of the logged states (or cells of features), solved exactly."""

    name = "plugin"
    title = "plug-in optimum"

    def missing(self, study: Study) -> str:
        """What is missing: states that recur, or features with one weight per cell."""
        found = self._system(study) is not None
        return "" if found else "the log has no states that recur"

    def _system(self, study: Study) -> CellSystem | None:
        choice = study.choice
        if choice.finer is not None:
            return choice.finer
        return choice.lead if isinstance(choice.lead, CellSystem) else None

    def collect(self, study: Study) -> Passes:
        """Fit one weight per state, then accumulate the influence of episodes."""
        system = self._system(study)
        if system is None:
            return
        system.wanted = study.settings.lanes
        study.fitting.want(system)
        yield [study.fitting]
        self.fit: Fit = study.fitting.fit(system)
        self.column = study.influences.blend([(1.0, self.fit)])
        yield [study.influences]

    def estimate(self, study: Study) -> Outcome:
        """The exact value of the model."""
        why = self.missing(study)
        if why:
            return Outcome.none(why)
        choice, fit = study.choice, self.fit
        exact = choice.exact or choice.finer is not None
        return Outcome(
            fit.value,
            *study.influences.found(self.column, [(1.0, fit)]),
            approximation=0.0 if exact else study.reference.approximation,
            condition=fit.condition,
            about=f"plug-in model of {fit.system.d} states, normalised by ratios",
            model=fit.model(),
        )

    def unlogged(self, study: Study) -> float:
        """Measured on the log's own states."""
        finer = study.choice.finer
        return study.unlogged if finer is None else finer.unlogged(study.survey.ahead())

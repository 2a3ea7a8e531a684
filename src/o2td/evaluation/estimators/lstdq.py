"""LSTDQ: LSTD for action values, `A = sum_t phi_t (phi_t - gamma sum_a pi(a, s') phi(s', a))^T`.

`phi_t = phi(s_t, a_t)`. It uses no ratios, so every row counts, whatever the target would have
done. With one weight per state and action the solution is the value of a model of the log's states
and actions; large tables are solved as such, in the number of states instead of pairs. On chosen
features the estimate is a mean of fits on the finest of them, whose distances from it are part of
the approximation error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from o2td.evaluation.basis import Actions, Cells, States
from o2td.evaluation.estimator import Outcome
from o2td.evaluation.families import SystemEstimator
from o2td.evaluation.fitting import AnySystem, mean_of, middle, spread_of, usable
from o2td.evaluation.horizon import ModelSystem
from o2td.evaluation.statistic import Passes
from o2td.evaluation.systems import LEAST_RIDGE, FeatureSystem

if TYPE_CHECKING:
    from o2td.evaluation.study import Study
    from o2td.evaluation.verdicts import Grounds

_PANEL = 3  # fits whose mean is the estimate on chosen features
_LARGEST = 512  # features of each of them, over all actions
_RIDGE = 1e-5  # least: radial features, split by action, are nearly collinear
_WIDE = 2048  # states of a table: the influence of rows is a matrix of them


class LSTDQEstimator(SystemEstimator):
    """Least-squares TD for action values; needs no behaviour probabilities."""

    name = "lstdq"
    title = "LSTDQ"
    needs = ("next_target_probs", "target_probs", "action")
    uses_ratios = False

    def too_large(self, study: Study) -> bool:
        """Whether there are too many features, over all actions, to run it unasked."""
        return study.wide_actions and not self._as_model(study)

    def _as_model(self, study: Study) -> bool:
        """Whether a table is solved as a model, which needs only a matrix of its states."""
        return study.choice.exact and study.wide_actions and study.choice.width <= _WIDE

    def system(self, study: Study) -> AnySystem:
        """The lead's features for each action, or a model of a large table."""
        if self._as_model(study):
            return study.model(Cells(study.choice.tabular), None)
        if study.action_values is not None:
            return study.action_values
        basis = Actions(study.choice.states, max(study.survey.n_actions, 1))
        return FeatureSystem(basis, ridge=max(study.choice.lead.ridge, LEAST_RIDGE))

    def collect(self, study: Study) -> Passes:
        """Fit the panel where features were chosen, then accumulate the influence of episodes."""
        panel = [] if self.missing(study) else self._panel(study)
        if len(panel) < 2:
            yield from super().collect(study)
            return
        for system in panel:
            study.fitting.want(system)
        yield [study.fitting]
        self.members = usable([study.fitting.fit(system) for system in panel])
        self.fit, self._system = self.members[0], self.members[0].system
        self.blend = middle(self.members)
        self.column = study.influences.blend(self.blend)
        yield [study.influences]

    def _panel(self, study: Study) -> list[FeatureSystem]:
        """Systems on the finest of the features that were chosen."""
        actions, kept = max(study.survey.n_actions, 1), study.choice.kept
        if not study.choice.average:
            return []
        able = [one for one in kept if not one.trace and one.d * actions <= _LARGEST]
        return [
            FeatureSystem(Actions(States(one.features), actions), ridge=max(one.ridge, _RIDGE))
            for one in able[:_PANEL]
        ]

    def hastening(self, grounds: Grounds) -> float:
        """Action values need more from a last row than state values."""
        return grounds.hastened_actions

    def estimate(self, study: Study) -> Outcome:
        """The fit; what untried actions may hide counts as approximation error."""
        found = self._mean(study) if hasattr(self, "blend") else super().estimate(study)
        if found.trouble or found.approximation is None:
            return found
        # The ridge gives an untried action the value 0; a model, which leaves it out, the value of
        # the others, from which it may differ as much as returns do.
        model = isinstance(self.fit.system, ModelSystem)
        size = study.grounds.spread if model else abs(found.value)
        hidden = self._untried(study) * size
        return replace(found, approximation=max(found.approximation, hidden))

    def _mean(self, study: Study) -> Outcome:
        value = mean_of(self.blend)
        beside, apart = study.beside(value), spread_of(self.members, self.blend)
        return Outcome(
            value,
            *study.influences.found(self.column, self.blend),
            approximation=None if beside is None else max(beside, apart),
            condition=max(fit.condition for fit in self.members),
            about=f"LSTDQ: mean of {len(self.blend)} fits; as model {self.fit.system.label}",
            model=self.fit.model(),
        )

    def unlogged(self, study: Study) -> float:
        """Includes actions that no row has tried."""
        return max(study.unlogged, self._untried(study))

    def _untried(self, study: Study) -> float:
        """Share of the visits to actions never tried, if each state has its own weights."""
        system = getattr(self, "_system", None)
        if not study.choice.exact or not isinstance(system, (FeatureSystem, ModelSystem)):
            return 0.0
        return system.untried(study.survey.ahead())

"""LSTDQ: LSTD for action values, `A = sum_t phi_t (phi_t - gamma sum_a pi(a, s') phi(s', a))^T`.

`phi_t = phi(s_t, a_t)`. It uses no ratios, so every row counts, whatever the target would have
done.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from o2td.evaluation.basis import Actions
from o2td.evaluation.estimator import Outcome
from o2td.evaluation.families import SystemEstimator
from o2td.evaluation.fitting import AnySystem
from o2td.evaluation.systems import FeatureSystem

if TYPE_CHECKING:
    from o2td.evaluation.study import Study
    from o2td.evaluation.verdicts import Grounds

_LEAST_RIDGE = 1e-8
_WIDE = 1024


class LSTDQEstimator(SystemEstimator):
    """Least-squares TD for action values; needs no behaviour probabilities."""

    name = "lstdq"
    title = "LSTDQ"
    needs = ("next_target_probs", "target_probs", "action")
    uses_ratios = False

    def too_large(self, study: Study) -> bool:
        """Whether there are too many features, over all actions, to run it unasked."""
        return study.choice.width * max(study.survey.n_actions, 1) > _WIDE

    def system(self, study: Study) -> AnySystem:
        """The lead's features for each action."""
        if study.action_values is not None:
            return study.action_values
        basis = Actions(study.choice.states, max(study.survey.n_actions, 1))
        return FeatureSystem(basis, ridge=max(study.choice.lead.ridge, _LEAST_RIDGE))

    def hastening(self, grounds: Grounds) -> float:
        """Action values need more from a last row than state values."""
        return grounds.hastened_actions

    def estimate(self, study: Study) -> Outcome:
        """The fit; what untried actions may hide counts as approximation error."""
        found = super().estimate(study)
        if found.trouble or found.approximation is None:
            return found
        hidden = self._untried(study) * abs(found.value)
        return replace(found, approximation=max(found.approximation, hidden))

    def unlogged(self, study: Study) -> float:
        """Includes actions that no row has tried."""
        return max(study.unlogged, self._untried(study))

    def _untried(self, study: Study) -> float:
        """Share of the visits to actions never tried, if each state has its own weights."""
        system = getattr(self, "_system", None)
        if not study.choice.exact or not isinstance(system, FeatureSystem):
            return 0.0
        return system.untried(study.survey.ahead())

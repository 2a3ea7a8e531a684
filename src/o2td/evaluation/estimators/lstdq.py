"""LSTDQ: LSTD of action values, `A = sum_t phi_t (phi_t - gamma sum_a pi(a, s') phi(s', a))^T`.

`phi_t = phi(s_t, a_t)`. No ratio enters, so rows count whatever the target would have done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from o2td.evaluation.basis import Actions
from o2td.evaluation.families import SystemEstimator
from o2td.evaluation.fitting import AnySystem
from o2td.evaluation.systems import System

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
        """Beyond some features of all actions together."""
        return study.choice.width * max(study.survey.n_actions, 1) > _WIDE

    def system(self, study: Study) -> AnySystem:
        """The lead's features for each action."""
        if study.action_values is not None:
            return study.action_values
        basis = Actions(study.choice.states, max(study.survey.n_actions, 1))
        return System(basis, ridge=max(study.choice.lead.ridge, _LEAST_RIDGE))

    def hastening(self, grounds: Grounds) -> float:
        """More of a last row is needed than for values of states."""
        return grounds.hastened_actions

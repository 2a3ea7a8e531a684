"""LSETD: LSTD with ETD's emphasis, `z_t = rho_t (lambda gamma_t z_{t-1} + M_t phi_t)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from o2td.evaluation.families import SystemEstimator
from o2td.evaluation.fitting import AnySystem
from o2td.evaluation.systems import FeatureSystem

if TYPE_CHECKING:
    from o2td.evaluation.study import Study


class LSETDEstimator(SystemEstimator):
    """Least-squares emphatic TD on the same features; follow-on traces make it noisy."""

    name = "lsetd"
    title = "LSETD"
    recommendable = False

    def system(self, study: Study) -> AnySystem:
        """The lead's features, trace and ridge."""
        lead = study.choice.lead
        return FeatureSystem(study.choice.states, lead.trace, emphatic=True, ridge=lead.ridge)

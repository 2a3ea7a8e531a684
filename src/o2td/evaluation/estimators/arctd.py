"""ARCTD over the log's rows once: the learner that needs no tuning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from o2td.evaluation.replicated import LearnerEstimator
from o2td.learners import ARCTD

if TYPE_CHECKING:
    from o2td.evaluation.study import Study


class ARCTDEstimator(LearnerEstimator):
    """Averaged, regularised, clipped TD: the nearest of the learners without tuning."""

    name = "arctd"
    title = "ARCTD"

    def learner(self, study: Study) -> tuple[Any, str]:
        """The learner, untrained, and how it is described."""
        return ARCTD(), "ARCTD"

"""TDRC over the log's rows once, with an automatic step size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from o2td.evaluation.replicated import LearnerEstimator
from o2td.learners import TDRC

if TYPE_CHECKING:
    from o2td.evaluation.study import Study


class TDRCEstimator(LearnerEstimator):
    """TD with regularised gradient corrections."""

    name = "tdrc"
    title = "TDRC"

    def learner(self, study: Study) -> tuple[Any, str]:
        """The learner, untrained, and how it is described."""
        return TDRC(step_size="auto"), "TDRC"

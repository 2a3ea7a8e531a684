"""ETD(0) over the log's rows once, with an automatic step size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from o2td.evaluation.replicated import LearnerEstimator
from o2td.learners import ETD

if TYPE_CHECKING:
    from o2td.evaluation.study import Study


class ETDEstimator(LearnerEstimator):
    """Emphatic TD."""

    name = "etd"
    title = "ETD"

    def learner(self, study: Study) -> tuple[Any, str]:
        """The learner, untrained, and how it is described."""
        return ETD(step_size="auto"), "ETD(0)"

"""O²TD over the log's rows once, with an automatic step size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from o2td.evaluation.basis import Cells
from o2td.evaluation.replicated import LearnerEstimator
from o2td.learners import O2TD

if TYPE_CHECKING:
    from o2td.evaluation.study import Study


class O2TDEstimator(LearnerEstimator):
    """O²TD, with ω per state where features are states, else by moments."""

    name = "o2td"
    title = "O²TD"

    def learner(self, study: Study) -> tuple[Any, str]:
        """The learner, untrained, and how it is described."""
        omega = "state" if isinstance(study.choice.online, Cells) else "moments"
        return O2TD(step_size="auto", omega=omega), f"O2TD with {omega} omega"

"""`skip_zero_ratio`: rows with ratio 0 leave theta and w as they are.

Without it w moves on them by `-alpha_w (phi.w) phi`, and theta too in hybrid methods. With it both
step sizes of such a row are 0; traces go on as they do without.
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from o2td.arguments import switch
from o2td.arrays import Floats
from o2td.learners.step_learner import StepLearner
from o2td.learners.step_sizes import StepSize
from o2td.learners.traced import TraceAxes, TwoStepLearner
from o2td.model import Model
from o2td.transitions import Transitions

__all__ = ["MaskedStepLearner", "RowMask", "learned", "skip_rows"]


GAINS = ("gain", "second_gain", "alpha", "alpha_w", "alpha_t")


def skip_rows(learner: Any, block: Transitions, out: dict[str, Floats]) -> None:
    """Set the step sizes of rows with ratio 0 to 0, if the learner skips them."""
    if learner.skip_zero_ratio:
        for name in out.keys() & GAINS:
            out[name][block.rho == 0.0] = 0.0


def learned(learner: Any, model: Model) -> Floats | None:
    """1 for the model's transitions that are learned from, else 0; None if all are."""
    return np.sign(model.rho) if learner.skip_zero_ratio else None


class RowMask(TwoStepLearner):
    """Base class of learners with theta and w, both of which move in proportion to step sizes.

    Parameters
    ----------
    skip_zero_ratio : bool
        Whether rows with ratio 0 leave theta and w unchanged.
    """

    def __init__(
        self,
        step_size: StepSize = "auto",
        *,
        second_step_size: StepSize | None = None,
        skip_zero_ratio: bool = False,
        **axes: Unpack[TraceAxes],
    ) -> None:
        self.skip_zero_ratio = switch("skip_zero_ratio", skip_zero_ratio)
        super().__init__(step_size, second_step_size=second_step_size, **axes)


class MaskedStepLearner(RowMask, StepLearner):
    """Base class of such learners that are defined by their own step for one row."""

    def _fill_rows(self, block: Transitions, out: dict[str, Floats]) -> None:
        super()._fill_rows(block, out)
        skip_rows(self, block, out)

"""Emphatic TD(lambda) and ETD(lambda, beta): weighted TD with the follow-on trace.

    F_t = i_t + gamma_t rho_{t-1} F_{t-1},    M_t = lambda i_t + (1 - lambda) F_t

`F` is the power series of `(I - P_gamma^T)^-1 xi`, so `X = (I - lambda P_gamma^T)^-1 diag(lambda xi i +
(1 - lambda) f) Phi`: X* with its matrix replaced by a diagonal. Stable off-policy, but its variance
may be infinite; `decay` (beta) below gamma gives up some stability for less variance.

Sutton, Mahmood & White (2016); beta: Hallak, Tamar, Munos & Mannor (2016).
"""

from __future__ import annotations

from typing import ClassVar, Unpack

from o2td.emphasis import FollowOn
from o2td.learners.step_sizes import StepSize
from o2td.learners.traced import CutAxes
from o2td.learners.weighted import WeightedLearner


class ETD(WeightedLearner):
    """Emphatic TD: `TD` with emphasis `FollowOn(decay)`.

    Parameters
    ----------
    decay : float, optional
        beta, used in the follow-on trace instead of the discount.

    Examples
    --------
    Computed by hand: F = 2 and M = 1.2 at the second row.

    >>> import numpy as np, o2td
    >>> e = np.eye(3)
    >>> batch = o2td.Transitions(e[:2], [0.0, 1.0], e[1:], [0.5, 0.0], rho=[2.0, 0.5])
    >>> o2td.ETD(step_size=0.1, trace=0.8).partial_fit(batch).theta
    array([0.04, 0.06, 0.  ])
    """

    fixed: ClassVar[tuple[str, ...]] = ("emphasis",)

    def __init__(
        self, step_size: StepSize = "auto", *, decay: float | None = None, **axes: Unpack[CutAxes]
    ) -> None:
        self.decay = decay
        super().__init__(step_size, emphasis=FollowOn(decay), **axes)

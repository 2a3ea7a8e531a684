"""True-online emphatic TD(lambda): true-online TD with the follow-on emphasis.

    F_t = i_t + gamma_t rho_{t-1} F_{t-1},    M_t = lambda i_t + (1 - lambda) F_t

in the update of `true_online_td`. The limit is ETD(lambda)'s, stable off-policy.

Sutton (2015), "True online emphatic TD(lambda): quick reference and implementation guide".
"""

from __future__ import annotations

from typing import ClassVar, Unpack

from o2td.emphasis import FollowOn
from o2td.learners.step_sizes import StepSize
from o2td.learners.traced import LambdaAxes
from o2td.learners.true_online_td import TrueOnlineTD

__all__ = ["TrueOnlineETD"]


class TrueOnlineETD(TrueOnlineTD):
    """True-online emphatic TD.

    Parameters
    ----------
    decay : float, optional
        beta, used in the follow-on trace instead of the discount.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> e = np.eye(3)
    >>> batch = o2td.Transitions(e[:2], [0.0, 1.0], e[1:], [0.5, 0.0], rho=[2.0, 0.5])
    >>> o2td.TrueOnlineETD(0.1, trace=0.8).partial_fit(batch).theta
    array([0.04, 0.06, 0.  ])
    """

    fixed: ClassVar[tuple[str, ...]] = ("emphasis",)

    def __init__(
        self,
        step_size: StepSize = "auto",
        *,
        decay: float | None = None,
        **axes: Unpack[LambdaAxes],
    ) -> None:
        self.decay = decay
        super().__init__(step_size, emphasis=FollowOn(decay), **axes)

"""V-trace(lambda): weighted TD whose trace uses a clipped ratio.

    z_t = min(clip, rho_{t-1}) gamma_t lambda z_{t-1} + phi_t,    theta += alpha rho_t delta_t z_t

`X = (I - lambda P_c^T)^-1 Xi Phi` with `P_c = sum_a b min(clip, rho) P gamma`. Clipping the trace
reduces its variance without biasing the fixed point's operator; `clip_update` also clips the ratio
of the update, which evaluates a policy other than the target, so the limit is biased.

Espeholt et al. (2018), eq. 1, in the linear form of Ghiassian & Sutton (2021).
"""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from o2td.arguments import number, switch
from o2td.learners.step_sizes import StepSize
from o2td.learners.traced import WeightAxes
from o2td.learners.weighted import WeightedLearner


class VTrace(WeightedLearner):
    """V-trace: TD with a clipped ratio in the trace.

    Parameters
    ----------
    clip : float
        Largest ratio in the trace.
    clip_update : bool
        Also clip the ratio of the update, which biases the limit.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> e = np.eye(3)
    >>> batch = o2td.Transitions(e[:2], [0.0, 1.0], e[1:], [1.0, 0.0], rho=[4.0, 1.0])
    >>> o2td.VTrace(step_size=0.5, trace=1.0).partial_fit(batch).theta
    array([0.5, 0.5, 0. ])
    """

    fixed: ClassVar[tuple[str, ...]] = ("cut",)

    def __init__(
        self,
        step_size: StepSize = "auto",
        *,
        clip: float = 1.0,
        clip_update: bool = False,
        **axes: Unpack[WeightAxes],
    ) -> None:
        self.clip_update = switch("clip_update", clip_update)
        super().__init__(step_size, clip=number("clip", clip, above=0.0), **axes)

    def correction(self, rho: Any) -> Any:
        """rho, or its clipped value."""
        return self._cut.passed(rho, None, None) if self.clip_update else rho

"""TD for the variance of the return, along with its mean.

    theta += alpha rho delta z,    w += alpha_w rho (c_{t+1} + gamma_{t+1}^2 w.phi_{t+1} - w.phi_t) zw
    direct:  c = delta^2, and w.phi is the variance
    moment:  c = r^2 + 2 gamma r theta.phi_{t+1}, and w.phi is the second moment

w is learned by TD with its own reward c and the discount gamma^2, on traces with that discount. The
direct form is correct if theta is; the moment form computes the variance as a difference of large
numbers.

Sherstan et al. (2018), "Comparing direct and indirect temporal-difference methods for estimating the
variance of the return"; second moment: Tamar, Di Castro & Mannor (2016).
"""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import numpy as np
import numpy.typing as npt

from o2td.arguments import choice
from o2td.arrays import freeze, points
from o2td.compiled import njit
from o2td.learners.dynamics import MeanDynamics
from o2td.learners.step_learner import Row, StepLearner, add, dot, follow
from o2td.learners.step_sizes import StepSize
from o2td.learners.traced import TraceAxes
from o2td.model import Model

__all__ = ["VarianceTD"]

Floats = npt.NDArray[np.float64]


@njit(cache=True, allocates=False)
def step(row: Row, p, s, theta, w, z, zw):  # type: ignore[no-untyped-def]
    """One row."""
    next_v = dot(row.next_phi, theta)
    delta = row.reward + row.discount * next_v - dot(row.phi, theta)
    own = (
        delta * delta
        if p.direct == 1.0
        else row.reward * (row.reward + 2.0 * row.discount * next_v)
    )
    error = own + row.discount * row.discount * dot(row.next_phi, w) - dot(row.phi, w)
    follow(z, row.decay, row.emphasis, row.phi)
    follow(zw, row.decay * row.before, row.emphasis, row.phi)
    add(theta, row.alpha * row.rho * delta, z)
    add(w, row.alpha_w * row.rho * error, zw)


class VarianceTD(StepLearner):
    """TD for the mean and the variance of the return.

    Parameters
    ----------
    form : "direct" | "moment"
        Whether w predicts the variance itself, or the second moment.
    second_step_size : optional
        alpha_w; None means the same as `step_size`.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> coin = np.random.default_rng(0).choice([-1.0, 1.0], size=4000)
    >>> rows = o2td.Transitions(np.ones((4000, 1)), coin, np.zeros((4000, 1)), discount=0.0)
    >>> learner = o2td.VarianceTD(o2td.PowerDecay(1.0, 1.0)).partial_fit(rows)
    >>> learner.variance([1.0]).round(2)
    np.float64(1.0)
    """

    vectors: ClassVar[tuple[str, ...]] = ("theta", "w", "z", "zw")
    traces: ClassVar[tuple[str, ...]] = ("z", "zw")
    linear: ClassVar[bool] = False
    set_once: ClassVar[tuple[str, ...]] = ("form",)
    step = staticmethod(step)

    def __init__(
        self,
        step_size: StepSize = "auto",
        *,
        form: str = "direct",
        second_step_size: StepSize | None = None,
        **axes: Unpack[TraceAxes],
    ) -> None:
        self.form = choice("form", form, ("direct", "moment"))
        super().__init__(step_size, second_step_size=second_step_size, **axes)

    def _numbers(self, lane: int) -> dict[str, float]:
        """Which form it is."""
        return {**super()._numbers(lane), "direct": float(self.form == "direct")}

    @property
    def w(self) -> Floats:
        """The weights of the variance or of the second moment, read-only."""
        return freeze(self.vector("w"))

    def variance(self, phi: Any) -> Floats:
        """The return's variance for each row of `phi`, or for one vector, at least 0."""
        mean = self.predict(phi)
        rows, single = points(phi, len(self.theta))
        own = np.asarray(rows @ self.w)
        own = own[0] if single else own
        found: Floats = np.maximum(own if self.form == "direct" else own - mean**2, 0.0)
        return found

    def mean_dynamics(self, model: Model) -> MeanDynamics:
        """Those of theta, which are TD's; w's are quadratic in theta."""
        return self._weighted_dynamics(model)

"""True-online TD(lambda): the online lambda-return algorithm, exactly, at TD's cost.

    e_t = rho_t (gamma_t lambda e_{t-1} + alpha M_t (1 - rho_t gamma_t lambda phi_t.e_{t-1}) phi_t)
    theta += (delta_t + d_t) e_t - alpha rho_t M_t d_t phi_t,    d_t = (theta_t - theta_{t-1}).phi_t

After every row, theta equals that of the online lambda-return algorithm, which repeats its updates
over the whole past at each row; TD(lambda) only approximates it, better for smaller alpha. Limit
and off-policy stability are those of TD(lambda).

van Seijen, Mahmood, Pilarski, Machado & Sutton (2016); ratios: van Hasselt, Mahmood & Sutton (2014).
"""

from __future__ import annotations

from typing import ClassVar

from o2td.compiled import njit
from o2td.learners.dynamics import MeanDynamics
from o2td.learners.step_learner import Row, StepLearner, add, dot, follow
from o2td.model import Model

__all__ = ["TrueOnlineTD"]


@njit(cache=True, allocates=False)
def step(row: Row, p, s, theta, e):  # type: ignore[no-untyped-def]
    """One row; `s.value` is `theta_{t-1}.phi_t`."""
    v, next_v = dot(row.phi, theta), dot(row.next_phi, theta)
    delta, moved = row.reward + row.discount * next_v - v, v - s.value
    factor, weight = row.rho * row.before * p.trace, row.alpha * row.rho * row.emphasis
    follow(e, factor, weight * (1.0 - factor * dot(row.phi, e)), row.phi)
    add(theta, delta + moved, e)
    add(theta, -weight * moved, row.phi)
    s.value = next_v


class TrueOnlineTD(StepLearner):
    """True-online TD(lambda).

    Examples
    --------
    >>> import numpy as np, o2td
    >>> phi = np.eye(2)
    >>> batch = o2td.Transitions(phi, [0.0, 1.0], phi[::-1], discount=[0.5, 0.0])
    >>> o2td.TrueOnlineTD(0.5, trace=1.0).partial_fit(batch).theta
    array([0.25, 0.5 ])
    """

    vectors: ClassVar[tuple[str, ...]] = ("theta", "e")
    traces: ClassVar[tuple[str, ...]] = ("e",)
    scalars: ClassVar[tuple[str, ...]] = ("value",)
    undefined: ClassVar[tuple[str, ...]] = ("second_step_size", "clip", "cut")
    step = staticmethod(step)

    def mean_dynamics(self, model: Model) -> MeanDynamics:
        """TD(lambda)'s, up to terms of order alpha."""
        return self._weighted_dynamics(model)

"""True-online GTD(lambda): TDC(lambda) whose two traces make it exact online.

    e_t  = rho_t (gamma_t lambda e_{t-1} + alpha (1 - rho_t gamma_t lambda phi_t.e_{t-1}) phi_t)
    z_t  = rho_t (gamma_t lambda z_{t-1} + phi_t)
    ew_t = g_t ew_{t-1} + alpha_w (1 - g_t phi_t.ew_{t-1}) phi_t,    g_t = rho_{t-1} gamma_t lambda
    theta += (delta + d) e - alpha rho d phi - alpha gamma_{t+1} (1 - lambda) (z.w) phi_{t+1}
    w     += rho delta ew - alpha_w (phi.w) phi

with d as in `true_online_td`. Limit and stability are those of TDC.

van Hasselt, Mahmood & Sutton (2014), algorithm 2.
"""

from __future__ import annotations

from typing import ClassVar

from o2td.compiled import njit
from o2td.kernels.gradient import Member
from o2td.learners.dynamics import MeanDynamics
from o2td.learners.row_mask import MaskedStepLearner, learned
from o2td.learners.step_learner import Row, add, dot, follow
from o2td.model import Model

__all__ = ["TrueOnlineGTD"]


@njit(cache=True, allocates=False)
def step(row: Row, p, s, theta, w, e, z, ew):  # type: ignore[no-untyped-def]
    """One row; `s.value` is `theta_{t-1}.phi_t`."""
    v, next_v = dot(row.phi, theta), dot(row.next_phi, theta)
    delta, moved = row.reward + row.discount * next_v - v, v - s.value
    kept = row.before * p.trace
    past, own = row.rho_before * kept, row.rho * kept
    follow(e, own, row.alpha * row.rho * (1.0 - own * dot(row.phi, e)), row.phi)
    follow(z, own, row.rho, row.phi)
    follow(ew, past, row.alpha_w * (1.0 - past * dot(row.phi, ew)), row.phi)
    back = row.alpha * row.discount * (1.0 - p.trace) * dot(z, w)
    there = dot(row.phi, w)
    add(theta, delta + moved, e)
    add(theta, -row.alpha * row.rho * moved, row.phi)
    add(theta, -back, row.next_phi)
    add(w, row.rho * delta, ew)
    add(w, -row.alpha_w * there, row.phi)
    s.value = next_v


class TrueOnlineGTD(MaskedStepLearner):
    """True-online GTD(lambda).

    Examples
    --------
    >>> import o2td
    >>> problem = o2td.domains.random_walk()
    >>> rows = problem.sample(2000, seed=0)
    >>> learner = o2td.TrueOnlineGTD(0.1, trace=0.5).partial_fit(rows)
    >>> learner.status.kind
    'ok'
    """

    vectors: ClassVar[tuple[str, ...]] = ("theta", "w", "e", "z", "ew")
    traces: ClassVar[tuple[str, ...]] = ("e", "z", "ew")
    scalars: ClassVar[tuple[str, ...]] = ("value",)
    undefined: ClassVar[tuple[str, ...]] = ("clip", "cut", "emphasis")
    step = staticmethod(step)

    def mean_dynamics(self, model: Model) -> MeanDynamics:
        """TDC(lambda)'s, up to terms of order alpha."""
        member = Member(theta_delta_z=1.0, theta_z_next=1.0 - self._one_lambda(), w_w_phi=-1.0)
        return self._gradient_dynamics(model, member, learned=learned(self, model))

"""True-online HTD(lambda): hybrid TD, exactly true-online TD where the data are on-policy.

    e, z, ew as in `true_online_gtd`,    zb_t = gamma_t lambda zb_{t-1} + phi_t
    theta += (delta + d) e - alpha rho d phi + alpha ((z - zb).w) dphi
    w     += rho delta ew - alpha_w (zb.w) dphi

The limit is TD(lambda)'s.

White & White (2016), "Investigating practical linear temporal difference learning", true-online HTD.
"""

from __future__ import annotations

from typing import ClassVar

from o2td.compiled import njit
from o2td.kernels.gradient import Member
from o2td.learners.dynamics import MeanDynamics
from o2td.learners.row_mask import MaskedStepLearner, learned
from o2td.learners.step_learner import Row, add, dot, follow
from o2td.model import Model

__all__ = ["TrueOnlineHTD"]


@njit(cache=True, allocates=False)
def step(row: Row, p, s, theta, w, e, z, zb, ew):  # type: ignore[no-untyped-def]
    """One row; `s.value` is `theta_{t-1}.phi_t`."""
    v, next_v = dot(row.phi, theta), dot(row.next_phi, theta)
    delta, moved = row.reward + row.discount * next_v - v, v - s.value
    kept = row.before * p.trace
    past, own = row.rho_before * kept, row.rho * kept
    follow(e, own, row.alpha * row.rho * (1.0 - own * dot(row.phi, e)), row.phi)
    follow(z, own, row.rho, row.phi)
    follow(zb, kept, 1.0, row.phi)
    follow(ew, past, row.alpha_w * (1.0 - past * dot(row.phi, ew)), row.phi)
    behaved = dot(zb, w)
    across = row.alpha * (dot(z, w) - behaved)
    add(theta, delta + moved, e)
    add(theta, across - row.alpha * row.rho * moved, row.phi)
    add(theta, -across * row.discount, row.next_phi)
    add(w, row.rho * delta, ew)
    add(w, -row.alpha_w * behaved, row.phi)
    add(w, row.alpha_w * behaved * row.discount, row.next_phi)
    s.value = next_v


class TrueOnlineHTD(MaskedStepLearner):
    """True-online HTD(lambda).

    Examples
    --------
    >>> import o2td
    >>> problem = o2td.domains.random_walk()
    >>> rows = problem.sample(2000, seed=0)
    >>> learner = o2td.TrueOnlineHTD(0.1, trace=0.5).partial_fit(rows)
    >>> learner.status.kind
    'ok'
    """

    vectors: ClassVar[tuple[str, ...]] = ("theta", "w", "e", "z", "zb", "ew")
    traces: ClassVar[tuple[str, ...]] = ("e", "z", "zb", "ew")
    scalars: ClassVar[tuple[str, ...]] = ("value",)
    undefined: ClassVar[tuple[str, ...]] = ("clip", "cut", "emphasis")
    cautious: ClassVar[bool] = True
    step = staticmethod(step)

    def mean_dynamics(self, model: Model) -> MeanDynamics:
        """HTD(lambda)'s, up to terms of order alpha."""
        both = {"theta_z_phi": 1.0, "theta_z_next": 1.0, "theta_b_phi": -1.0, "theta_b_next": -1.0}
        member = Member(theta_delta_z=1.0, w_b_dphi=-1.0, **both)
        return self._gradient_dynamics(model, member, learned=learned(self, model))

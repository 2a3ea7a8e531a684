"""TDC: TD with a gradient correction.

    theta += alpha (delta z - gamma (1 - lambda) (z.w) phi'),    w += alpha_w (delta z - (phi.w) phi)

The same objective and limit as GTD2 (`X = Xi Phi` at lambda = 0), but TD's own direction leads:
faster where TD is well behaved. Stable if alpha_w is large enough relative to alpha. With an
emphasis, or with traces cut other than by the ratio, theta moves along `delta z - (phi.w) phi +
(z.w) dphi`, which is the gradient for any trace.

Sutton et al. (2009), eq. 10; traces (GTD(lambda)): Maei (2011).
"""

from __future__ import annotations

from o2td.kernels.gradient import Member
from o2td.learners.gradient import GradientLearner


class TDC(GradientLearner):
    """TDC, also known as GTD(lambda).

    Examples
    --------
    >>> import numpy as np, o2td
    >>> problem = o2td.domains.random_walk()
    >>> learner = o2td.TDC(step_size=0.1).partial_fit(problem.sample(2000, seed=0))
    >>> learner.status.kind
    'ok'
    """

    def member(self) -> Member:
        """`delta z - gamma (1 - lambda) (z.w) phi'` or the form for any trace, and w's own."""
        if self._ordinary:
            return Member(theta_delta_z=1.0, theta_z_next=1.0 - self.trace, w_w_phi=-1.0)
        return Member(
            theta_delta_z=1.0, theta_w_phi=-1.0, theta_z_phi=1.0, theta_z_next=1.0, w_w_phi=-1.0
        )

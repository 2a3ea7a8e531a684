"""TDC: TD with a gradient correction.

    theta += alpha (delta z - gamma (1 - lambda) (z.w) phi'),    w += alpha_w (delta z - (phi.w) phi)

The same objective and limit as GTD2 (`X = Xi Phi` at lambda = 0), with TD's own direction first: faster
where TD is well behaved. Stable if alpha_w is large enough against alpha.

Sutton et al. (2009), eq. 10; traces (GTD(lambda)): Maei (2011).
"""

from __future__ import annotations

from o2td.kernels.gradient import Member
from o2td.learners.gradient import GradientLearner


class TDC(GradientLearner):
    """TDC, also known as GTD(lambda).

    Parameters
    ----------
    step_size : float, PowerDecay or "auto"
        alpha; "auto" is 0.1 over the largest squared norm of features so far.
    second_step_size : optional
        alpha_w; None means the same as `step_size`.
    trace : float
        lambda.
    initial_theta : (d,) array, optional
        Where learning starts; zero if left out.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> problem = o2td.domains.random_walk()
    >>> learner = o2td.TDC(step_size=0.1).partial_fit(problem.sample(2000, seed=0))
    >>> learner.status.kind
    'ok'
    """

    def member(self) -> Member:
        """`delta z - gamma (1 - lambda) (z.w) phi'` and `delta z - (phi.w) phi`."""
        return Member(theta_delta_z=1.0, theta_z_next=1.0 - self.trace, w_w_phi=-1.0)

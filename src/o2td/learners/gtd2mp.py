"""GTD2-MP: GTD2 by mirror-prox.

    (theta~, w~) = a GTD2 step from (theta, w);    (theta, w) += a step with directions at (theta~, w~)

GTD2 is a primal-dual method for a saddle point; the extragradient step is the accelerated solver for
such problems. Same limit as GTD2. Both steps use one sample, so the drift differs by O(alpha^2).

Liu et al. (2015), "Finite-Sample Analysis of Proximal Gradient TD Algorithms", algorithm 2.
"""

from __future__ import annotations

from typing import ClassVar

from o2td.kernels.gradient import Member
from o2td.learners.gradient import GradientLearner


class GTD2MP(GradientLearner):
    """GTD2 by mirror-prox.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> problem = o2td.domains.random_walk()
    >>> learner = o2td.GTD2MP(step_size=0.1).partial_fit(problem.sample(2000, seed=0))
    >>> learner.status.kind
    'ok'
    """

    mirror: ClassVar[bool] = True

    def member(self) -> Member:
        """GTD2's."""
        return Member(theta_z_phi=1.0, theta_z_next=1.0, w_w_phi=-1.0)

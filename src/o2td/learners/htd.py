"""HTD(lambda), hybrid TD: TD where the data are on-policy, gradient TD where they are not.

    theta += alpha (delta z + ((z - z^b).w) dphi),    w += alpha_w (delta z - (z^b.w) dphi)
    z^b_t = gamma_t lambda z^b_{t-1} + phi_t

On-policy z = z^b and w drops out. The limit is TD's.

Hackman (2012); White & White (2016), algorithm 5.
"""

from __future__ import annotations

from typing import ClassVar

from o2td.kernels.gradient import Member
from o2td.learners.gradient import GradientLearner


class HTD(GradientLearner):
    """Hybrid TD.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> problem = o2td.domains.random_walk()
    >>> learner = o2td.HTD(step_size=0.1).partial_fit(problem.sample(2000, seed=0))
    >>> learner.status.kind
    'ok'
    """

    cautious: ClassVar[bool] = True

    def member(self) -> Member:
        """`delta z + ((z - z^b).w) dphi` and `delta z - (z^b.w) dphi`."""
        return Member(
            theta_delta_z=1.0,
            theta_z_phi=1.0,
            theta_z_next=1.0,
            theta_b_phi=-1.0,
            theta_b_next=-1.0,
            w_b_dphi=-1.0,
        )

"""GTD, the first gradient-TD method: gradient descent on the norm of the expected TD update.

    theta += alpha (z.w) dphi,    w += alpha_w (delta z - w)

Its objective is `|E[delta z]|^2`, whose minimiser is TD's solution: `X = Xi Phi` at lambda = 0. Stable
off-policy; slower than its successors because w is not preconditioned by `E[phi phi^T]`.

Sutton, Szepesvari & Maei (2008).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from o2td.kernels.gradient import Member
from o2td.learners.gradient import GradientLearner


class GTD(GradientLearner):
    """GTD (2008).

    Parameters
    ----------
    step_size : float, PowerDecay or "auto"
        alpha; "auto" is 0.1 over the fourth power of the largest norm of features so far: w is as large
        as the features here, and so predictions do not depend on their scale.
    second_step_size : optional
        alpha_w; None means the same as `step_size`, and "auto" is 0.1.
    trace : float
        lambda.
    initial_theta : (d,) array, optional
        Where learning starts; zero if left out.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> problem = o2td.domains.random_walk()
    >>> learner = o2td.GTD(step_size=0.1).partial_fit(problem.sample(2000, seed=0))
    >>> learner.status.kind
    'ok'
    """

    def auto_scales(
        self, largest: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """`|phi|^4` and 1: w follows `delta z`, whatever the size of the features."""
        return np.square(largest), np.ones_like(largest)

    def member(self) -> Member:
        """`(z.w) dphi` and `delta z - w`."""
        return Member(theta_z_phi=1.0, theta_z_next=1.0, kappa=1.0)

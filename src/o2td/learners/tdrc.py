"""TDRC: TDC with a regularised correction.

    theta += alpha (delta z - gamma (1 - lambda) (z.w) phi')
    w     += alpha_w (delta z - (phi.w) phi - kappa w)

kappa = 0 is TDC, large kappa is TD; kappa = 1 with alpha_w = alpha is meant to need no tuning, for
features of about length one: with ones a tenth as long, Baird's star is unstable, as with TD. The limit
is TD's, `X = Xi Phi` at lambda = 0.

Ghiassian et al. (2020).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td.errors import InputError
from o2td.kernels.gradient import Member
from o2td.learners.gradient import GradientLearner


class TDRC(GradientLearner):
    """TDRC.

    Parameters
    ----------
    step_size : float, PowerDecay or "auto"
        alpha; "auto" is 0.1 over the largest squared norm of features so far.
    second_step_size : optional
        alpha_w; None means the same as `step_size`, and "auto" divides by kappa where that is larger.
    trace : float
        lambda.
    regularizer : float
        kappa.
    initial_theta : (d,) array, optional
        Where learning starts; zero if left out.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> problem = o2td.domains.random_walk()
    >>> learner = o2td.TDRC(step_size=0.1).partial_fit(problem.sample(2000, seed=0))
    >>> learner.status.kind
    'ok'
    """

    def __init__(
        self,
        step_size: Any = "auto",
        second_step_size: Any = None,
        trace: float = 0.0,
        regularizer: float = 1.0,
        initial_theta: Any = None,
    ) -> None:
        known = isinstance(regularizer, (int, float, np.floating))
        if not (known and 0.0 <= regularizer < np.inf):
            raise InputError(f"regularizer must be >= 0 and finite, got {regularizer!r}")
        self.regularizer = float(regularizer)
        super().__init__(step_size, second_step_size, trace, initial_theta)

    def member(self) -> Member:
        """As TDC, and `- kappa w`."""
        return Member(
            theta_delta_z=1.0,
            theta_z_next=1.0 - self.trace,
            w_w_phi=-1.0,
            kappa=self.regularizer,
        )

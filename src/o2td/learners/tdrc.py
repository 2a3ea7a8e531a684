"""TDRC: TDC with a regularised correction.

    theta += alpha (delta z - gamma (1 - lambda) (z.w) phi')
    w     += alpha_w (delta z - (phi.w) phi - kappa w)

kappa = 0 is TDC, large kappa is TD; kappa = 1 with alpha_w = alpha is meant to need no tuning, for
feature vectors of about unit length: with vectors a tenth as long, Baird's star is unstable, as
with TD. The limit is TD's, `X = Xi Phi` at lambda = 0.

Ghiassian et al. (2020).
"""

from __future__ import annotations

from typing import Unpack

from o2td.arguments import number
from o2td.kernels.gradient import Member
from o2td.learners.gradient import GradientAxes
from o2td.learners.step_sizes import StepSize
from o2td.learners.tdc import TDC


class TDRC(TDC):
    """TDRC: TDC with a regularised correction.

    Parameters
    ----------
    regularizer : float
        kappa, the weight of the regulariser.

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
        step_size: StepSize = "auto",
        *,
        regularizer: float = 1.0,
        **axes: Unpack[GradientAxes],
    ) -> None:
        self.regularizer = number("regularizer", regularizer, low=0.0)
        super().__init__(step_size, **axes)

    def member(self) -> Member:
        """TDC's, and `- kappa w`."""
        return super().member()._replace(kappa=self.regularizer)

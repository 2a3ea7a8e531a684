"""TDC-MP: TDC by mirror-prox, as GTD2-MP is GTD2 by mirror-prox.

    (theta~, w~) = a TDC step from (theta, w);    (theta, w) += a step with directions at (theta~, w~)

Same limit as TDC; the drift differs from TDC's by O(alpha^2).

Liu et al. (2015), algorithm 3.
"""

from __future__ import annotations

from typing import ClassVar

from o2td.learners.tdc import TDC


class TDCMP(TDC):
    """TDC by mirror-prox.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> problem = o2td.domains.random_walk()
    >>> learner = o2td.TDCMP(step_size=0.1).partial_fit(problem.sample(2000, seed=0))
    >>> learner.status.kind
    'ok'
    """

    mirror: ClassVar[bool] = True
    cautious: ClassVar[bool] = True

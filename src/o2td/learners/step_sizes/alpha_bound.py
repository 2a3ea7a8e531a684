"""Alpha-bound: the largest step size that has not overshot yet.

    alpha_t = min(alpha_{t-1}, 1 / (rho z.dphi))    where z.dphi > 0

With this alpha, the step on a row never changes the sign of that row's own error.

Dabney & Barto (2012), "Adaptive step-size for online temporal difference learning", eq. 15.
"""

from __future__ import annotations

import numpy as np

from o2td.arguments import number
from o2td.arrays import Floats
from o2td.learners.step_sizes.rule import Gauge, Rule

__all__ = ["AlphaBound"]


class AlphaBound(Rule):
    """Alpha-bound, decreasing from `initial`.

    Parameters
    ----------
    initial : float
        Step size before any row has lowered it.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> batch = o2td.Transitions([[2.0]], [1.0], [[0.0]], discount=0.0)
    >>> o2td.TD(o2td.learners.AlphaBound()).partial_fit(batch).predict([[2.0]])
    array([1.])
    """

    def __init__(self, initial: float = 1.0) -> None:
        self.initial = number("initial", initial, above=0.0)

    def fill(self, gauge: Gauge, out: Floats) -> None:
        """The running minimum."""
        least = gauge.memory.setdefault("alpha_bound", np.full(1, self.initial))
        along = gauge.measured.along
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            bound = np.where(along > 0.0, 1.0 / along, np.inf)
        out[:] = np.minimum.accumulate(np.append(least, bound))[1:]
        least[0] = out[-1]

    def shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """The smallest so far."""
        return {"alpha_bound": (1,)}

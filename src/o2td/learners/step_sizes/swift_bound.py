"""SwiftTD's bound on the rate of learning: no row learns more than a share `eta` of its own error.

    alpha_t = min(alpha, eta / |phi_t|^2)

Javed, Sharifnassab & Sutton (2024), "SwiftTD: a fast and robust algorithm for temporal difference
learning", with one step size for all features.
"""

from __future__ import annotations

import numpy as np

from o2td.arguments import number
from o2td.arrays import Floats
from o2td.learners.step_sizes.rule import Gauge, Rule

__all__ = ["SwiftBound"]


class SwiftBound(Rule):
    """A step size with SwiftTD's bound.

    Parameters
    ----------
    size : float
        alpha if the bound is not active.
    eta : float
        Fraction of a row's error that one step may remove.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> batch = o2td.Transitions([[2.0]], [1.0], [[0.0]], discount=0.0)
    >>> o2td.TD(o2td.learners.SwiftBound(1.0, eta=0.5)).partial_fit(batch).predict([[2.0]])
    array([0.5])
    """

    def __init__(self, size: float, eta: float = 0.5) -> None:
        self.size, self.eta = number("size", size, above=0.0), number("eta", eta, above=0.0)

    def fill(self, gauge: Gauge, out: Floats) -> None:
        """At most eta over the squared norm."""
        with np.errstate(divide="ignore", over="ignore"):
            np.minimum(self.size, self.eta / gauge.measured.square, out=out)

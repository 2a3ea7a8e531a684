"""A step size that decays as a power of the number of steps."""

from __future__ import annotations

import math

import numpy as np

from o2td.arguments import as_float, shown
from o2td.arrays import Floats
from o2td.errors import InputError
from o2td.learners.step_sizes.rule import Gauge, Rule

__all__ = ["PowerDecay"]


class PowerDecay(Rule):
    """`alpha_t = c t^-p`, t counted from 1.

    Parameters
    ----------
    c : float
        The first step size.
    p : float
        How fast it decays; 0 is constant, and above 1 the sum of all step sizes is finite.

    Examples
    --------
    >>> PowerDecay(0.5, 1.0).at(np.array([1.0, 2.0, 4.0]))
    array([0.5  , 0.25 , 0.125])
    """

    def __init__(self, c: float, p: float) -> None:
        first, power = as_float(c), as_float(p)
        if not (math.isfinite(first) and first > 0.0 and math.isfinite(power) and power >= 0.0):
            raise InputError(f"PowerDecay needs c > 0 and p >= 0, got c={shown(c)}, p={shown(p)}")
        self.c, self.p = first, power

    def at(self, t: Floats) -> Floats:
        """The step sizes of steps t."""
        return np.asarray(self.c * np.power(t, -self.p))

    def fill(self, gauge: Gauge, out: Floats) -> None:
        """`c t^-p` of these rows."""
        out[:] = self.at(np.arange(gauge.first + 1.0, gauge.first + 1.0 + len(out)))

    def __repr__(self) -> str:
        return f"PowerDecay({self.c:g}, {self.p:g})"

"""A constant step size."""

from __future__ import annotations

from o2td.arrays import Floats
from o2td.learners.step_sizes.rule import Gauge, Rule

__all__ = ["Constant"]


class Constant(Rule):
    """The same step size at every step; a plain number means this."""

    def __init__(self, size: float) -> None:
        self.size = size

    def fill(self, gauge: Gauge, out: Floats) -> None:
        """One number."""
        out[:] = self.size

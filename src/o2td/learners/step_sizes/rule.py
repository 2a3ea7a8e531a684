"""What a step-size rule is: step sizes of a stretch of rows, from what can be measured of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy.typing as npt

from o2td.arrays import Floats

__all__ = ["Gauge", "Measured", "Rule"]

Memory = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Measured:
    """Of each row: `|rho z| |dphi|`, `rho z.dphi` and `|phi|^2`, z the trace."""

    size: Floats
    along: Floats
    square: Floats


@dataclass(frozen=True, eq=False)
class Gauge:
    """What a rule may know of the rows whose step sizes it fills.

    Parameters
    ----------
    first : int
        Rows before these.
    memory : dict
        Arrays that the rule keeps from stretch to stretch; they are saved with the learner.
    measure : callable
        Gives what is measured of each row; it costs a pass over the rows, so it is called on demand.
    kappa : float
        What w loses of itself in every step; 0 where nothing, or where there is no w.
    second : bool
        Whether there is a second vector w.
    share : float
        Of what is safe for one step, if a row takes more than one.
    """

    first: int
    memory: Memory
    measure: Callable[[], Measured] = field(repr=False)
    kappa: float = 0.0
    second: bool = False
    share: float = 1.0

    @cached_property
    def measured(self) -> Measured:
        """What is measured, once."""
        return self.measure()


class Rule:
    """Base of step-size rules: one file each, `fill` their only duty.

    A rule with a step size for every feature names the `vectors` that it keeps, and has a `step` for one
    row, as learners of `StepLearner` have, in place of the learner's own.
    """

    vectors: ClassVar[tuple[str, ...]] = ()
    step: ClassVar[Callable[..., None]]

    def fill(self, gauge: Gauge, out: Floats) -> None:
        """Fill `out` with the step sizes of rows `gauge.first`, `gauge.first + 1`, ..."""
        raise NotImplementedError

    def shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """What the rule keeps in `gauge.memory`, by name."""
        return {}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *sorted(self.__dict__.items())))

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={v:g}" for k, v in self.__dict__.items())
        return f"{type(self).__name__}({inside})"

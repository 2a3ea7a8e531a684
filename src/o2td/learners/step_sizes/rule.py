"""The interface of step-size rules: step sizes for a block of rows, from measurements of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy.typing as npt

from o2td.arrays import Floats
from o2td.learners.declarations import check_step, check_vectors
from o2td.parameters import Valued

__all__ = ["Gauge", "Measured", "Rule"]

Memory = dict[str, npt.NDArray[Any]]
SECOND = "second_"  # before the names of what the rule of a second step size stores


@dataclass(frozen=True, eq=False)
class Measured:
    """Of each row: `|rho z| |dphi|`, `rho z.dphi` and `|phi|^2`, z the trace."""

    size: Floats
    along: Floats
    square: Floats


@dataclass(frozen=True, eq=False)
class Gauge:
    """What a rule may know about the rows whose step sizes it fills.

    Parameters
    ----------
    first : int
        Number of rows before these.
    memory : dict
        Arrays that the rule keeps from block to block; they are saved with the learner.
    measure : callable
        Returns the measurements of each row; it takes a pass over the rows, so it is called on
        demand.
    kappa : float
        Fraction of itself that w loses in every step; 0 if none, or if there is no w.
    second : bool
        Whether there is a second vector w.
    share : float
        Fraction of the safe step size to use, if a row takes more than one step.
    lost : array, optional
        One minus the discount of each row, if steps must be small where that is.
    """

    first: int
    memory: Memory
    measure: Callable[[], Measured] = field(repr=False)
    kappa: float = 0.0
    second: bool = False
    share: float = 1.0
    lost: Floats | None = None

    @cached_property
    def measured(self) -> Measured:
        """The measurements, computed once."""
        return self.measure()

    def fill_second(self, rule: Rule, out: Floats) -> None:
        """Fill a second step size by a rule with a memory of its own, beside that of the first."""
        kept = {k.removeprefix(SECOND): v for k, v in self.memory.items() if k.startswith(SECOND)}
        rule.fill(replace(self, memory=kept, measure=lambda: self.measured), out)
        self.memory.update({SECOND + name: array for name, array in kept.items()})


class Rule(Valued):
    """Base class of step-size rules, one file each; a rule need only implement `fill`.

    A rule with a step size per feature names the `vectors` that it stores, and has a `step` for one
    row, like a `StepLearner`, which replaces the learner's own: `step(row, p, s, theta, *vectors, z)`,
    where `p` has the rule's own parameters, which must be numbers, `row.alpha` is what `fill` gives,
    and `row.alpha_w` is the ratio in the update. `TIDBD` is such a rule.
    """

    vectors: ClassVar[tuple[str, ...]] = ()
    step: ClassVar[Callable[..., None]]

    def __init_subclass__(cls) -> None:
        check_vectors(cls.__name__, ("theta", *cls.vectors, "z"))
        if cls.vectors:
            check_step(cls.__name__, getattr(cls, "step", None), ("theta", *cls.vectors, "z"))

    def fill(self, gauge: Gauge, out: Floats) -> None:
        """Fill `out` with the step sizes of rows `gauge.first`, `gauge.first + 1`, ..."""
        raise NotImplementedError

    def shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Shapes of what the rule stores in `gauge.memory`, by name."""
        return {}

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={v:g}" for k, v in self.__dict__.items())
        return f"{type(self).__name__}({inside})"

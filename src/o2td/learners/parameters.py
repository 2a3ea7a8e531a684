"""Parameters of learners: their defaults, their valid values, and how changes take effect."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from o2td.arguments import is_real, real, shown
from o2td.arrays import Floats, as_numbers
from o2td.errors import InputError
from o2td.parameters import Parameterized, defaults_of, refuse_unknown

# Class attributes for authors of learners; `dir` of a learner omits them.
DECLARED = {
    *("family", "needs", "discounted", "linear", "vectors", "traces", "scalars", "step", "fixed"),
    *("undefined", "counts_rows", "moves_all", "one_lambda", "finds_step", "mirror", "member"),
    *("trace_decay", "correction", "no_dynamics", "simplified", "postpones", "set_once"),
    "own_step_sizes",
    "cautious",
}


class LearnerParameters(Parameterized):
    """Parameters by name; `dir` omits what a learner inherits but does not take."""

    fixed: ClassVar[tuple[str, ...]] = ()
    """Parameters of the base class that this learner sets itself."""
    undefined: ClassVar[tuple[str, ...]] = ()
    """Parameters of the base class for which this learner is not defined."""

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """Refuse parameters that this class does not have, whichever base would meet them."""
        known = defaults_of(cls)
        if len(given) > 1 or not named.keys() <= known.keys():
            refuse_unknown(cls, given, named)
        return super().__new__(cls)

    def __dir__(self) -> list[str]:
        bases = (x for x in type(self).__mro__ if issubclass(x, Parameterized))
        inherited = {name for base in bases for name in defaults_of(base)} - {*self.parameters()}
        return sorted({*super().__dir__()} - DECLARED - inherited)


def initial(value: Any, d: int) -> Floats:
    """`initial_theta` as d numbers."""
    if value is None:
        return np.zeros(d)
    theta = as_numbers("initial_theta", value)
    if theta.shape not in ((), (d,)) or not np.isfinite(theta).all():
        raise InputError(f"initial_theta must be {d} finite numbers, got shape {theta.shape}")
    return np.broadcast_to(theta, (d,))


def as_average(value: Any) -> Any:
    """False, True, or how much recent iterates count: a number of at least 1."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if is_real(value) and 1.0 <= (found := real("average", value)) < np.inf:
        return found
    raise InputError(f"average must be True, False or a number from 1, got {shown(value)}")


def averaging(average: bool | float) -> float:
    """How much recent iterates count: 8 if True, 0 if nothing is averaged."""
    return 8.0 if average is True else float(average)

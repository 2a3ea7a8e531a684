"""Step sizes: a number, `c t^-p`, or "auto", which does not depend on the features' scale."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.errors import InputError

Floats = npt.NDArray[np.float64]
AUTO_SHARE = 0.1


class PowerDecay:
    """`alpha_t = c t^-p`, t counted from 1.

    Parameters
    ----------
    c : float
        The first step size.
    p : float
        How fast it falls; 0 is constant, and beyond 1 the sum of all is finite.

    Examples
    --------
    >>> PowerDecay(0.5, 1.0).at(np.array([1.0, 2.0, 4.0]))
    array([0.5  , 0.25 , 0.125])
    """

    def __init__(self, c: float, p: float) -> None:
        first, power = _number(c), _number(p)
        if not (math.isfinite(first) and first > 0.0 and math.isfinite(power) and power >= 0.0):
            raise InputError(f"PowerDecay needs c > 0 and p >= 0, got c={c!r}, p={p!r}")
        self.c, self.p = first, power

    def at(self, t: Floats) -> Floats:
        """The step sizes of steps t."""
        return np.asarray(self.c * np.power(t, -self.p))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerDecay) and (self.c, self.p) == (other.c, other.p)

    def __hash__(self) -> int:
        return hash((self.c, self.p))

    def __repr__(self) -> str:
        return f"PowerDecay({self.c:g}, {self.p:g})"


StepSize = float | str | PowerDecay


def as_step_size(name: str, value: Any) -> float | str | PowerDecay:
    """A checked step size: a positive number, `PowerDecay`, or "auto"."""
    if isinstance(value, PowerDecay) or (isinstance(value, str) and value == "auto"):
        return value
    if isinstance(value, dict) and set(value) == {"c", "p"}:
        return PowerDecay(value["c"], value["p"])
    number = _number(value)
    if not (math.isfinite(number) and number >= 0.0):
        raise InputError(f'{name} must be a number >= 0, PowerDecay(c, p) or "auto"; got {value!r}')
    return number


def _number(value: Any) -> float:
    """A float, or NaN for what is none: truth values and texts are not."""
    if isinstance(value, (bool, str)):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def fill(value: Any, first: int, largest: Floats, out: Floats) -> None:
    """The step sizes of steps first, first+1, ...; `largest` is the running largest |phi|^2."""
    if isinstance(value, PowerDecay):
        out[:] = value.at(np.arange(first + 1.0, first + 1.0 + len(out)))
    elif value == "auto":
        np.divide(AUTO_SHARE, largest, out=out, where=largest > 0.0)
        out[largest <= 0.0] = 0.0
    else:
        out[:] = value

"""Parameters of learners: their defaults, what they may be, and that a change of one is noticed."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arrays import as_numbers
from o2td.errors import InputError

Floats = npt.NDArray[np.float64]


class Parameter:
    """An attribute as any other, but that one changed on the way counts from the next row on.

    It has no `__get__`: reading finds the learner's own attribute, as fast as without this.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __set__(self, learner: Any, value: Any) -> None:
        learner.__dict__[self._name] = value
        learner._unbind()


@cache
def defaults_of(constructor: Any) -> dict[str, Any]:
    """Its parameters and their defaults, read once: a sweep clones many learners."""
    parameters = list(inspect.signature(constructor).parameters.values())
    return {parameter.name: parameter.default for parameter in parameters[1:]}


def initial(value: Any, d: int) -> Floats:
    """`initial_theta` as d numbers."""
    if value is None:
        return np.zeros(d)
    theta = as_numbers("initial_theta", value)
    if theta.shape not in ((), (d,)) or not np.isfinite(theta).all():
        raise InputError(f"initial_theta must be {d} finite numbers, got shape {theta.shape}")
    return np.broadcast_to(theta, (d,))


def fraction(name: str, value: Any) -> float:
    """A number in [0, 1]."""
    if isinstance(value, (int, float, np.floating)) and 0.0 <= value <= 1.0:
        return float(value)
    raise InputError(f"{name} must be in [0, 1], got {value!r}")


def positive(name: str, value: Any) -> float:
    """A finite number above 0."""
    if isinstance(value, (int, float, np.floating)) and 0.0 < value < np.inf:
        return float(value)
    raise InputError(f"{name} must be above 0 and finite, got {value!r}")


def same(value: Any, default: Any) -> bool:
    """Whether a parameter is its default, so that it need not be shown."""
    return type(value) is type(default) and not isinstance(value, np.ndarray) and value == default

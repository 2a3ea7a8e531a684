"""What several domains need: random numbers of their own, and a choice checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.errors import InputError

Floats = npt.NDArray[np.float64]

_DOMAIN = 0xD0  # keeps what a domain draws apart from what `sample` draws with the same seed


def generator(seed: Any) -> np.random.Generator:
    """The random numbers that a domain is made from; use only its `random()`.

    >>> generator(0).random() == generator(0).random()
    True
    """
    from o2td.sampling import seed_sequence

    root = seed_sequence(seed)
    key = (*root.spawn_key, _DOMAIN)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(root.entropy, spawn_key=key)))


def shares(weight: Floats) -> Floats:
    """Non-negative weights divided by their sum along the last axis.

    >>> shares(np.array([[1.0, 3.0]]))
    array([[0.25, 0.75]])
    """
    return np.asarray(weight / weight.sum(axis=-1, keepdims=True))


def choice(name: str, value: Any, known: tuple[Any, ...]) -> Any:
    """`value`, which must be one of `known`.

    >>> choice("form", "star", ("star", "survey"))
    'star'
    """
    if value not in known:
        raise InputError(f"{name} must be one of {', '.join(map(repr, known))}; got {value!r}")
    return value


def whole(name: str, value: Any, least: int) -> int:
    """`value` as an int of at least `least`.

    >>> whole("states", 3, 2)
    3
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def unit(name: str, value: Any) -> float:
    """`value` as a number in [0, 1].

    >>> unit("epsilon", 0.5)
    0.5
    """
    if not 0.0 <= value <= 1.0:
        raise InputError(f"{name} must be in [0, 1], got {value!r}")
    return float(value)

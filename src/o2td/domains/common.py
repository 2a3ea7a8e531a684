"""What several domains need: random numbers of their own, and parameters checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.errors import InputError

Floats = npt.NDArray[np.float64]

MAX_NUMBERS = 1 << 31  # of one table: 16 GiB
_LARGEST = 1e308
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


def choice(name: str, value: Any, known: tuple[str, ...]) -> str:
    """`value`, which must be one of the words `known`.

    >>> choice("form", "star", ("star", "survey"))
    'star'
    """
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{name} must be one of {', '.join(map(repr, known))}; got {value!r}")
    return value


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """`value` as an int of at least `least`, and at most `most`.

    >>> whole("states", 3, 2)
    3
    """
    wanted = f"of at least {least}" if most is None else f"from {least} to {most}"
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InputError(f"{name} must be a whole number {wanted}, got {value!r}")
    if value < least or (most is not None and value > most):
        raise InputError(f"{name} must be a whole number {wanted}, got {value}")
    return int(value)


def unit(name: str, value: Any) -> float:
    """`value` as a number in [0, 1].

    >>> unit("epsilon", 0.5)
    0.5
    """
    if not _real(value) or not 0.0 <= value <= 1.0:
        raise InputError(f"{name} must be a number in [0, 1], got {value!r}")
    return float(value)


def real(name: str, value: Any) -> float:
    """`value` as a number, which may be infinite.

    >>> real("sell_above", 2)
    2.0
    """
    if not _real(value) or value != value:
        raise InputError(f"{name} must be a number, got {value!r}")
    if abs(value) >= _LARGEST:
        return np.inf if value > 0 else -np.inf
    return float(value)


def fitting(*sides: int, of: str) -> None:
    """Refuse sizes whose table would hold more numbers than memory, before it is asked for.

    >>> fitting(10, 10, of="states and features")
    """
    total = 1
    for side in sides:
        total *= side
    if total > MAX_NUMBERS:
        raise InputError(
            f"{of}: a table of {_many(total)} numbers does not fit in memory; lower them"
        )


def _many(total: int) -> str:
    return f"{total:,}" if total < 10**15 else "more than 10^15"


def _real(value: Any) -> bool:
    return not isinstance(value, (bool, np.bool_)) and isinstance(
        value, (int, float, np.integer, np.floating)
    )

"""What several domains need: random numbers of their own, and tables that fit in memory."""

from __future__ import annotations

import numpy as np

from o2td.arrays import Floats, Seed
from o2td.errors import InputError

MAX_NUMBERS = 1 << 31  # of one table: 16 GiB
_DOMAIN = 0xD0  # keeps what a domain draws apart from what `sample` draws with the same seed


def generator(seed: Seed) -> np.random.Generator:
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


def fitting(*sides: int, of: str) -> None:
    """Refuse sizes whose table would hold more numbers than memory, before it is asked for.

    >>> fitting(10, 10, of="states and features")
    """
    total = 1
    for side in sides:
        total *= side
    if total > MAX_NUMBERS:
        many = f"{total:,}" if total < 10**15 else "more than 10^15"
        raise InputError(f"{of}: a table of {many} numbers does not fit in memory; lower them")

"""Concatenate batches: check that they fit together and join their columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from o2td.arguments import instance, listed
from o2td.arrays import freeze
from o2td.errors import InputError

if TYPE_CHECKING:
    from o2td.transitions import Transitions


def checked(parts: Iterable[Transitions]) -> list[Transitions]:
    """The batches as a list; raises if their layouts or tables differ."""
    from o2td.transitions import Transitions

    parts = [
        instance(f"batch {k}", part, Transitions, "Transitions")
        for k, part in enumerate(listed("parts", parts, "Transitions"))
    ]
    if not parts:
        raise InputError("concatenate needs at least one batch")
    first = parts[0]
    for k, part in enumerate(parts):
        if (part.layout, part.d, part.sparse) != (first.layout, first.d, first.sparse):
            raise InputError(
                f"batch {k} has layout {part.layout} with {part.d} features,"
                f" batch 0 has {first.layout} with {first.d}; they must agree"
            )
        if part.table is not first.table and not _same_table(part.table, first.table):
            raise InputError(f"batch {k} refers to another feature table than batch 0")
    return parts


def _same_table(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return type(one) is type(other) and one.shape == other.shape and (one != other).nnz == 0


def join(name: str, parts: list[Any]) -> Any:
    """Join one column of several batches; None if no batch has it."""
    missing = [part is None for part in parts]
    if all(missing):
        return None
    if any(missing):
        raise InputError(
            f"{name} is given in some batches and missing in batch {missing.index(True)}"
        )
    if isinstance(parts[0], np.ndarray):
        return freeze(np.concatenate(parts))
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack(parts, format="csr"))

"""Group rows by state: the states that occur, and sums over their rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td.arrays import Floats, Ints


def distinct(state: Ints) -> tuple[Ints, Ints, Ints]:
    """The states that occur (sorted), their first rows, and the position of each row's state."""
    n, size = len(state), int(state.max(initial=-1)) + 1
    if size > 4 * n:  # sorting costs less than an entry for each possible state
        found, first, where = np.unique(state, return_index=True, return_inverse=True)
        return found, first, where
    first = np.full(size, -1)
    first[state[::-1]] = np.arange(n - 1, -1, -1)  # the last assignment wins
    found = np.flatnonzero(first >= 0)
    place = np.empty(size, dtype=np.int64)
    place[found] = np.arange(len(found))
    return found, first[found], place[state]


def grouping(where: Ints, weight: Floats, size: int) -> Any:
    """The matrix that sums rows by group."""
    from scipy.sparse import csr_array

    n = len(where)
    return csr_array((weight, (where, np.arange(n))), shape=(size, n))


def by_group(where: Ints, value: Floats, size: int) -> Floats:
    """The sum of the values of each group."""
    return np.bincount(where, value, minlength=size).astype(np.float64, copy=False)

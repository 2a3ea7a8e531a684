"""Features in the form that compiled kernels read: a matrix (dense or CSR triple) and an index."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from o2td.arrays import Floats, Ints, freeze

_NUMBERS = freeze(np.arange(1 << 16))  # indices of consecutive rows


class DenseRows(NamedTuple):
    """Row t of the batch is `matrix[at[t]]`."""

    matrix: Floats
    at: Ints


class SparseRows(NamedTuple):
    """Row t of the batch is row `at[t]` of the CSR triple."""

    data: Floats
    indices: npt.NDArray[np.int32]
    indptr: Ints
    at: Ints
    d: int


Rows = DenseRows | SparseRows


def table_rows(table: Any, index: Ints) -> Rows:
    """Rows `index` of a table, dense or CSR."""
    if isinstance(table, np.ndarray):
        return DenseRows(table, index)
    return _sparse(table, table.indptr, index)


def own_rows(rows: Any, low: int, n: int) -> Rows:
    """`n` consecutive rows; for CSR rows, those from `low` on."""
    index = _NUMBERS[:n] if n <= len(_NUMBERS) else freeze(np.arange(n))
    if isinstance(rows, np.ndarray):
        return DenseRows(rows, index)
    return _sparse(rows, rows.indptr[low : low + n + 1], index)


def _sparse(rows: Any, starts: Any, index: Ints) -> SparseRows:
    return SparseRows(
        freeze(rows.data),
        freeze(rows.indices.astype(np.int32, copy=False)),
        freeze(starts.astype(np.int64, copy=False)),
        index,
        int(rows.shape[1]),
    )

"""The door for sparse matrices, whose indices SciPy does not check and compiled code trusts.

An index outside the shape would be read from, or written to, memory that belongs to others. It is
refused by name before anything converts the matrix, as SciPy's own conversions trust it, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arguments import brief
from o2td.errors import InputError

__all__ = ["as_coo", "as_csr", "check_structure"]

# What the entries of each format are listed by, and what their indices name.
_COMPRESSED = {
    "csr": ("row", "column"),
    "csc": ("column", "row"),
    "bsr": ("row of blocks", "column of blocks"),
}
_REBUILD = "build the matrix anew, with SciPy's constructor or from its entries (coo_array)"


def as_csr(name: str, value: Any) -> Any:
    """`value`, a sparse matrix of any format, as a CSR array whose indices are inside its shape.

    >>> from scipy.sparse import csr_array
    >>> as_csr("phi", csr_array(([1.0], [7], [0, 1]), shape=(1, 2)))
    Traceback (most recent call last):
    o2td.errors.InputError: phi has column index 7 in row 0, and 2 columns: ...
    """
    from scipy.sparse import csr_array

    return _converted(name, value, csr_array)


def as_coo(name: str, value: Any) -> Any:
    """`value`, a sparse matrix of any format, as a COO array whose indices are inside its shape.

    >>> from scipy.sparse import csr_array
    >>> as_coo("transition", csr_array([[0.0, 1.0]])).data
    array([1.])
    """
    from scipy.sparse import coo_array

    return _converted(name, value, coo_array)


def _converted(name: str, value: Any, kind: Any) -> Any:
    check_structure(name, value)
    try:
        found = kind(value)
    except (ValueError, TypeError, IndexError, OverflowError, MemoryError) as error:
        raise InputError(f"{name} is not a sparse matrix ({brief(error)}); {_REBUILD}") from None
    if getattr(value, "format", "") not in (*_COMPRESSED, "coo"):  # it may hold a wrong index, too
        check_structure(name, found)
    return found


def check_structure(name: str, value: Any) -> None:
    """Refuse a sparse matrix whose parts do not belong together, naming the first bad index."""
    if len(value.shape) != 2:
        raise InputError(
            f"{name} must be two-dimensional (rows, features), got shape {value.shape}"
        )
    kind = getattr(value, "format", "")
    if kind in _COMPRESSED:
        _check_compressed(name, value, kind)
    elif kind == "coo":
        row, column = value.coords if hasattr(value, "coords") else (value.row, value.col)
        if not len(row) == len(column) == len(value.data):
            raise InputError(
                f"{name} has {len(row)} rows and {len(column)} columns of {len(value.data)}"
                f" entries; {_REBUILD}"
            )
        for word, index, size in zip(("row", "column"), (row, column), value.shape, strict=True):
            bad = _outside(index, size)
            if bad is not None:
                raise InputError(_message(name, word, index[bad], f"entry {bad}", size))


def _check_compressed(name: str, value: Any, kind: str) -> None:
    along, across = _COMPRESSED[kind]
    sides = value.shape
    if kind == "bsr":
        sides = tuple(side // block for side, block in zip(sides, value.blocksize, strict=True))
    lists, size = sides[::-1] if kind == "csc" else sides
    ends, indices = np.asarray(value.indptr), np.asarray(value.indices)
    why = ""
    if {ends.dtype.kind, indices.dtype.kind} - {"i", "u"} or (ends.ndim, indices.ndim) != (1, 1):
        why = "indptr and indices must be vectors of whole numbers"
    elif len(ends) != lists + 1:
        why = f"indptr has {len(ends)} numbers, of shape {value.shape} it must have {lists + 1}"
    elif len(indices) != len(value.data):
        why = f"indices has {len(indices)} numbers and data {len(value.data)}"
    elif ends[0] != 0:
        why = f"indptr begins with {ends[0]}, it must begin with 0"
    elif (falls := ends[1:] < ends[:-1]).any():
        row = int(np.argmax(falls))
        why = f"indptr falls from {ends[row]} to {ends[row + 1]} in {along} {row}"
    elif ends[-1] > len(indices):
        why = f"indptr ends with {ends[-1]}, and there are {len(indices)} entries"
    if why:
        raise InputError(f"{name} is not a {kind.upper()} matrix: {why}; {_REBUILD}")
    bad = _outside(indices[: ends[-1]], size)
    if bad is not None:
        row = int(np.searchsorted(ends, bad, side="right")) - 1
        raise InputError(_message(name, across, indices[bad], f"{along} {row}", size))


def _outside(index: npt.NDArray[Any], size: int) -> int | None:
    """The place of the first index outside `[0, size)`."""
    if len(index) == 0 or (index.min() >= 0 and index.max() < size):
        return None
    return int(np.argmax((index < 0) | (index >= size)))


def _message(name: str, word: str, index: Any, place: str, size: int) -> str:
    plural = word.replace("row", "rows", 1) if "row" in word else word.replace("mn", "mns", 1)
    return (
        f"{name} has {word} index {index} in {place}, and {size} {plural}: indices go from 0 to"
        f" {size - 1}; correct it, or give the matrix a larger shape"
    )

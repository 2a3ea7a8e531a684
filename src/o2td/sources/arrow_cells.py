"""Cells of Arrow columns as checked NumPy arrays; a bad cell is refused with its place."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arrays import Bools, Floats, Ints
from o2td.sources.arrow import pa, pc
from o2td.sources.places import Where

LARGEST = 1e75  # largest number: the square of a product of two is still finite
_TILE = 4096  # rows transposed at a time, so that the target stays in the cache
OBSERVED = 1e37  # largest observation: feature maps take larger bounds for none
_LARGE = "correct it, or use a larger unit: numbers go up to"
RUN_TOGETHER = "floats cannot tell whole numbers above 2**53 apart: number from 0"
MISSING = "fill it in, or leave the episode out"


def nulls(column: Any) -> Bools:
    """Missing cells: null, or NaN among numbers."""
    missing: Bools = pc.is_null(column, nan_is_null=True).to_numpy(zero_copy_only=False)
    return missing


def pa_bool(column: Any) -> bool:
    """Whether an Arrow column holds booleans and nothing is missing."""
    return bool(pa.types.is_boolean(column.type)) and not column.null_count


def as_floats(column: Any) -> Floats:
    """An Arrow column of numbers or booleans as float64, null as NaN; copied only if needed."""
    if column.type != pa.float64():
        column = column.cast(pa.float64(), safe=False)  # the caller refuses numbers beyond 2**53
    values: Floats = column.to_numpy(zero_copy_only=False)
    return values


def all_usable(values: Floats, most: float = LARGEST) -> bool:
    """Whether no value is NaN, infinite or beyond `most`, by one sum of squares if possible."""
    with np.errstate(all="ignore"):
        return bool(values @ values <= most**2) or bool((np.abs(values) <= most).all())


def check_finite(
    values: Floats, name: str, where: Where, skip: Bools | None = None, most: float = LARGEST
) -> None:
    """Refuse the first missing, infinite or overlarge value outside the rows to skip."""
    if all_usable(values, most):
        return
    bad = ~(np.abs(values) <= most)
    if skip is not None:
        bad &= ~skip
    if bad.any():
        row = int(np.argmax(bad))
        if np.isfinite(values[row]):
            where.refuse(row, name, f"is {values[row]:g}", f"{_LARGE} {most:g}")
        said = "is missing or not a number" if np.isnan(values[row]) else f"is {values[row]}"
        where.refuse(row, name, said, MISSING)


def whole_numbers(column: Any, name: str, where: Where) -> Ints:
    """A column of whole numbers (as integers, or as floats without a fraction) as int64."""
    made = isinstance(column, np.ndarray)
    if not made and not column.null_count and pa.types.is_integer(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.int64, copy=False)
    values = column if made else as_floats(column)
    bad = np.isfinite(values) & (np.abs(values) > 2.0**53)
    if bad.any():
        row = int(np.argmax(bad))
        where.refuse(row, name, f"is {values[row]:g}", RUN_TOGETHER)
    check_finite(values, name, where)
    bad = values != np.floor(values)
    if bad.any():
        row = int(np.argmax(bad))
        where.refuse(row, name, f"is {values[row]:g}", "write a whole number")
    return values.astype(np.int64)


def matrix(columns: list[npt.NDArray[Any]]) -> Floats:
    """The columns as rows of one C-contiguous matrix."""
    rows = np.empty((len(columns[0]), len(columns)))
    for low in range(0, len(rows), _TILE):
        for j, column in enumerate(columns):
            part = column[low : low + _TILE]
            rows[low : low + len(part), j] = part
    return rows

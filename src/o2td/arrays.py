"""Arrays that come from outside: checked, made float64 and contiguous, and frozen.

An error names the field, the first bad row and what is expected there. For good input only the
smallest and largest value are looked up, so checking costs a fraction of reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from o2td.errors import InputError
from o2td.sparse import as_csr

if TYPE_CHECKING:
    from scipy.sparse import sparray, spmatrix

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
FeatureRows: TypeAlias = "npt.ArrayLike | sparray | spmatrix"  # (n, d), from outside
Seed = int | Sequence[int]  # of a stream of random numbers

_CHECK_BLOCK = 1 << 20  # elements tested for finiteness at a time, so that checking needs no memory
MAX_FEATURES = 2**31 - 1  # columns that 32-bit CSR indices can name
_FINITE = float(np.finfo(np.float64).max)
_LARGE = 1e100  # beyond this it is worth a second look which rows are needed


def freeze(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A read-only view: nobody downstream can change a batch, and kernels see one array type."""
    view = array.view()
    view.flags.writeable = False
    return view


@contextmanager
def in_memory(name: str, value: Any) -> Iterator[None]:
    """Say which number asked for more memory than there is."""
    try:
        yield
    except MemoryError:
        raise InputError(
            f"{name}: {value} needs more memory than there is; lower it, or go on in parts"
        ) from None


def own(rows: Any, given: Any) -> Any:
    """Rows that share no memory with what was given, so that nobody changes them from outside."""
    if isinstance(rows, np.ndarray):
        shared = isinstance(given, np.ndarray) and np.may_share_memory(rows, given)
        return freeze(rows.copy()) if shared else rows
    return rows.copy()


def as_array(name: str, value: Any) -> npt.NDArray[Any]:
    """`value` as an array; what is ragged or masked has no reading that would be sure to be meant."""
    if isinstance(value, np.ma.MaskedArray):
        raise InputError(f"{name} is a masked array; pass its rows without the masked ones")
    try:
        return np.asarray(value)
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        raise InputError(f"{name} is not an array of numbers ({_brief(error)})") from None


def as_numbers(name: str, value: Any) -> Floats:
    """`value` as a float64 array of any shape; other kinds than real numbers are refused."""
    array = as_array(name, value)
    _check_dtype(name, array.dtype)
    return array.astype(np.float64, copy=False)


def points(phi: FeatureRows, d: int) -> tuple[Any, bool]:
    """Features to predict at, checked, and whether `phi` was one vector (d,)."""
    single = not hasattr(phi, "tocsr") and as_array("phi", phi).ndim == 1
    rows = as_rows("phi", as_array("phi", phi)[None] if single else phi)
    check_finite("phi", rows)
    if rows.shape[1] != d:
        raise InputError(f"phi has {rows.shape[1]} features, theta has {d}")
    return rows, single


def as_rows(name: str, value: Any) -> Any:
    """A C-contiguous float64 matrix or a canonical CSR array, copied only where it must be."""
    if hasattr(value, "tocsr"):
        from scipy.sparse import csr_array

        _check_dtype(name, value.dtype)
        rows = as_csr(name, value)
        if rows.dtype != np.float64:
            rows = rows.astype(np.float64)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        if rows.indices.dtype != np.int32 and rows.shape[1] < 2**31 and rows.nnz < 2**31:
            narrow = (rows.indices.astype(np.int32), rows.indptr.astype(np.int32))
            rows = csr_array((rows.data, *narrow), shape=rows.shape)
        return _check_width(name, rows)
    array = as_array(name, value)
    _check_dtype(name, array.dtype)
    if array.ndim != 2:
        raise InputError(
            f"{name} must be two-dimensional (rows, features), got shape {array.shape}"
        )
    return _check_width(name, freeze(np.ascontiguousarray(array, dtype=np.float64)))


def check_finite(name: str, rows: Any, needed: Bools | None = None) -> float:
    """Refuse NaN and infinity in the rows that are needed (all, if None), naming the first.

    Returns a bound on the absolute values in those rows.
    """
    if not isinstance(rows, np.ndarray):
        bad = ~np.isfinite(rows.data)
        if bad.any():
            owners = np.searchsorted(rows.indptr, np.flatnonzero(bad), side="right") - 1
            _refuse_row(name, owners if needed is None else owners[needed[owners]])
        if needed is None or _largest(rows.data) < _LARGE:
            return _largest(rows.data)
        return _largest(rows.data[np.repeat(needed, np.diff(rows.indptr))])
    step, largest = max(1, _CHECK_BLOCK // max(1, rows.shape[1])), 0.0
    for low in range(0, rows.shape[0], step):
        block = rows[low : low + step]
        top = _largest(block)
        if not top < _LARGE:
            kept = block if needed is None else block[needed[low : low + step]]
            bad_rows = ~np.isfinite(block).all(axis=1)
            if needed is not None:
                bad_rows &= needed[low : low + step]
            _refuse_row(name, low + np.flatnonzero(bad_rows))
            top = _largest(kept)
        largest = max(largest, top)
    return largest


def _largest(values: npt.NDArray[Any]) -> float:
    """The largest absolute value, without a copy; not finite if any value is not."""
    return float(max(values.max(initial=0.0), -values.min(initial=0.0)))


def _refuse_row(name: str, rows: Any) -> None:
    if len(rows):
        raise InputError(f"{name} has a value that is not finite, first in row {int(rows[0])}")


def _brief(error: Exception) -> str:
    return str(error).partition(".")[0]


def _check_dtype(name: str, dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "biuf" or dtype == np.float16:
        raise InputError(
            f"{name} has dtype {dtype}; pass real numbers as float64 (float32, int and bool convert)"
        )


def _check_width(name: str, rows: Any) -> Any:
    if rows.shape[1] == 0:
        raise InputError(f"{name} has no features (shape {rows.shape}); pass at least one column")
    if rows.shape[1] > MAX_FEATURES:
        raise InputError(
            f"{name} has {rows.shape[1]} features, at most {MAX_FEATURES} are possible"
        )
    return rows


def vector(
    name: str, value: Any, n: int, low: float = -_FINITE, high: float = np.inf
) -> npt.NDArray[Any]:
    """One number per row, from a scalar or (n,): finite and in [low, high]."""
    array = as_array(name, value)
    _check_dtype(name, array.dtype)
    if array.ndim == 0:
        array = np.full(n, array, dtype=np.float64)
    if array.shape != (n,):
        raise InputError(f"{name} must be a scalar or have shape ({n},), got {array.shape}")
    array = np.ascontiguousarray(array, dtype=np.float64)
    if n and not (low <= array.min() and array.max() <= min(high, _FINITE)):  # NaN is neither
        refuse(name, array, ~np.isfinite(array), "it must be finite")
        bounds = f"it must be in [{low:g}, {high:g}]" if high < np.inf else f"it must be >= {low:g}"
        refuse(name, array, (array < low) | (array > high), bounds)
    return freeze(array)


def optional(name: str, value: Any, n: int, high: float) -> Floats | None:
    """As `vector` of numbers from 0, where there may be none."""
    return None if value is None else vector(name, value, n, 0.0, high)


def refuse(name: str, array: npt.NDArray[Any], bad: Bools, why: str) -> None:
    """Raise an error that names the first row marked bad, if any is."""
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{name} is {array[row]!s} in row {row}: {why}")


def marks(start: Any, n: int) -> Bools:
    """Marks of starts; none are set where none are given."""
    if start is None:
        return freeze(np.zeros(n, dtype=np.bool_))
    array = as_array("start", start)
    if array.shape != (n,):
        raise InputError(f"start must have shape ({n},), got {array.shape}")
    if array.dtype != np.bool_:
        _check_dtype("start", array.dtype)
        refuse("start", array, (array != 0) & (array != 1), "marks are True or False")
        array = array.astype(np.bool_)
    return freeze(np.ascontiguousarray(array))


def states(
    name: str, value: Any, n: int, discount: Floats | None, limit: int | None = None
) -> Ints | None:
    """Whole numbers from 0, below `limit`; -1 is allowed where `discount` is given and 0."""
    if value is None:
        return None
    array = as_array(name, value)
    if array.shape != (n,):
        raise InputError(f"{name} must have shape ({n},), got {array.shape}")
    if array.dtype.kind not in "iu" and n:
        raise InputError(f"{name} has dtype {array.dtype}; states are integers from 0")
    array = np.ascontiguousarray(array, dtype=np.int64)
    if n and array.min() < 0:
        bad, remedy = array < 0, "states are integers from 0"
        if discount is not None:
            bad &= (discount != 0.0) | (array != -1)
            remedy += ", or -1 where discount is 0"
        refuse(name, array, bad, remedy)
    if n and limit is not None and array.max() >= limit:
        refuse(name, array, array >= limit, f"the table has {limit} rows")
    return freeze(array)


def required_states(name: str, value: Any, n: int, discount: Floats | None, limit: int) -> Ints:
    """As `states`, where there must be some."""
    if value is None:
        raise InputError(f"{name} is missing: a feature table needs the row of each state")
    return cast(Ints, states(name, value, n, discount, limit))

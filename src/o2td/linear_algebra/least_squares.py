"""Least-squares problems over many rows, compressed to as many rows as there are columns.

QR goes block by block, which costs one pass over the rows and works for dense and CSR rows alike. It
does not square the condition number, as sums of products would.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from o2td.arrays import Floats
from o2td.errors import NoAnswerError
from o2td.linear_algebra.rank import count

MOST_FEATURES = 1 << 14
_BLOCK = 1 << 21  # entries of a block of rows that QR sees at a time


def triangle(blocks: Iterable[Floats], width: int) -> Floats:
    """`R` of the QR factorisation of all rows in `blocks`, one block in memory at a time.

    `||R x|| = ||D x||` for the matrix `D` of all rows, without squaring its condition number.
    """
    R = np.zeros((0, width))
    for block in blocks:
        R = np.asarray(np.linalg.qr(np.concatenate([R, block]), mode="r"))
    return R


@dataclass(frozen=True, eq=False)
class Compressed:
    """`sum_s weight(s) (rows(s).theta - value(s))^2 = |R (theta - center)|^2 + constant`."""

    R: Floats
    center: Floats
    constant: float


def compress(
    rows: Any, value: Floats, weight: Floats | None = None, scale: Floats | None = None
) -> Compressed:
    """A least-squares problem in d rows: `R` upper triangular, `center` of minimum norm.

    `scale` holds the sizes of the columns, if their units are known to differ.
    """
    d = rows.shape[1]
    triangle = weighted_triangle(rows, weight, value)
    R, target = np.ascontiguousarray(triangle[:d, :d]), triangle[:d, d]
    unit = np.ones(d) if scale is None else np.where(scale > 0.0, scale, 1.0)
    U, size, vectors, null = _decomposed(R, unit, max(R.shape))
    center = shortest(vectors @ ((U.T @ target) / size), null)
    # If R is singular, part of the target is out of its range.
    with np.errstate(over="ignore"):  # `center` is right even if the square overflows
        rest = float(np.sum((target - R @ center) ** 2) + np.square(triangle[d, d]))
    return Compressed(R, center, rest)


def orthonormalizer(rows: Any, weight: Floats | None = None, scale: Floats | None = None) -> Floats:
    """`B` (d, r), r the rank, such that `rows B` has orthonormal columns in the weighted norm.

    Columns may have any units. If they are differences of features of size `scale`, one that is
    smaller by 1e12 is rounding and does not count.
    """
    R = weighted_triangle(rows, weight)[: rows.shape[1]]
    unit = column_sizes(R)
    if scale is not None and len(scale) == len(unit):
        unit = np.where(unit > 1e-12 * scale, unit, scale)
    unit = np.where(unit > 0.0, unit, 1.0)
    _, size, vectors, null = _decomposed(R, unit, max(rows.shape))
    if not len(size):
        raise NoAnswerError("the features are zero in every state that counts; give others")
    return shortest(vectors / size, null)


def _decomposed(R: Floats, unit: Floats, longest: int) -> tuple[Floats, Floats, Floats, Floats]:
    """`U`, sizes and `vectors` with `R vectors = U sizes`, and a basis of the null space of R.

    The rank is that of R with its columns divided by `unit`.
    """
    try:
        U, size, Vt = np.linalg.svd(R / unit)
    except np.linalg.LinAlgError:
        raise NoAnswerError(
            "the features are too large or too unequal to be decomposed; rescale them"
        ) from None
    kept = np.arange(len(size)) < count(size, (longest,))
    with np.errstate(over="ignore"):
        vectors = Vt.T / unit[:, None]
    if not np.isfinite(vectors).all():
        raise NoAnswerError("the features are too small to be decomposed; rescale them")
    return U[:, kept], size[kept], vectors[:, kept], vectors[:, ~kept]


def shortest(x: Floats, null: Floats) -> Floats:
    """`x`, or its columns, minus the projection on the span of `null`."""
    if not null.shape[1]:
        return x
    return np.asarray(x - null @ np.linalg.lstsq(null, x, rcond=None)[0])


def column_sizes(rows: Any, weight: Floats | None = None) -> Floats:
    """`sqrt(sum_s weight(s) rows(s)^2)` of each column, without overflow."""
    largest = dense(abs(rows).max(axis=0)).ravel()
    unit = np.where(largest > 0.0, largest, 1.0)
    weight = np.ones(rows.shape[0]) if weight is None else weight
    if isinstance(rows, np.ndarray):
        return np.asarray(unit * np.sqrt(weight @ (rows / unit) ** 2))
    from scipy.sparse import diags_array

    share = rows @ diags_array(1.0 / unit)
    return np.asarray(unit * np.sqrt(weight @ share.power(2)))


def dense(rows: Any) -> Floats:
    """Any matrix as a dense float64 array."""
    array: Floats = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, np.float64)
    return array


def check_width(d: int) -> None:
    """Refuse too many features for a dense (d, d) matrix before memory runs out."""
    if d > MOST_FEATURES:
        raise NoAnswerError(
            f"{d} features need dense matrices of {8e-9 * d * d:.0f} GB here; up to {MOST_FEATURES}"
            " are taken: aggregate or hash them, or learn from samples"
        )


def weighted_triangle(rows: Any, weight: Floats | None, value: Floats | None = None) -> Floats:
    """Upper triangular R of `sqrt(weight) [rows, value] = Q R`, padded with zero rows to square."""
    n, d = rows.shape
    check_width(d)
    width = d + (value is not None)
    root = np.ones(n) if weight is None else np.sqrt(weight)
    used = np.flatnonzero(root)
    R = np.zeros((0, width))
    step = max(width, _BLOCK // width)
    for low in range(0, len(used), step):
        part = used[low : low + step]
        block = dense(rows[part])
        if value is not None:
            block = np.column_stack([block, value[part]])
        R = np.asarray(np.linalg.qr(np.vstack([R, block * root[part, None]]), mode="r"))
    return np.vstack([R, np.zeros((width - len(R), width))])

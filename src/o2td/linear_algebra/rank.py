"""Which singular values count: the library's one rank rule, and what depends on it.

A matrix is equilibrated by powers of two (exact in floating point) before its rank is judged, so
that the units of features do not matter.
"""

from __future__ import annotations

import numpy as np

from o2td.arrays import Floats, Ints

EPS = float(np.finfo(np.float64).eps)
COMPUTED = 16.0  # slack of a matrix whose entries are themselves results of long computations


def rounding(shape: tuple[int, ...], rows: int = 0, slack: float = 1.0) -> float:
    """Singular values up to this share of the largest are rounding error: the rank leaves them out.

    `max(shape) eps`, as usual for a given matrix, or `4 sqrt(rows) eps` if it is a sum over more
    rows: a running sum is rounded at each of them. Measured on dependent features, in units of
    `sqrt(rows) eps`: up to 0.4 in one fit, and with updates row by row 0.1 on random data and 2.3
    if a few values are rounded the same way at every row. No system of full rank with a condition
    number up to 1e12 was taken for a singular one, with up to a million rows. `slack` multiplies
    the bound, such as `COMPUTED` if entries are results of long computations.

    >>> rounding((5, 5)) / EPS, rounding((5, 5), 10_000) / EPS
    (5.0, 400.0)
    """
    return slack * max(*shape, 4.0 * float(np.sqrt(rows))) * EPS


def count(size: Floats, shape: tuple[int, ...], rows: int = 0, slack: float = 1.0) -> int:
    """The rank: how many singular values, in falling order, are more than rounding error.

    >>> count(np.array([2.0, 1e-3, 1e-17]), (3, 3))
    2
    """
    return int(np.count_nonzero(size > rounding(shape, rows, slack) * size[0])) if len(size) else 0


def pseudo_inverse(R: Floats, ridge: float = 0.0, rows: int = 0) -> tuple[Floats, Floats]:
    """`U, W` with `(R^T R + ridge)^+ R^T = W U^T`, singular values that are rounding error left out.

    Columns of full rank are equilibrated first, which changes only the rounding.
    """
    if not R.any():
        return np.zeros((R.shape[0], 0)), np.zeros((R.shape[1], 0))
    unit = np.ldexp(1.0, -exponent(np.abs(R).max(axis=0)))
    U, s, V = triples(R * unit, rows)
    if ridge == 0.0 and len(s) == R.shape[1]:
        return U, unit[:, None] * V / s
    U, s, V = triples(R, rows)
    return U, V * (s / (s**2 + ridge))


def triples(R: Floats, rows: int) -> tuple[Floats, Floats, Floats]:
    """Singular values that count, with their vectors as columns: `R ~ U s V^T`."""
    U, s, Vt = svd(R)
    rank = count(s, R.shape, rows)
    return U[:, :rank], s[:rank], Vt[:rank].T


def condition_of(R: Floats, rows: int = 0) -> float:
    """Ratio of the extreme singular values that count, after scaling columns to one size."""
    if not R.any():
        return np.inf
    s = triples(np.ldexp(R, -exponent(np.abs(R).max(axis=0))), rows)[1]
    return float(s[0] / s[-1])


def rank_of(A: Floats, rows: int = 0) -> tuple[int, float]:
    """Rank of the equilibrated matrix and its condition number, infinite if rank-deficient.

    >>> rank_of(np.array([[1.0, 1e9], [1.0, 1e9]]))
    (1, inf)
    """
    s = svd(equilibrate(A)[0])[1]
    rank = count(s, A.shape, rows)
    return rank, float(s[0] / s[-1]) if rank == A.shape[1] else np.inf


def equilibrate(A: Floats, by_row: bool = True) -> tuple[Floats, Ints, Ints]:
    """`B = 2^-r A 2^-c` with the largest entry of each column, and of each row, near one."""
    B, rows, columns = A, np.zeros(A.shape[0], np.int64), np.zeros(A.shape[1], np.int64)
    for _ in range(3):
        if by_row:
            step = exponent(np.abs(B).max(axis=1))
            B, rows = np.ldexp(B, -step[:, None]), rows + step
        step = exponent(np.abs(B).max(axis=0))
        B, columns = np.ldexp(B, -step), columns + step
    return B, rows, columns


def exponent(x: Floats) -> Ints:
    """The power of two next above each entry."""
    return np.frexp(x)[1].astype(np.int64)


def top(x: Floats) -> int:
    """The exponent of the largest entry, 0 if all are zero."""
    largest = float(np.abs(x).max(initial=0.0))
    return int(np.frexp(largest)[1]) if largest > 0.0 else 0


def svd(A: Floats, full: bool = False) -> tuple[Floats, Floats, Floats]:
    """Singular values by divide and conquer or, if that fails, by QR."""
    from scipy.linalg import svd as decompose

    try:
        return decompose(A, full_matrices=full, check_finite=False)
    except np.linalg.LinAlgError:
        return decompose(A, full_matrices=full, check_finite=False, lapack_driver="gesvd")

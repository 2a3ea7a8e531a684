"""Systems whose matrix is sparse: LU where the matrix is regular, else LSMR's minimum-norm answer."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from o2td.arrays import Floats
from o2td.linear_algebra.rank import EPS, rounding, top
from o2td.linear_algebra.solving import POOR, Solution, backward_error, conclude

_PASSES = 3
_LARGER = 4  # powers of two


def solve_sparse(
    A: Any, b: Floats, rows: int = 0, counts: Mapping[str, int] | None = None
) -> Solution:
    """`A theta = b` for a sparse `A` that is a sum over `rows`, never made dense.

    `rank` is the size where LU succeeds, else the number of rows or columns that are not empty (an
    upper bound: the rank proper would need a dense factorisation).

    >>> from scipy.sparse import csr_array
    >>> A = csr_array([[2.0, 0.0], [0.0, 4.0]])
    >>> solve_sparse(A, np.array([2.0, 2.0])).theta
    array([1. , 0.5])
    """
    from scipy.sparse import csc_array, diags_array
    from scipy.sparse.linalg import LinearOperator, onenormest, splu

    A = csc_array(A)
    if not A.nnz or not A.data.any():
        return conclude(np.zeros(A.shape[1]), "no data", 0, np.inf, float(bool(b.any())), 0, counts)
    if A.shape[0] != A.shape[1]:
        return _smallest(A, b, counts)
    down = _scale(abs(A).max(axis=1))
    half = diags_array(down) @ A
    columns = _scale(abs(half).max(axis=0))
    scaled = csc_array(half @ diags_array(columns))
    factor: Any = None
    condition = np.inf
    with contextlib.suppress(RuntimeError):  # an exactly singular matrix
        factor = splu(scaled)
        inverse = LinearOperator(
            A.shape, factor.solve, rmatvec=lambda v: factor.solve(v, "T"), dtype=np.float64
        )
        # onenormest starts from random vectors; an estimate within a small factor is all we report
        condition = float(onenormest(scaled) * onenormest(inverse))
    smallest: Solution | None = None
    if not condition * max(10.0 * EPS, rounding((1,), rows)) < 1.0:
        smallest = _smallest(A, b, counts)
        if smallest.status != "not converged" or not np.isfinite(condition):
            return smallest
    y = factor.solve(down * b)
    y = y + factor.solve(down * b - scaled @ y)
    theta = columns * y
    if smallest is not None and top(theta) > top(smallest.theta) + _LARGER:
        return smallest  # what LU found is one of many, and far from the smallest
    status = "ok" if condition * POOR <= 1.0 else "ill-conditioned"
    error = backward_error(A, theta, b)
    return conclude(theta, status, A.shape[1], condition, error, 0, counts)


def _smallest(A: Any, b: Floats, counts: Mapping[str, int] | None) -> Solution:
    """The minimum-norm answer by LSMR, refined: each pass solves for what the last one left."""
    from scipy.sparse.linalg import lsmr

    unit = A.copy()
    unit.data = np.ldexp(A.data, -top(A.data))
    right, shift = np.ldexp(b, -top(b)), top(b) - top(A.data)
    theta, iterations, stop = np.zeros(A.shape[1]), 0, 0
    limit = 10 * max(A.shape)
    for _ in range(_PASSES):
        left = right - unit @ theta
        found = lsmr(unit, left, atol=1e-14, btol=1e-14, conlim=0.0, maxiter=limit)
        theta, stop, iterations = theta + found[0], found[1], iterations + int(found[2])
        if stop == 7:
            break
    theta = np.ldexp(theta, shift)
    rank = min(int(np.count_nonzero(np.diff(form.indptr))) for form in (A.tocsr(), A.tocsc()))
    status = "not converged" if stop == 7 else "minimum norm"
    error = backward_error(A, theta, b)
    return conclude(theta, status, rank, np.inf, error, iterations, counts)


def _scale(largest: Any) -> Floats:
    """Powers of two that bring each largest entry near one."""
    top = np.asarray(largest.toarray() if hasattr(largest, "toarray") else largest).ravel()
    return np.ldexp(1.0, -np.where(top > 0.0, np.frexp(top)[1], 0))

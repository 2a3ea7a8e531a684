"""Systems whose matrix is sparse: LU where the matrix is regular, else LSMR's minimum-norm answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from o2td.solvers.linear import EPS, Floats, Solution, backward_error, conclude


def solve_sparse(A: Any, b: Floats, ridge: float, counts: Mapping[str, int] | None) -> Solution:
    """`(A + ridge I) theta = b` for a sparse square `A`, never made dense.

    `rank` is the size where LU succeeds, else the number of rows that are not empty (an upper bound:
    the rank proper would need a dense factorisation).

    >>> from scipy.sparse import csr_array
    >>> solve_sparse(csr_array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 2.0]), 0.0, None).theta
    array([1. , 0.5])
    """
    from scipy.sparse import csc_array, diags_array, eye_array
    from scipy.sparse.linalg import LinearOperator, onenormest, splu

    A = csc_array(A + ridge * eye_array(A.shape[0])) if ridge else csc_array(A)
    if not A.nnz or not A.data.any():
        return conclude(np.zeros(A.shape[1]), "no data", 0, np.inf, float(bool(b.any())), 0, counts)
    rows = _scale(abs(A).max(axis=1))
    half = diags_array(rows) @ A
    columns = _scale(abs(half).max(axis=0))
    scaled = csc_array(half @ diags_array(columns))
    try:
        factor: Any = splu(scaled)
        inverse = LinearOperator(
            A.shape, factor.solve, rmatvec=lambda v: factor.solve(v, "T"), dtype=np.float64
        )
        # onenormest starts from random vectors; an estimate within a small factor is all we report
        condition = float(onenormest(scaled) * onenormest(inverse))
    except RuntimeError:
        condition = np.inf
    if not condition < 1.0 / (10.0 * EPS):
        return _smallest(A, b, counts)
    y = factor.solve(rows * b)
    y = y + factor.solve(rows * b - scaled @ y)
    theta = columns * y
    status = "ok" if condition <= 1e12 else "ill-conditioned"
    error = backward_error(A, theta, b)
    return conclude(theta, status, A.shape[1], condition, error, 0, counts)


def _smallest(A: Any, b: Floats, counts: Mapping[str, int] | None) -> Solution:
    from scipy.sparse.linalg import lsmr

    theta, stop, iterations = lsmr(A, b, atol=1e-14, btol=1e-14, conlim=0.0, maxiter=10 * len(b))[
        :3
    ]
    rank = int(np.count_nonzero(np.diff(A.tocsr().indptr)))
    status = "not converged" if stop == 7 else "minimum norm"
    error = backward_error(A, theta, b)
    return conclude(theta, status, rank, np.inf, error, int(iterations), counts)


def _scale(largest: Any) -> Floats:
    """Powers of two that bring each largest entry near one."""
    top = np.asarray(largest.toarray() if hasattr(largest, "toarray") else largest).ravel()
    return np.ldexp(1.0, -np.where(top > 0.0, np.frexp(top)[1], 0))

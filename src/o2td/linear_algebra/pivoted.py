"""Rank and null spaces of a large matrix by pivoted QR, if that is conclusive.

`A P = Q [[R_11, R_12], [0, R_22]]`. A has as many singular values above a bound as `R_11` has
columns if `R_22` is below the bound and the smallest singular value of `R_11` above it. This takes
a third of the time of singular values; if it is inconclusive, these are needed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from o2td.arrays import Floats

Map = Callable[[Floats], Floats]

_SMALL = 256  # columns up to which singular values cost little
_SURE = 3.0  # norms are estimates, some per cent too small
_STEPS = 12


class Pivoted:
    """A matrix of rank `rank`, with bases of its null space and its left null space."""

    def __init__(
        self, factor: Floats, scale: Floats, order: npt.NDArray[np.intp], rank: int, norm: float
    ) -> None:
        from scipy.linalg import solve_triangular

        m, n = factor.shape
        self.rank, self._order = rank, order
        self._factor, self._scale = factor[:, : len(scale)], scale
        self._R = factor[:rank, :rank]
        self.left = self._turned(np.eye(m, m - rank, -rank), "N")
        self.right = np.zeros((n, n - rank))
        self.right[order[:rank]] = -solve_triangular(self._R, factor[:rank, rank:])
        self.right[order[rank:]] = np.eye(n - rank)
        self.condition = np.inf
        if rank == m:
            triangle = np.asarray(np.linalg.qr(np.triu(factor).T, mode="r"))
            self.condition = norm * _inverse_norm(triangle)

    def solution(self, b: Floats) -> Floats:
        """A solution with as many zeros as there are null vectors."""
        from scipy.linalg import solve_triangular

        x = np.zeros(len(self._order))
        turned = self._turned(b[:, None], "T")[: self.rank, 0]
        x[self._order[: self.rank]] = solve_triangular(self._R, turned)
        return x

    def _turned(self, columns: Floats, letter: str) -> Floats:
        """`Q` times columns, or its transpose."""
        from scipy.linalg.lapack import dormqr

        given, work = np.asfortranarray(columns), 64 * max(1, columns.shape[1]) + 4096
        return np.asarray(dormqr("L", letter, self._factor, self._scale, given, work)[0])


def pivoted(A: Floats, tolerance: float) -> Pivoted | None:
    """The factors of a matrix that is certainly rank-deficient; None for any other, or a small one.

    Singular values up to `tolerance` times the largest count as zero.

    >>> lacking = np.diag(np.append(np.ones(299), 1e-17))
    >>> pivoted(lacking, 1e-13).rank, pivoted(np.eye(300), 1e-13) is None
    (299, True)
    """
    from scipy.linalg.lapack import dgeqp3

    m, n = A.shape
    if min(m, n) <= _SMALL:
        return None
    factor, order, scale, _, info = dgeqp3(np.array(A, order="F"), lwork=66 * n)
    norm = _norm(lambda v: A @ v, lambda v: A.T @ v, n)
    bound = tolerance * norm
    rank = int(np.count_nonzero(np.abs(factor.diagonal()) > bound))
    if info or rank == n:
        return None
    rest = np.triu(factor[rank : min(m, n), rank:])
    beyond = _norm(lambda v: rest @ v, lambda v: rest.T @ v, n - rank)
    if not (_SURE * beyond < bound < 1.0 / (_SURE * _inverse_norm(factor[:rank, :rank]))):
        return None
    return Pivoted(factor, scale, order - 1, rank, norm)


def _inverse_norm(R: Floats) -> float:
    """`|R^-1|` of the upper triangle of R."""
    from scipy.linalg import solve_triangular

    return _norm(
        lambda v: solve_triangular(R, v, trans="T"), lambda v: solve_triangular(R, v), len(R)
    )


def _norm(apply: Map, adjoint: Map, n: int) -> float:
    """The largest singular value by the power method: a slight underestimate."""
    v = np.random.default_rng(0).standard_normal(n)
    size = 0.0
    for _ in range(_STEPS):
        v = v / (float(np.linalg.norm(v)) or 1.0)
        w = apply(v)
        size = float(np.linalg.norm(w))
        v = adjoint(w)
    return size

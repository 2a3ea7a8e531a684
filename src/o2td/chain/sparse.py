"""`(I - K)^-1` for a sparse `K`, many right-hand sides at a time, checked by residuals.

Methods are tried in order of their need for memory: BiCGSTAB (van der Vorst 1992), which random
transitions suit, then the same with an incomplete LU, which long thin chains suit, then sparse LU.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arrays import Floats
from o2td.errors import NoAnswerError

_BACKWARD = 1e-12  # accepted |b - (I - K) x| / (|b| + |x|)
_RESIDUAL = 1e-13  # residual at which an iteration ends, as a share of |b|
_ITERATIONS = 300  # of BiCGSTAB, a few milliseconds each per column at 100,000 states
_FEW = 3  # columns that are solved one by one


class SparseInverse:
    """`(I - K)^-1`, and its transpose, as a map of columns."""

    def __init__(self, K: Any) -> None:
        from scipy.sparse import csr_array, eye_array

        self._A = csr_array(eye_array(K.shape[0]) - K)
        self._method = 0
        self._factor: dict[int, Any] = {}

    def __call__(self, B: Floats, transposed: bool) -> Floats:
        """`X` with `(I - K) X = B`, or with `(I - K)^T X = B`."""
        from scipy.sparse import csr_array

        A = csr_array(self._A.T) if transposed else self._A
        columns = B.reshape(len(B), -1)
        X = np.empty_like(columns)
        done = self._together(A, columns, X)
        while done < columns.shape[1]:
            part = slice(done, done + self._width(columns.shape[1] - done))
            X[:, part] = self._block(A, columns[:, part], transposed)
            done = part.stop
        return X.reshape(B.shape)

    def _together(self, A: Any, columns: Floats, X: Floats) -> int:
        """Solve blocks of columns in as many threads as processors; returns how many are solved."""
        from o2td.chain.bicgstab_passes import WIDTH

        whole = columns.shape[1] - columns.shape[1] % WIDTH
        if self._method > 0 or whole <= WIDTH:
            return 0

        def solved(low: int) -> bool:
            part = slice(low, low + WIDTH)
            found = self._attempt(A, columns[:, part], False)
            if found is not None:
                X[:, part] = found
            return found is not None

        # If the first block fails, the others would too.
        if not solved(0):
            return 0
        starts = range(WIDTH, whole, WIDTH)
        with ThreadPoolExecutor(_processors()) as pool:
            good = list(pool.map(solved, starts))
        return whole if all(good) else WIDTH * (1 + good.index(False))

    def _width(self, left: int) -> int:
        """How many of the `left` columns to solve next."""
        if self._method == 1 or left <= _FEW:
            return 1
        from o2td.chain.bicgstab_passes import WIDTH

        return min(WIDTH, left)

    def _block(self, A: Any, B: Floats, transposed: bool) -> Floats:
        while self._method < 3:
            X = self._attempt(A, B, transposed)
            if X is not None:
                return X
            # A method that failed for one block is not tried for the others.
            self._method += 1
        raise NoAnswerError(
            "the sum over time has no answer: the system is singular to working precision, or too"
            " near to it; give a discount below 1, or states where episodes end"
        )

    def _attempt(self, A: Any, B: Floats, transposed: bool) -> Floats | None:
        """One solve with up to two corrections; None if a residual stays too large."""
        X, left = np.zeros_like(B), B.copy()
        size = _lengths(B)
        for _ in range(3):
            good = _lengths(left) <= _BACKWARD * (size + _lengths(X))
            if good.all():
                return X
            left[:, good] = 0.0  # a finished column stays as it is
            change = self._approximate(A, left, transposed)
            if change is None or not np.isfinite(change).all():
                return None
            X = X + change
            left = B - A @ X
        return X if (_lengths(left) <= _BACKWARD * (size + _lengths(X))).all() else None

    def _approximate(self, A: Any, B: Floats, transposed: bool) -> Floats | None:
        if self._method == 0:
            return _side_by_side(A, B) if B.shape[1] > _FEW else _one_by_one(A, B)
        if self._method not in self._factor:
            self._factor[self._method] = self._factorise(self._method)
        factor = self._factor[self._method]
        if factor is None:
            return None
        letter = "T" if transposed else "N"
        if self._method == 2:
            return np.asarray(factor.solve(np.ascontiguousarray(B), letter))
        return _one_by_one(A, B, lambda v: factor.solve(v, letter))

    def _factorise(self, method: int) -> Any:
        from scipy.sparse import csc_array
        from scipy.sparse.linalg import spilu, splu

        try:
            if method == 1:
                return spilu(csc_array(self._A), drop_tol=1e-5, fill_factor=20)
            return splu(csc_array(self._A))
        except RuntimeError:
            return None


def iterated(A: Any, b: Floats) -> Floats | None:
    """`x` with `A x = b` by BiCGSTAB, or None if it does not get there.

    >>> from scipy.sparse import csr_array
    >>> iterated(csr_array([[1.0, -0.5], [0.0, 0.5]]), np.array([0.0, 1.0])).round(12)
    array([1., 2.])
    """
    from scipy.sparse import csr_array

    matrix, given = csr_array(A), np.asarray(b, dtype=np.float64)[:, None]
    x = _one_by_one(matrix, given)
    if x is None or not np.isfinite(x).all():
        return None
    near = _lengths(given - matrix @ x) <= _BACKWARD * (_lengths(given) + _lengths(x))
    return x[:, 0] if near.all() else None


def _processors() -> int:
    """The number of processors this process may use, or OMP_NUM_THREADS."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    if told.isdigit() and int(told) > 0:
        return int(told)
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def _lengths(columns: Floats) -> Floats:
    return np.asarray(np.sqrt(np.einsum("sj,sj->j", columns, columns)))


def _one_by_one(A: Any, B: Floats, guess: Any = None) -> Floats | None:
    """BiCGSTAB column by column; None if it does not converge."""
    from scipy.sparse.linalg import LinearOperator, bicgstab

    M = None if guess is None else LinearOperator(A.shape, guess)
    X = np.empty_like(B)
    for j in range(B.shape[1]):
        b = np.ascontiguousarray(B[:, j])
        with np.errstate(all="ignore"):  # the result is checked by its residual
            X[:, j], info = bicgstab(A, b, rtol=_RESIDUAL, atol=0.0, maxiter=_ITERATIONS, M=M)
        if info != 0:
            return None
    return X


def _side_by_side(A: Any, B: Floats) -> Floats | None:
    """BiCGSTAB on up to `WIDTH` columns at once; one that has converged or broken down rests.

    None if some have not converged. A breakdown is left to the next correction.
    """
    from o2td.chain import bicgstab_passes as passes

    n, k = B.shape
    R = np.zeros((n, passes.WIDTH))
    R[:, :k] = B
    X, P, V, T = (np.zeros_like(R) for _ in range(4))
    shadow = R.copy()
    rho, alpha, omega, turned, own, size = (np.zeros(passes.WIDTH) for _ in range(6))
    beta = np.zeros(passes.WIDTH)
    rho[:k] = _lengths(B) ** 2
    goal = _RESIDUAL**2 * rho
    moving = rho > 0.0
    matrix = (A.indptr, A.indices, A.data)
    for _ in range(_ITERATIONS):
        if not moving.any():
            return np.ascontiguousarray(X[:, :k])
        passes.turn(P, R, V, beta, omega)
        passes.multiply(*matrix, P, shadow, V, turned, own)
        alpha = _quotient(rho, turned, moving)
        passes.shorten(R, V, alpha, size)
        passes.multiply(*matrix, R, R, T, turned, own)
        omega = _quotient(turned, own, moving)
        before = rho.copy()
        passes.step(X, P, R, T, shadow, alpha, omega, rho, size)
        # The recurrence ends where a divisor vanishes.
        moving &= (size > goal) & (alpha != 0.0) & (omega != 0.0)
        beta = _quotient(rho * alpha, before * omega, moving)
        moving &= beta != 0.0
    return None


def _quotient(top: Floats, bottom: Floats, where: npt.NDArray[np.bool_]) -> Floats:
    """`top / bottom`, 0 where it is not wanted or not defined."""
    with np.errstate(all="ignore"):
        ratio = np.where(where, top / bottom, 0.0)
    return np.asarray(np.where(np.isfinite(ratio), ratio, 0.0))

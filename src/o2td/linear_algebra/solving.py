"""One robust way to solve `A theta = b`, with an account of how it went.

The system is equilibrated by powers of two (exact in floating point), so that features in any
units, and matrices near under- or overflow, are solved alike. A well-posed system is solved by LU
with one step of refinement. Where the condition number leaves no digit, the rank is taken from the
singular values of the equilibrated matrix (see `rounding` for which of them count; not needed for
large matrices whose rank a pivoted QR factorisation shows), and the answer is the minimum-norm
least-squares solution in the *original* variables: `theta = A^+ b` for the nearest matrix of that
rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from o2td.arrays import Floats, Ints, as_numbers, freeze
from o2td.linear_algebra.pivoted import pivoted
from o2td.linear_algebra.rank import equilibrate, exponent, rounding, svd, top

POOR = 1e-12  # a reciprocal condition below this leaves four digits or fewer
_NOTHING = -2000  # a power of two below which numbers vanish
_DOUBT = 10.0  # multiple of rounding: below this the singular values decide, not LU

MESSAGES = {
    "ok": "solved",
    "ill-conditioned": "solved, but the condition number leaves few digits: add ridge or drop"
    " features that nearly repeat others",
    "minimum norm": "the system is singular: of all answers that fit equally well this is a smallest"
    " one; more data, fewer features or ridge would make it unique",
    "no data": "no informative rows were seen: theta is zero",
    "not converged": "the search ended before its tolerance was met: raise max_iterations or"
    " tolerance",
    "infeasible": "no theta satisfies the constraint: this one comes nearest",
    "overflow": "theta is too large for floating point: scale the features or rewards",
}


@dataclass(frozen=True, eq=False)
class Solution:
    """A solution and how it was found.

    `status` is one of "ok", "ill-conditioned", "minimum norm", "no data", "not converged",
    "infeasible", "overflow". `rank` and `condition` are of the equilibrated system, `residual` is
    `||b - A theta|| / (||A|| ||theta|| + ||b||)`. `iterations` counts those of an iterative solver,
    `counts` what was left out or filled in, by name. `message` says all of this in a sentence, with a
    remedy. `theta` is read-only.
    """

    theta: Floats
    status: str
    rank: int
    condition: float
    residual: float
    message: str
    iterations: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "theta", freeze(as_numbers("theta", self.theta)))

    def __reduce__(self) -> tuple[Any, ...]:  # copies are rebuilt, so they are read-only too
        return type(self), tuple(vars(self).values())


def conclude(
    theta: Floats,
    status: str,
    rank: int,
    condition: float,
    residual: float,
    iterations: int = 0,
    counts: Mapping[str, int] | None = None,
) -> Solution:
    """A `Solution` with the sentence that belongs to its status and counts."""
    if not np.isfinite(theta).all():
        status = "overflow"
    counts = {name: number for name, number in (counts or {}).items() if number}
    notes = "".join(f"; {number} {name}" for name, number in counts.items())
    message = MESSAGES[status] + notes
    return Solution(theta, status, rank, condition, residual, message, iterations, counts)


def solve(
    A: Any,
    b: Floats,
    ridge: float = 0.0,
    counts: Mapping[str, int] | None = None,
    triangular: bool = False,
    rows: int = 0,
) -> Solution:
    """`theta` with `(A + ridge I) theta = b`, in the least-squares sense if there is none.

    `triangular`: A is the triangle of a least-squares problem, whose rows must keep their sizes: a
    small last row is what says that the columns nearly repeat each other. `rows`: how many rows were
    summed up to A, which says how large its rounding errors are.

    >>> solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 2.0])).theta
    array([1. , 0.5])
    >>> answer = solve(np.ones((2, 2)), np.ones(2))
    >>> answer.status, answer.rank, answer.theta.round(12)
    ('minimum norm', 1, array([0.5, 0.5]))
    """
    dense = isinstance(A, np.ndarray)
    if ridge and dense:
        A = A + ridge * np.eye(A.shape[0])
    elif ridge:
        from scipy.sparse import eye_array

        A = A + ridge * eye_array(A.shape[0], format="csr")
    if A.shape[1] == 0:
        return conclude(np.zeros(0), "ok", 0, 1.0, 0.0, 0, counts)
    filled = (A.any(axis=k) if dense else (A != 0.0).sum(axis=k) for k in (1, 0))
    row, column = (np.flatnonzero(number) for number in filled)
    if not len(row):
        return conclude(np.zeros(A.shape[1]), "no data", 0, np.inf, float(bool(b.any())), 0, counts)
    if len(row) < A.shape[0] or len(column) < A.shape[1]:
        part = solve(A[row][:, column], b[row], 0.0, None, triangular, rows)
        return _embedded(part, A, b, column, counts)
    if not dense:
        from o2td.linear_algebra.sparse import solve_sparse

        return solve_sparse(A, b, rows, counts)
    with np.errstate(over="ignore", under="ignore"):
        theta, status, rank, condition = _equilibrated(A, b, not triangular, rows)
        return conclude(theta, status, rank, condition, backward_error(A, theta, b), 0, counts)


def _embedded(
    part: Solution, A: Any, b: Floats, column: Any, counts: Mapping[str, int] | None
) -> Solution:
    """The solution of the whole from that without empty rows and columns.

    Weights of empty columns are 0 in the minimum-norm solution, and no theta changes the residual
    of empty rows.
    """
    theta = np.zeros(A.shape[1])
    theta[column] = part.theta
    told = part.rank == A.shape[1] or part.status in ("not converged", "overflow")
    status = part.status if told else "minimum norm"
    condition = np.inf if part.rank < min(A.shape) else part.condition
    error = backward_error(A, theta, b)
    return conclude(theta, status, part.rank, condition, error, part.iterations, counts)


def _equilibrated(A: Floats, b: Floats, by_row: bool, rows: int) -> tuple[Floats, str, int, float]:
    scaled, up, across = equilibrate(A, by_row)
    shift = int(np.max((exponent(b) - up)[b != 0.0], initial=-4000)) if b.any() else 0
    right = np.ldexp(b, -up - shift)
    tolerance = rounding(A.shape, rows)
    rcond, y = _lu(scaled, right)
    if rcond > _DOUBT * tolerance:
        status = "ok" if rcond >= POOR else "ill-conditioned"
        return np.ldexp(y, shift - across), status, A.shape[1], 1.0 / rcond
    answer = _minimum_norm(scaled, up, across, b, shift, tolerance)
    if rcond > 0.0 and answer[2] == A.shape[1]:  # of full rank after all: LU is more accurate
        return np.ldexp(y, shift - across), *answer[1:]
    return answer


def backward_error(A: Any, theta: Floats, b: Floats) -> float:
    """`||b - A theta|| / (||A|| ||theta|| + ||b||)`, in the largest norm, safe from overflow."""
    if not np.isfinite(theta).all():
        return np.inf
    data = A if isinstance(A, np.ndarray) else A.data
    a, t, c = (top(x) for x in (data, theta, b))
    level = max(a + t, c)
    if isinstance(A, np.ndarray):
        scaled = np.ldexp(A, -a)
    else:
        scaled = A.copy()
        scaled.data = np.ldexp(A.data, -a)
    product = np.ldexp(scaled @ np.ldexp(theta, -t), max(a + t - level, _NOTHING))
    target = np.ldexp(np.ldexp(b, -c), max(c - level, _NOTHING))
    norm = float(np.max(np.asarray(abs(scaled).sum(axis=1)))) if data.size else 0.0
    scale = norm * float(np.abs(np.ldexp(theta, -t)).max(initial=0.0))
    scale = float(np.ldexp(scale, max(a + t - level, _NOTHING))) + float(
        np.abs(target).max(initial=0.0)
    )
    return float(np.abs(target - product).max(initial=0.0)) / scale if scale > 0.0 else 0.0


def shifted(x: Floats, k: int) -> Floats:
    """`2^k x`, infinite if that is too large: `conclude` says so."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(x, k)


def _lu(A: Floats, b: Floats) -> tuple[float, Floats]:
    """Reciprocal condition number (0 if singular or not square) and the refined solution."""
    from scipy.linalg import lapack

    if A.shape[0] != A.shape[1]:
        return 0.0, b
    lu, pivots, info = lapack.dgetrf(A)
    if info:
        return 0.0, b
    rcond = float(lapack.dgecon(lu, float(np.abs(A).sum(axis=0).max()))[0])
    y = lapack.dgetrs(lu, pivots, b)[0]
    y = y + lapack.dgetrs(lu, pivots, b - A @ y)[0]
    return rcond, y


def _minimum_norm(
    A: Floats,
    rows: Ints,
    columns: Ints,
    b: Floats,
    shift: int,
    tolerance: float,
) -> tuple[Floats, str, int, float]:
    factors = pivoted(A, tolerance) or _Singular(A, tolerance)
    # Null spaces of the original matrix, from those of the equilibrated one.
    left = _basis(np.ldexp(factors.left, -(rows - rows.min())[:, None]))
    null = _basis(np.ldexp(factors.right, -(columns - columns.min())[:, None]))
    level = top(b)
    target = np.ldexp(b, -level)
    target = target - left @ (left.T @ target)
    y = factors.solution(np.ldexp(target, level - rows - shift))
    theta = np.ldexp(y, shift - columns)
    large = top(theta)
    unit = np.ldexp(theta, -large)
    theta = np.ldexp(unit - null @ (null.T @ unit), large)
    condition = factors.condition
    status = "minimum norm" if factors.rank < A.shape[1] else "ill-conditioned"
    if status == "ill-conditioned" and condition * POOR < 1.0:
        status = "ok"
    return theta, status, factors.rank, condition


class _Singular:
    """Rank, null spaces and solutions from singular values."""

    def __init__(self, A: Floats, tolerance: float) -> None:
        U, s, Vt = svd(A, full=True)
        self.rank = r = int(np.count_nonzero(s > tolerance * s[0]))
        self.condition = float(s[0] / s[-1]) if r == min(A.shape) else np.inf
        self.left, self.right = U[:, r:], Vt[r:].T
        self._U, self._s, self._V = U[:, :r], s[:r], Vt[:r].T

    def solution(self, b: Floats) -> Floats:
        """The solution of minimum norm."""
        return np.asarray(self._V @ ((self._U.T @ b) / self._s))


def _basis(N: Floats) -> Floats:
    """Orthonormal columns with the span of those of `N`."""
    if N.shape[1] == 0:
        return N
    largest = np.abs(N).max(axis=0)
    return np.linalg.qr(N / np.where(largest > 0.0, largest, 1.0))[0]

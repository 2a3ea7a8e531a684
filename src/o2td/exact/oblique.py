"""Every method is an oblique projection: the limit of its direction `X`, and its worst-case error.

A method with direction `X` (S, d) solves `X^T L Phi theta = X^T R`, so `Phi theta` is the
projection of V onto span Phi along the orthogonal complement of `L^T X` (the paper's Lemma 1). The
best direction is `X* = L^-T Xi Phi` (Lemma 2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td import chain
from o2td.arguments import unit
from o2td.arrays import Floats, as_rows, check_finite
from o2td.errors import InputError, NoAnswerError
from o2td.exact.bellman_system import BellmanSystem, finite_problem, system
from o2td.linear_algebra import check_width, dense, orthonormalizer
from o2td.problem import Problem

_SINGULAR = 1e-13  # relative to the largest singular value between two orthonormal bases


def optimal_direction(problem: Problem) -> Floats:
    """`X* = L^-T Xi Phi`, which makes the oblique projection the orthogonal one: `Delta^T X* = C`.

    >>> import numpy as np
    >>> from o2td import Problem, exact
    >>> one = np.ones((2, 1))
    >>> P = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    >>> problem = Problem(P, np.array([0.0, 1.0]), 0.5, one, one, np.ones((2, 1)))
    >>> theta = exact.oblique_fixed_point(problem, exact.optimal_direction(problem))
    >>> np.allclose(theta, exact.best_approximation(problem))
    True
    """
    check_width(finite_problem(problem).d)
    s = system(problem)
    return chain.solve_transposed(s.P_gamma, _weighted(s.phi, s.weight))


def oblique_projection(Phi: npt.ArrayLike, X: npt.ArrayLike) -> Floats:
    """`Phi (X^T Phi)^-1 X^T`: onto span Phi along the orthogonal complement of span X, (S, S).

    Dependent columns are allowed if span Phi and span X have the same dimension. Raises
    `NoAnswerError` if a function in span Phi is orthogonal to X.

    >>> import numpy as np
    >>> Phi, X = np.array([[1.0], [0.0]]), np.array([[1.0], [1.0]])
    >>> exact_projection = oblique_projection(Phi, X)
    >>> exact_projection
    array([[1., 1.],
           [0., 0.]])
    """
    Phi, X = _matrix("Phi", Phi), _matrix("X", X)
    if X.shape[:1] != Phi.shape[:1]:
        raise InputError(f"Phi and X need a row for each state, got {Phi.shape} and {X.shape}")
    if len(Phi) > chain.DENSE_LIMIT:
        raise InputError(
            f"a projection of {len(Phi)} states is a matrix of {len(Phi)}^2 entries;"
            " use oblique_fixed_point, which needs none"
        )
    F, Y = Phi @ orthonormalizer(Phi), X @ orthonormalizer(X)
    return np.asarray(F @ _solve_angles(Y.T @ F, Y.T))


def oblique_fixed_point(problem: Problem, X: npt.ArrayLike) -> Floats:
    """`theta = (X^T L Phi)^-1 X^T R`; of minimum norm where the features are dependent.

    States that the behaviour does not visit and `X` does not weight do not count. Raises
    `NoAnswerError` if the equation does not determine `Phi theta`.

    >>> import numpy as np
    >>> from o2td import Problem, exact
    >>> one = np.ones((2, 1))
    >>> P = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    >>> problem = Problem(P, np.array([0.0, 1.0]), 0.5, one, one, np.eye(2))
    >>> exact.oblique_fixed_point(problem, np.eye(2)).round(12)  # as V
    array([0.66666667, 1.33333333])
    """
    s = system(problem)
    return solve_direction(s, _direction(problem, X), s.reward)


def solve_direction(s: BellmanSystem, X: Floats, reward: Floats) -> Floats:
    """`(X^T L Phi)^-1 X^T reward`, for the problem's rewards or any others."""
    seen = s.weight > 0.0
    counts = seen | (np.abs(X).max(axis=1) > 1e-13 * np.abs(X).max())
    same = np.array_equal(counts, seen)
    basis = s.unweighted if same else orthonormalizer(s.phi, counts.astype(np.float64))
    Y = X @ orthonormalizer(X, scale=s.scale)
    N = dense(s.delta.T @ Y).T @ basis
    return np.asarray(basis @ _solve_angles(N, Y.T @ reward))


def amplification(problem: Problem, X: npt.ArrayLike) -> float:
    """`|Pi|_xi = sqrt(lambda_max(C D E D^T))`: the worst RMSE / best RMSE over all rewards.

    `D = (X^T L Phi)^-1`, `E = X^T L Xi^-1 L^T X`. It is computed as one over the cosine of the
    largest angle between span Phi and span `Xi^-1 L^T X` in the norm of `xi`, hence at least 1, and
    1 at `X*`. Infinite if `L^T X` weights a state that is never visited.

    >>> import numpy as np
    >>> from o2td import Problem, exact
    >>> one = np.ones((2, 1))
    >>> P = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    >>> problem = Problem(P, np.zeros(2), 0.5, one, one, np.array([[1.0], [2.0]]))
    >>> round(exact.amplification(problem, exact.optimal_direction(problem)), 12)
    1.0
    """
    s, X = system(problem), _direction(problem, X)
    Z = X - s.P_gamma.T @ X
    seen = s.weight > 0.0
    if np.abs(Z[~seen]).max(initial=0.0) > 1e-12 * np.abs(Z).max():
        return float("inf")
    root = np.sqrt(s.weight)[:, None]
    Z = np.divide(Z, root, out=np.zeros_like(Z), where=seen[:, None])
    Z = Z @ orthonormalizer(Z, scale=s.scale)
    Z *= root
    N = dense(s.phi.T @ Z).T @ s.basis
    _check_ranks(N)
    cosine = float(np.linalg.svd(N, compute_uv=False)[-1])
    # Cosines are at most one; rounding may exceed that slightly.
    return max(1.0, 1.0 / cosine) if cosine > _SINGULAR else float("inf")


def directions(problem: Problem, trace: float = 0.9) -> dict[str, Floats]:
    """The direction `X` of each method that has one, by name; `trace` is the lambda besides 0.

    >>> import numpy as np
    >>> from o2td import Problem, exact
    >>> one = np.ones((2, 1))
    >>> P = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    >>> problem = Problem(P, np.zeros(2), 0.5, one, one, np.array([[1.0], [2.0]]))
    >>> for name, X in exact.directions(problem).items():
    ...     print(name, round(exact.amplification(problem, X), 4))
    TD(0) 1.118
    TD(0.9) 1.0008
    ETD(0) 1.118
    ETD(0.9) 1.0008
    residual gradient 1.6667
    O2TD(0), state 1.6667
    O2TD(0.9), state 1.1577
    O2TD(0), moments 1.6667
    O2TD(0.9), moments 1.1577
    best 1.0
    """
    return {name: build() for name, build in recipes(problem, trace).items()}


def recipes(problem: Problem, trace: float) -> dict[str, Callable[[], Floats]]:
    """Functions that build each of `directions`, to build them one at a time."""
    s, trace = system(problem), unit("trace", trace)
    xi, interested = s.weight, s.weight * problem.interest
    followon = chain.solve_transposed(s.P_gamma, interested)
    state, moments = _omegas(problem, s)

    def along(weight: Floats) -> Floats:
        here = _weighted(s.phi, weight)
        return chain.solve_transposed(trace * s.P_gamma, here) if trace != 0.0 else here

    emphasis = trace * interested + (1.0 - trace) * followon
    return {
        "TD(0)": lambda: _weighted(s.phi, xi),
        f"TD({trace:g})": lambda: along(xi),
        "ETD(0)": lambda: _weighted(s.phi, followon),
        f"ETD({trace:g})": lambda: along(emphasis),
        "residual gradient": lambda: _weighted(s.delta, xi),
        "O2TD(0), state": lambda: _weighted(s.phi, state * xi),
        f"O2TD({trace:g}), state": lambda: along(state * xi),
        "O2TD(0), moments": lambda: _weighted(s.phi, moments * xi),
        f"O2TD({trace:g}), moments": lambda: along(moments * xi),
        "best": lambda: optimal_direction(problem),
    }


def _omegas(problem: Problem, s: BellmanSystem) -> tuple[Floats, Floats]:
    """`omega(s)` from the mean of `rho Delta phi`, and from the moments of `Delta phi`."""
    p = problem.pairs
    square = _row_dots(s.phi, s.phi)
    along = _row_dots(s.delta, s.phi)
    followed = problem.target[p.state, p.action] * p.probability
    entered = np.bincount(
        p.state, followed * p.discount**2 * square[p.next_state], minlength=problem.n_states
    )
    # E|phi - gamma phi'|^2 = |phi|^2 - 2 E[gamma phi.phi'] + E|gamma phi'|^2
    second = square - 2.0 * (square - along) + entered
    size = square + entered
    return _ratio(along, _row_dots(s.delta, s.delta), size), _ratio(along, second, size)


def _ratio(top: Floats, bottom: Floats, size: Floats) -> Floats:
    """`top / bottom`, 0 where bottom is a difference of terms of `size` that cancel."""
    some = bottom > 1e-14 * size
    return np.divide(top, bottom, out=np.zeros_like(top), where=some)


def _row_dots(a: Any, b: Any) -> Floats:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.asarray(np.einsum("sd,sd->s", a, b))
    product = a.multiply(b) if hasattr(a, "multiply") else b.multiply(a)
    return np.asarray(product.sum(axis=1), dtype=np.float64).ravel()


def _weighted(rows: Any, weight: Floats) -> Floats:
    return np.asarray(dense(rows) * weight[:, None])


def _direction(problem: Problem, X: npt.ArrayLike) -> Floats:
    direction = _matrix("X", X)
    if len(direction) != finite_problem(problem).n_states:
        raise InputError(
            f"X has shape {direction.shape}; a direction has one row for each of the"
            f" {problem.n_states} states"
        )
    _, power = np.frexp(np.abs(direction).max(initial=0.0))
    return np.asarray(np.ldexp(direction, -power))  # only its span counts; this rounds nothing


def _matrix(name: str, value: Any) -> Floats:
    rows = as_rows(name, value)
    check_finite(name, rows)
    if rows.shape[0] == 0:
        raise InputError(f"{name} has no rows (shape {rows.shape}); pass one for each state")
    return dense(rows)


def _check_ranks(N: Floats) -> None:
    if N.shape[0] != N.shape[1]:
        raise NoAnswerError(
            f"X spans {N.shape[0]} dimensions and the features {N.shape[1]}: they must be as many;"
            " drop or add columns of X"
        )


def _solve_angles(N: Floats, B: Floats) -> Floats:
    """`N^-1 B` for N between two orthonormal bases; raises if N is singular."""
    _check_ranks(N)
    U, size, Vt = np.linalg.svd(N)
    if size[-1] <= _SINGULAR * size[0]:
        raise NoAnswerError(
            "the oblique projection does not exist: some combination of the features is orthogonal"
            " to every column of X; choose another X, or fewer features"
        )
    scaled = (U.T @ B) / (size[:, None] if B.ndim == 2 else size)
    return np.asarray(Vt.T @ scaled)

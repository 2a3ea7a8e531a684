"""How far a `theta` is from the truth, by four measures, all weighted by `xi`.

`xi` is restricted to the states in which the target is followed, and renormalised. Interest plays
no part: it changes what ETD learns, not what is measured.

`form="dann"` computes the Bellman errors as the code of Dann, Neumann & Peters (2014), "Policy
Evaluation with Temporal Differences", does (tdlearn, `task.py`, class
`LinearDiscreteValuePredictionTask`): the Bellman operator is the *behaviour's*, the projection is
weighted by the *target's* long-run distribution, and the result by the behaviour's. On-policy the
two forms agree. MSE needs no such form, since both definitions are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from o2td import chain
from o2td.arguments import choice
from o2td.arrays import Floats, as_numbers
from o2td.errors import InputError, NoAnswerError
from o2td.exact.bellman_system import finite_problem, system
from o2td.linear_algebra import Compressed, compress, dense, orthonormalizer
from o2td.problem import Problem

_TINY = 1e-290  # a square below this is rounding, or has underflowed
_MOST_POWER = 1023  # of two, as a number


def mse(problem: Problem, theta: npt.ArrayLike) -> Any:
    """`|Phi theta - V|^2_xi`, the mean squared error. A `theta` of shape (d, k) gives k numbers.

    >>> import numpy as np
    >>> from o2td import Problem, exact
    >>> one = np.ones((2, 1))
    >>> P = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    >>> problem = Problem(P, np.array([0.0, 1.0]), 0.0, one, one, np.eye(2))
    >>> exact.mse(problem, [0.0, 0.0])
    0.5
    """
    s = system(problem)
    return _square(_value_error(problem, theta), s.weight)


def msbe(problem: Problem, theta: npt.ArrayLike, form: str = "target") -> Any:
    """`|R - L Phi theta|^2_xi`, the mean squared Bellman error.

    >>> import numpy as np
    >>> from o2td import Problem, exact
    >>> one = np.ones((2, 1))
    >>> P = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    >>> problem = Problem(P, np.array([0.0, 1.0]), 0.5, one, one, np.eye(2))
    >>> exact.msbe(problem, [0.0, 0.0])
    0.5
    """
    return _square(_bellman_error(problem, theta, form), system(problem).weight)


def mspbe(problem: Problem, theta: npt.ArrayLike, form: str = "target") -> Any:
    """`|Pi (R - L Phi theta)|^2_xi`, Pi the `xi`-weighted projection onto span Phi; at most MSBE.

    >>> import numpy as np
    >>> from o2td import Problem, exact
    >>> one = np.ones((2, 1))
    >>> P = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    >>> problem = Problem(P, np.array([0.0, 1.0]), 0.5, one, one, np.ones((2, 1)))
    >>> round(exact.mspbe(problem, [0.0]), 12), round(exact.mspbe(problem, [1.0]), 12)
    (0.25, 0.0)
    """
    return _square(*_projected_error(problem, theta, form))


def rmse(problem: Problem, theta: npt.ArrayLike) -> Any:
    """`sqrt(mse)`.

    >>> from o2td import domains, exact
    >>> baird = domains.baird()
    >>> round(exact.rmse(baird, baird.initial_theta), 6)
    5.318432
    """
    return _root(_value_error(problem, theta), system(problem).weight)


def rmsbe(problem: Problem, theta: npt.ArrayLike, form: str = "target") -> Any:
    """`sqrt(msbe)`.

    >>> from o2td import domains, exact
    >>> baird = domains.baird()
    >>> round(exact.rmsbe(baird, baird.initial_theta), 6)
    8.221408
    """
    return _root(_bellman_error(problem, theta, form), system(problem).weight)


def rmspbe(problem: Problem, theta: npt.ArrayLike, form: str = "target") -> Any:
    """`sqrt(mspbe)`.

    >>> from o2td import domains, exact
    >>> baird = domains.baird()
    >>> round(exact.rmspbe(baird, baird.initial_theta), 6)
    8.221408
    """
    return _root(*_projected_error(problem, theta, form))


def suboptimality(problem: Problem, theta: npt.ArrayLike) -> Any:
    """`RMSE(theta) / RMSE(theta*)`, at least 1. A `theta` of shape (d, k) gives k numbers.

    If the features can express V, the best error is 0: the ratio is then 1 for a `theta` that
    expresses V (up to 1e-9 of the size of V, or of 1 if V is 0) and infinite for all others.

    >>> import numpy as np
    >>> from o2td import Problem, exact
    >>> one = np.ones((2, 1))
    >>> P = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    >>> problem = Problem(P, np.array([0.0, 1.0]), 0.5, one, one, np.eye(2))
    >>> best = exact.value(problem)
    >>> exact.suboptimality(problem, best), exact.suboptimality(problem, [0, 0])
    (1.0, inf)
    """
    s = system(problem)
    error, square = rmse(problem, theta), s.best.constant
    plain = _TINY < square < np.inf  # else the square is out of range, but its root is not
    best = float(np.sqrt(square)) if plain else float(rmse(problem, s.best.center))
    size = float(_root(s.value, s.weight)) or 1.0
    if best > 1e-9 * size:
        with np.errstate(over="ignore"):
            ratio = np.maximum(1.0, np.divide(error, best))
    else:
        ratio = np.where(error <= 1e-9 * size, 1.0, np.inf)
    return float(ratio) if ratio.ndim == 0 else ratio


def quadratic(problem: Problem, objective: str, form: str = "target") -> Compressed:
    """MSE, MSBE or MSPBE as `|R (theta - center)|^2 + constant`, for repeated use."""
    s = system(problem)
    if objective == "mse":
        return s.best
    rows, value = _bellman(problem, form)
    if objective == "msbe":
        return compress(rows, value, s.weight, s.scale)
    if form == "dann":
        U_rows, U_value = _target_weighted(problem, rows, value)
        return compress(s.phi @ U_rows, s.phi @ U_value, s.weight, s.scale)
    left = s.basis.T @ dense(s.phi.T @ (rows * s.weight[:, None]))
    return compress(left, s.basis.T @ (s.phi.T @ (s.weight * value)), scale=s.scale)


def _bellman(problem: Problem, form: str) -> tuple[Any, Floats]:
    """`(I - P_gamma) Phi` and `R`, under the target, or under the behaviour for Dann's form."""
    choice("form", form, ("target", "dann"))
    s = system(problem)
    if form == "target":
        return s.delta, s.reward
    if not problem.active[s.visits > 0.0].all():
        raise InputError('form "dann" needs a target that is followed in every visited state')
    P_gamma = problem.discounted_matrix(problem.behavior)
    return s.phi - P_gamma @ s.phi, problem.expected_reward(problem.behavior)


def _target_weighted(problem: Problem, rows: Any, value: Floats) -> tuple[Floats, Floats]:
    """Coefficients of `Phi theta - Pi_mu (T Phi theta)`: `Phi (U_rows theta - U_value)`.

    `mu` is the target's long-run distribution; `Pi_mu` is the minimum-norm regression.
    """
    phi = problem.features
    mu = chain.stationary_distribution(problem.surviving_matrix(problem.target), problem.start)
    basis = orthonormalizer(phi, mu)
    left = basis @ (basis.T @ dense(phi.T @ ((phi - rows) * mu[:, None])))
    return np.eye(problem.d) - left, basis @ (basis.T @ (phi.T @ (mu * value)))


def _checked(problem: Problem, theta: npt.ArrayLike) -> Floats:
    checked = as_numbers("theta", theta)
    d = finite_problem(problem).d
    if checked.ndim not in (1, 2) or len(checked) != d:
        raise InputError(f"theta has shape {checked.shape}; expected ({d},) or ({d}, k)")
    if not np.isfinite(checked).all():
        raise InputError("theta has entries that are not finite; its errors would be too")
    return checked


def _value_error(problem: Problem, theta: npt.ArrayLike) -> Floats:
    """`Phi theta - V`, (S,) or (k, S)."""
    s = system(problem)
    return np.asarray((s.phi @ _checked(problem, theta)).T - s.value)


def _bellman_error(problem: Problem, theta: npt.ArrayLike, form: str) -> Floats:
    """`L Phi theta - R`, (S,) or (k, S)."""
    theta = _checked(problem, theta)
    rows, value = _bellman(problem, form)
    return np.asarray((rows @ theta).T - value)


def _projected_error(problem: Problem, theta: npt.ArrayLike, form: str) -> tuple[Floats, Floats]:
    """The projected Bellman error in coordinates whose weighted squares sum to MSPBE."""
    s = system(problem)
    error = _bellman_error(problem, theta, form)
    if form == "dann":
        U_rows, U_value = _target_weighted(problem, *_bellman(problem, form))
        return (s.phi @ (U_rows @ _checked(problem, theta))).T - s.phi @ U_value, s.weight
    projected = (s.basis.T @ (s.phi.T @ (error * s.weight).T)).T
    return projected, np.ones(projected.shape[-1])


def _square(error: Floats, weight: Floats) -> Any:
    """`sum_s weight(s) error(s)^2`."""
    total, unit = _scaled_square(error, weight)
    with np.errstate(over="ignore"):
        square = total * unit * unit
    if not np.isfinite(square).all():
        raise NoAnswerError(
            "the square of this error is beyond the largest number; ask for its root, or divide the"
            " rewards by some"
        )
    return float(square) if square.ndim == 0 else square


def _root(error: Floats, weight: Floats) -> Any:
    """`sqrt(sum_s weight(s) error(s)^2)`, which may be in range where the square is not."""
    total, unit = _scaled_square(error, weight)
    root = np.asarray(np.sqrt(total) * unit)
    return float(root) if root.ndim == 0 else root


def _scaled_square(error: Floats, weight: Floats) -> tuple[Any, Any]:
    """The weighted sum of squares of `error / unit`, and unit, a power of two for exactness."""
    _, power = np.frexp(np.abs(error).max(axis=-1, initial=0.0))
    unit = np.asarray(np.ldexp(1.0, np.minimum(power, _MOST_POWER)))
    return np.asarray((error.T / unit).T ** 2 @ weight), unit

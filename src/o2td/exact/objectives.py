"""How far a `theta` is from the truth, by four yardsticks, all weighted by `xi`.

`xi` is restricted to the states in which the target is followed, and renormalised. Interest does
not enter: it changes what ETD learns, not what is measured.

`form="dann"` computes the Bellman errors as the code of Dann, Neumann & Peters (2014), "Policy
Evaluation with Temporal Differences", does (tdlearn, `task.py`, class
`LinearDiscreteValuePredictionTask`): the Bellman operator is the *behaviour's*, the projection is
weighted by the *target's* long-run distribution, and the result by the behaviour's. On-policy the
two forms agree. MSE needs no such form: theirs is ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td import chain
from o2td.arrays import as_numbers
from o2td.errors import InputError
from o2td.exact.system import (
    Compressed,
    Floats,
    compress,
    dense,
    finite,
    orthonormalizer,
    system,
)
from o2td.problem import Problem

__all__ = ["msbe", "mse", "mspbe", "rmsbe", "rmse", "rmspbe", "suboptimality"]


def mse(problem: Problem, theta: Any) -> Any:
    """`|Phi theta - V|^2_xi`. A `theta` of shape (d, k) gives k figures.

    >>> import numpy as np
    >>> from o2td import Problem, exact
    >>> one = np.ones((2, 1))
    >>> P = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    >>> problem = Problem(P, np.array([0.0, 1.0]), 0.0, one, one, np.eye(2))
    >>> exact.mse(problem, [0.0, 0.0])
    0.5
    """
    s = system(problem)
    theta = _checked(problem, theta)
    return _mean_square(s.phi @ theta, s.value, s.weight)


def msbe(problem: Problem, theta: Any, form: str = "target") -> Any:
    """`|R - L Phi theta|^2_xi`, the mean squared Bellman error.

    >>> import numpy as np
    >>> from o2td import Problem, exact
    >>> one = np.ones((2, 1))
    >>> P = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    >>> problem = Problem(P, np.array([0.0, 1.0]), 0.5, one, one, np.eye(2))
    >>> exact.msbe(problem, [0.0, 0.0])
    0.5
    """
    s = system(problem)
    theta = _checked(problem, theta)
    rows, value = _bellman(problem, form)
    return _mean_square(rows @ theta, value, s.weight)


def mspbe(problem: Problem, theta: Any, form: str = "target") -> Any:
    """`|Pi (R - L Phi theta)|^2_xi`, Pi the `xi`-weighted projection onto span Phi; at most MSBE.

    >>> import numpy as np
    >>> from o2td import Problem, exact
    >>> one = np.ones((2, 1))
    >>> P = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    >>> problem = Problem(P, np.array([0.0, 1.0]), 0.5, one, one, np.ones((2, 1)))
    >>> round(exact.mspbe(problem, [0.0]), 12), round(exact.mspbe(problem, [1.0]), 12)
    (0.25, 0.0)
    """
    s = system(problem)
    theta = _checked(problem, theta)
    rows, value = _bellman(problem, form)
    if form == "dann":
        U_rows, U_value = _target_weighted(problem, rows, value)
        return _mean_square(s.phi @ (U_rows @ theta), s.phi @ U_value, s.weight)
    error = (value - (rows @ theta).T).T
    weighted = (error.T * s.weight).T
    projected = s.basis.T @ (s.phi.T @ weighted)
    return _mean_square(projected, np.zeros(len(projected)), np.ones(len(projected)))


def rmse(problem: Problem, theta: Any) -> Any:
    """`sqrt(mse)`.

    >>> from o2td import domains, exact
    >>> baird = domains.baird()
    >>> round(exact.rmse(baird, baird.initial_theta), 6)
    5.318432
    """
    return _root(mse(problem, theta))


def rmsbe(problem: Problem, theta: Any, form: str = "target") -> Any:
    """`sqrt(msbe)`.

    >>> from o2td import domains, exact
    >>> baird = domains.baird()
    >>> round(exact.rmsbe(baird, baird.initial_theta), 6)
    8.221408
    """
    return _root(msbe(problem, theta, form))


def rmspbe(problem: Problem, theta: Any, form: str = "target") -> Any:
    """`sqrt(mspbe)`.

    >>> from o2td import domains, exact
    >>> baird = domains.baird()
    >>> round(exact.rmspbe(baird, baird.initial_theta), 6)
    8.221408
    """
    return _root(mspbe(problem, theta, form))


def suboptimality(problem: Problem, theta: Any) -> float:
    """`RMSE(theta) / RMSE(theta*)`, at least 1.

    Where the features can express V the best error is 0: the ratio is then 1 for a `theta` that
    expresses it too (up to 1e-9 of the size of V, or of 1 where V is 0) and infinite for others.

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
    error, best = rmse(problem, theta), float(np.sqrt(s.best.constant))
    size = float(np.sqrt(s.weight @ s.value**2)) or 1.0
    if best > 1e-9 * size:
        return max(1.0, float(error / best))
    return 1.0 if error <= 1e-9 * size else float("inf")


def quadratic(problem: Problem, objective: str, form: str = "target") -> Compressed:
    """MSE, MSBE or MSPBE as `|R (theta - center)|^2 + constant`, for whoever needs it often."""
    s = system(problem)
    if objective == "mse":
        return s.best
    rows, value = _bellman(problem, form)
    if objective == "msbe":
        return compress(rows, value, s.weight, s.scale)
    if form == "dann":
        U_rows, U_value = _target_weighted(problem, rows, value)
        return compress(s.phi @ U_rows, s.phi @ U_value, s.weight, s.scale)
    left = s.basis.T @ dense(s.phi.T @ _scaled(rows, s.weight))
    return compress(left, s.basis.T @ (s.phi.T @ (s.weight * value)), scale=s.scale)


def _bellman(problem: Problem, form: str) -> tuple[Any, Floats]:
    """`(I - P_gamma) Phi` and `R`, under the target, or under the behaviour for Dann's form."""
    if form not in ("target", "dann"):
        raise InputError(f'form is "target" or "dann", got {form!r}')
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
    left = basis @ (basis.T @ dense(phi.T @ _scaled(phi - rows, mu)))
    return np.eye(problem.d) - left, basis @ (basis.T @ (phi.T @ (mu * value)))


def _scaled(rows: Any, weight: Floats) -> Any:
    if isinstance(rows, np.ndarray):
        return rows * weight[:, None]
    from scipy.sparse import diags_array

    return diags_array(weight) @ rows


def _checked(problem: Problem, theta: Any) -> Floats:
    checked = as_numbers("theta", theta)
    d = finite(problem).d
    if checked.ndim not in (1, 2) or len(checked) != d:
        raise InputError(f"theta has shape {checked.shape}; expected ({d},) or ({d}, k)")
    if not np.isfinite(checked).all():
        raise InputError("theta has entries that are not finite; its errors would be too")
    return checked


def _mean_square(estimate: Floats, value: Floats, weight: Floats) -> Any:
    total = (estimate.T - value) ** 2 @ weight
    return float(total) if total.ndim == 0 else total


def _root(square: Any) -> Any:
    return float(np.sqrt(square)) if isinstance(square, float) else np.sqrt(square)

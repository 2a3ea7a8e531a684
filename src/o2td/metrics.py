"""Cheap errors for many `theta`: every metric is `sqrt(|R (theta - center)|^2 + constant)`.

RMSE, RMSPBE and RMSBE are quadratic in `theta`, so a problem of any size (or any number of held-out
rows) is compressed once to a triangle `R` (d, d), and an error costs d^2 / 2 multiplications.
They are exact for finite problems and come from an independent sample for simulated ones.

`metrics.RMSE(problem)` returns an object that computes the error of any `theta`; for the error of a
single one, use `exact.rmse(problem, theta)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arguments import instance
from o2td.arrays import FeatureRows, Floats, as_numbers, as_rows, check_finite
from o2td.errors import InputError
from o2td.exact.objectives import quadratic
from o2td.linear_algebra import Compressed, compress, dense, orthonormalizer
from o2td.problem import Problem
from o2td.transitions import Transitions

__all__ = ["RMSBE", "RMSE", "RMSPBE", "Quadratic", "held_out", "held_out_rmspbe"]


@dataclass(frozen=True, eq=False)
class Quadratic:
    """`value(theta) = sqrt(|R (theta - center)|^2 + constant)`, R upper triangular.

    `R`, `center` and `constant` are plain arrays, so compiled code can read them.

    Parameters
    ----------
    name : str
        Name of the metric in results.
    """

    name: str
    R: Floats
    center: Floats
    constant: float

    def value(self, theta: npt.ArrayLike) -> Any:
        """The error of `theta` (d,), or of each column of (d, lanes).

        >>> import numpy as np
        >>> metric = held_out(np.eye(2), [1.0, 1.0])
        >>> metric.value(np.array([[1.0, 0.0], [1.0, 0.0]]))
        array([0., 1.])
        """
        theta = as_numbers("theta", theta)
        if not np.isfinite(theta).all():
            raise InputError("theta has entries that are not finite; its error would be too")
        if theta.ndim not in (1, 2) or len(theta) != len(self.center):
            raise InputError(f"theta has shape {theta.shape}; this metric has {len(self.center)}")
        error = self.R @ (theta.T - self.center).T
        total = np.sqrt(np.sum(error * error, axis=0) + self.constant)
        return float(total) if theta.ndim == 1 else total


def RMSE(problem: Problem) -> Quadratic:  # noqa: N802
    """`|Phi theta - V|_xi`, exact.

    >>> import numpy as np
    >>> from o2td import Problem
    >>> one = np.ones((2, 1))
    >>> P = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    >>> metric = RMSE(Problem(P, np.array([0.0, 1.0]), 0.5, one, one, np.ones((2, 1))))
    >>> metric.center.round(12), round(metric.value([1.0]), 6)
    (array([1.]), 0.333333)
    """
    return _named("rmse", quadratic(problem, "mse"))


def RMSPBE(problem: Problem, form: str = "target") -> Quadratic:  # noqa: N802
    """`|Pi (T Phi theta - Phi theta)|_xi`, exact; `form` as in `exact.mspbe`.

    >>> from o2td import domains
    >>> baird = domains.baird()
    >>> round(RMSPBE(baird).value(baird.initial_theta), 6)
    8.221408
    """
    return _named("rmspbe", quadratic(problem, "mspbe", form))


def RMSBE(problem: Problem, form: str = "target") -> Quadratic:  # noqa: N802
    """`|T Phi theta - Phi theta|_xi`, exact; `form` as in `exact.msbe`.

    >>> from o2td import domains
    >>> baird = domains.baird()
    >>> round(RMSBE(baird).value(baird.initial_theta), 6)
    8.221408
    """
    return _named("rmsbe", quadratic(problem, "msbe", form))


def held_out(
    phi: FeatureRows, value: npt.ArrayLike, weight: npt.ArrayLike | None = None
) -> Quadratic:
    """`sqrt(sum_t weight_t (phi_t . theta - value_t)^2 / sum_t weight_t)` over held-out rows.

    `value` holds the true value of each row's state, or an unbiased estimate such as the mean of
    roll-outs, in which case the variance of the estimates adds to `constant`.

    >>> held_out([[1.0], [1.0]], [0.0, 2.0]).value([1.0])
    1.0
    """
    rows = as_rows("phi", phi)
    check_finite("phi", rows)
    target = _numbers("value", value, rows.shape[0])
    share = np.ones(rows.shape[0])
    if weight is not None:
        share = _numbers("weight", weight, rows.shape[0])
    if (share < 0.0).any() or share.sum() <= 0.0:
        raise InputError("weight must be non-negative, and positive in some row")
    return _named("rmse", compress(rows, target, share / share.sum()))


def held_out_rmspbe(batch: Transitions) -> Quadratic:
    """RMSPBE from held-out transitions: `|C^-1/2 (b - A theta)|` with the sample's `A`, `b`, `C`.

    `A = mean rho phi (phi - gamma phi')^T`, `b = mean rho r phi`, `C = mean phi phi^T`. Its error
    falls as one over the square root of the number of rows, so use many more than for learning.
    Rows of states in which the target is not followed count here; `RMSPBE` excludes such states.

    >>> import numpy as np
    >>> batch = Transitions(np.ones((2, 1)), [0.0, 1.0], np.ones((2, 1)), 0.5)
    >>> held_out_rmspbe(batch).center.round(12)
    array([1.])
    """
    n = len(instance("batch", batch, Transitions, "held-out Transitions"))
    if n == 0:
        raise InputError("held-out transitions are empty; sample some")
    phi, d = batch.phi, batch.d
    basis = orthonormalizer(phi, np.full(n, 1.0 / n))
    A, b = np.zeros((d, d)), np.zeros(d)
    for part in batch.chunks((1 << 22) // d):
        rows, after = dense(part.phi), dense(part.next_phi)
        ends = part.discount == 0.0
        after = np.where(ends[:, None], 0.0, after) * part.discount[:, None]
        A += (rows * part.rho[:, None]).T @ (rows - after) / n
        b += rows.T @ (part.rho * part.reward) / n
    return _named("rmspbe", compress(basis.T @ A, basis.T @ b))


rmse, rmspbe, rmsbe = RMSE, RMSPBE, RMSBE  # names in version 0.1


def _named(name: str, parts: Compressed) -> Quadratic:
    if not np.isfinite(parts.constant):
        raise InputError(
            f"{name}: squares of these values are beyond the largest number; divide the rewards by"
            " some"
        )
    return Quadratic(name, parts.R, parts.center, parts.constant)


def _numbers(name: str, value: Any, n: int) -> Floats:
    array = as_numbers(name, value)
    if array.shape != (n,) or not np.isfinite(array).all():
        raise InputError(f"{name} must be {n} finite numbers, one per row; got shape {array.shape}")
    return array

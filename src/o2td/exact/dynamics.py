"""Where a learner goes on average: its fixed point, whether it gets there, and how good that is.

A learner's mean dynamics are `E[x_{t+1} - x_t] = alpha (b - A x)`, x = theta or theta stacked on w.
They converge for small `alpha` if and only if a fixed point exists, every eigenvalue of A that is
not 0 has a positive real part, and the eigenvalue 0, if there is one, has as many eigenvectors as
its multiplicity. The limit is then `A^# b + (I - A^# A) x_0`, A^# the group inverse: where A is
singular (Baird) it depends on `theta_0`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.exact.objectives import rmse, rmspbe, suboptimality
from o2td.exact.system import Floats
from o2td.exact.truth import model
from o2td.problem import Problem

__all__ = ["FixedPoint", "fixed_point"]


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """Where mean dynamics lead.

    `theta` is the limit where `stable`; else the fixed point that is moved away from, or None where
    there is none. `max_step_size` bounds the step sizes for which the mean dynamics converge (noise
    asks for smaller ones); it is 0 where none does. Errors are infinite where `theta` is None.
    """

    theta: Floats | None
    stable: bool
    eigenvalues: npt.NDArray[np.complex128]
    max_step_size: float
    rmse: float
    rmspbe: float
    suboptimality: float


def fixed_point(problem: Problem, learner: Any) -> FixedPoint:
    """The limit of a learner's mean dynamics on a problem, with its stability and its errors.

    Starts from the learner's `initial_theta`, else the problem's, else zero.
    """
    dynamics = learner.mean_dynamics(model(problem))
    A, b = np.asarray(dynamics.A, dtype=np.float64), np.asarray(dynamics.b, dtype=np.float64)
    start = np.zeros(len(b))
    start[: problem.d] = _initial_theta(problem, learner)
    x, stable, eigenvalues, step = limit(A, b, start)
    if x is None:
        nowhere = float("inf")
        return FixedPoint(None, False, eigenvalues, step, nowhere, nowhere, nowhere)
    theta = x[: problem.d]
    errors = (rmse(problem, theta), rmspbe(problem, theta), suboptimality(problem, theta))
    return FixedPoint(theta, stable, eigenvalues, step, *errors)


def limit(
    A: Floats, b: Floats, start: Floats
) -> tuple[Floats | None, bool, npt.NDArray[np.complex128], float]:
    """Limit, stability, eigenvalues and largest step size of `x += alpha (b - A x)`."""
    U, size, Vt = np.linalg.svd(A)
    rank = int((size > size[0] * len(b) * 16 * np.finfo(np.float64).eps).sum())
    eigenvalues = np.linalg.eigvals(A).astype(np.complex128)
    eigenvalues = eigenvalues[np.argsort(-np.abs(eigenvalues))]
    left, right = U[:, rank:], Vt[rank:].T
    x = Vt[:rank].T @ ((U[:, :rank].T @ b) / size[:rank])
    if np.linalg.norm(left.T @ b) > 1e-9 * np.linalg.norm(b):
        return None, False, eigenvalues, 0.0
    overlap = left.T @ right
    semisimple = rank == len(b) or np.linalg.cond(overlap) < 1e8
    if semisimple and rank < len(b):
        # What lies in the null space is never moved, so it stays where it started.
        x = x + right @ np.linalg.solve(overlap, left.T @ (start - x))
    moving = eigenvalues[:rank]
    floor = 1e-13 * float(np.abs(eigenvalues).max(initial=0.0))
    stable = bool(semisimple and (moving.real > floor).all())
    step = 0.0
    if stable:
        step = float((2.0 * moving.real / np.abs(moving) ** 2).min(initial=np.inf))
    return x, stable, eigenvalues, step


def _initial_theta(problem: Problem, learner: Any) -> Any:
    for owner in (learner, problem):
        theta = getattr(owner, "initial_theta", None)
        if theta is not None:
            return np.asarray(theta, dtype=np.float64)
    return 0.0

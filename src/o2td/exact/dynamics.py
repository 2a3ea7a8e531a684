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

from o2td.errors import InputError
from o2td.exact.objectives import rmse, rmspbe, suboptimality
from o2td.exact.system import Floats
from o2td.exact.truth import model
from o2td.problem import Problem

__all__ = ["FixedPoint", "LinearDynamics", "fixed_point", "land"]


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """Where mean dynamics lead.

    `theta` is the limit where `stable`; else the fixed point that is moved away from, or None where
    there is none. `max_step_size` bounds the step sizes for which the mean dynamics converge (noise
    asks for smaller ones); it is 0 where none does. `eigenvalues` are those of the mean dynamics' `A`.
    The errors `rmse`, `rmspbe` and `suboptimality` are infinite where `theta` is None.
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

    >>> import o2td
    >>> from o2td import domains, exact
    >>> exact.fixed_point(domains.baird(), o2td.TD()).stable
    False
    >>> exact.fixed_point(domains.baird(), o2td.ETD()).theta.round(3)
    array([ 1.692,  1.692,  1.692,  1.692,  1.692,  1.692,  6.769, -3.385])
    """
    if isinstance(learner, type) or not hasattr(learner, "mean_dynamics"):
        raise InputError(f"{learner!r} is not a learner; pass one such as o2td.TD(step_size=0.1)")
    dynamics = learner.mean_dynamics(model(problem))
    return land(problem, learner, LinearDynamics(dynamics.A), dynamics.b)


def land(problem: Problem, learner: Any, dynamics: LinearDynamics, b: Any) -> FixedPoint:
    """`fixed_point` from dynamics that are at hand already."""
    start = np.zeros(len(b))
    start[: problem.d] = _initial_theta(problem, learner)
    x = dynamics.limit(np.asarray(b, dtype=np.float64), start)
    eigenvalues = dynamics.eigenvalues
    if x is None:
        nowhere = float("inf")
        return FixedPoint(None, False, eigenvalues, 0.0, nowhere, nowhere, nowhere)
    theta = x[: problem.d]
    errors = (rmse(problem, theta), rmspbe(problem, theta), suboptimality(problem, theta))
    return FixedPoint(theta, dynamics.stable, eigenvalues, dynamics.max_step_size, *errors)


class LinearDynamics:
    """`x += alpha (b - A x)`, A factored once for many `b`."""

    def __init__(self, A: Any) -> None:
        A = np.asarray(A, dtype=np.float64)
        U, size, Vt = np.linalg.svd(A)
        rank = int((size > size[0] * len(A) * 16 * np.finfo(np.float64).eps).sum())
        self._inverse = (Vt[:rank].T / size[:rank]) @ U[:, :rank].T
        self._left, self._right = U[:, rank:], Vt[rank:].T
        self._overlap = self._left.T @ self._right
        self._semisimple = rank == len(A) or bool(np.linalg.cond(self._overlap) < 1e8)
        eigenvalues = np.linalg.eigvals(A).astype(np.complex128)
        self.eigenvalues = eigenvalues[np.argsort(-np.abs(eigenvalues))]
        moving = self.eigenvalues[:rank]
        floor = 1e-13 * float(np.abs(eigenvalues).max(initial=0.0))
        self.stable = bool(self._semisimple and (moving.real > floor).all())
        self.max_step_size = 0.0
        if self.stable:
            bounds = 2.0 * moving.real / np.abs(moving) ** 2
            self.max_step_size = float(bounds.min(initial=np.inf))

    def limit(self, b: Floats, start: Floats) -> Floats | None:
        """Where `start` is led, or the fixed point it is driven from; None where there is none."""
        if np.linalg.norm(self._left.T @ b) > 1e-9 * np.linalg.norm(b):
            return None
        x = self._inverse @ b
        if self._semisimple and len(self._overlap):
            # What lies in the null space is never moved, so it stays where it started.
            stays = np.linalg.solve(self._overlap, self._left.T @ (start - x))
            x = x + self._right @ stays
        return np.asarray(x)


def _initial_theta(problem: Problem, learner: Any) -> Any:
    for owner in (learner, problem):
        theta = getattr(owner, "initial_theta", None)
        if theta is not None:
            return np.asarray(theta, dtype=np.float64)
    return 0.0

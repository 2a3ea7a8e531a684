"""Where a learner moves on average: its fixed point, whether it converges, how good the limit is.

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

from o2td.arrays import Floats
from o2td.errors import InputError
from o2td.exact.bellman_system import finite_problem, system
from o2td.exact.objectives import rmse, rmspbe, suboptimality
from o2td.exact.truth import model
from o2td.learners.parameters import initial
from o2td.linear_algebra import check_width, shortest
from o2td.linear_algebra.scaled_spectrum import Deflated, sizes, spectrum
from o2td.problem import Problem


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """Where mean dynamics lead.

    `theta` is the limit if `stable`, otherwise the fixed point that repels, or None if there is
    none. `max_step_size` bounds the step sizes for which the mean dynamics converge (noise requires
    smaller ones); it is 0 if none does. `eigenvalues` are those of the mean dynamics' `A`. The
    errors `rmse`, `rmspbe` and `suboptimality` are infinite if `theta` is None.
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
    check_width(finite_problem(problem).d)
    dynamics = learner.mean_dynamics(model(problem))
    return land(problem, learner, LinearDynamics(dynamics.A, system(problem).scale), dynamics.b)


def land(problem: Problem, learner: Any, dynamics: LinearDynamics, b: Any) -> FixedPoint:
    """`fixed_point` from dynamics that are already computed."""
    start = np.zeros(len(b))
    given = getattr(learner, "initial_theta", None)
    start[: problem.d] = initial(problem.initial_theta if given is None else given, problem.d)
    x = dynamics.limit(np.asarray(b, dtype=np.float64), start)
    eigenvalues = dynamics.eigenvalues
    if x is None:
        nowhere = float("inf")
        return FixedPoint(None, False, eigenvalues, 0.0, nowhere, nowhere, nowhere)
    theta = x[: problem.d]
    errors = (rmse(problem, theta), rmspbe(problem, theta), suboptimality(problem, theta))
    return FixedPoint(theta, dynamics.stable, eigenvalues, dynamics.max_step_size, *errors)


class LinearDynamics:
    """`x += alpha (b - A x)`, A factored once for many `b`.

    `scale` holds the scales of the features, so that decisions here do not depend on their units.
    """

    def __init__(self, A: Any, scale: Floats | None = None) -> None:
        A = np.asarray(A, dtype=np.float64)
        self._size = s = sizes(A, scale)
        self._M = M = A / s / s[:, None]
        self._parts = parts = Deflated(M, s, len(A) if scale is None else len(scale))
        self._core = parts.core / parts.row[parts.kept, None]
        closed = parts.closed(s)
        if closed is not None:
            groups, floors = [closed], [0.0]
        else:
            groups = spectrum(parts.core, s[parts.kept]) if parts.semisimple else spectrum(M, s)
            floors = [1e-13 * np.abs(group).max() for group in groups]
        found = np.concatenate([*groups, np.zeros(len(A) - sum(map(len, groups)))])
        self.eigenvalues = found[np.argsort(-np.abs(found), kind="stable")].astype(np.complex128)
        pulled = all((g.real > floor).all() for g, floor in zip(groups, floors, strict=True))
        self.stable = parts.pulls or bool(parts.semisimple and pulled)
        self.max_step_size = 0.0
        if self.stable:
            # Eigenvalues at rounding level do not bound the step size.
            clear = [g[g.real > floor] for g, floor in zip(groups, floors, strict=True)]
            bounds = [2.0 * (g.real / np.abs(g) / np.abs(g)).min(initial=np.inf) for g in clear]
            self.max_step_size = float(min(bounds, default=np.inf))

    def limit(self, b: Floats, start: Floats) -> Floats | None:
        """The limit from `start`, or the fixed point that repels it; None if there is none."""
        parts, s = self._parts, self._size
        if not parts.solvable(b / s):
            return None
        if parts.rank == len(s) or not parts.semisimple:
            # Of the solutions, which differ by the null space of A, that of minimum norm.
            return shortest(parts.solution(b / s) / s, parts.right / s[:, None])
        # `Y^T x`, Y the left null space, never changes from its initial value.
        p, q = parts.kept, parts.dropped
        carry = s[q, None] * parts.ratio / s[p]
        stays = start[q] - carry @ start[p]
        push = b[p] / s[p] - self._M[np.ix_(p, q)] @ (s[q] * stays)
        x = np.empty(len(s))
        x[p] = np.linalg.solve(self._core, push / parts.row[p]) / s[p]
        x[q] = carry @ x[p] + stays
        return x

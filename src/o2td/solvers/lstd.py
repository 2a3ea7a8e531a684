"""LSTD(lambda): `theta` with `sum_t z_t (r_{t+1} + gamma_{t+1} phi_{t+1}·theta - phi_t·theta) = 0`.

`z_t = rho_t (lambda gamma_t z_{t-1} + phi_t)`, `A = sum_t z_t (phi_t - gamma_{t+1} phi_{t+1})^T`,
`b = sum_t z_t r_{t+1}`, `theta = A^-1 b`. Direction `X = (I - lambda P_gamma^T)^-1 Xi Phi`, the limit
of TD(lambda). Bradtke and Barto (1996), Boyan (1999); off-policy with traces Yu (2010).

With the ratio on the target, another estimate has the same limit (since `E[rho | s] = 1`):
`e_t = lambda rho_{t-1} gamma_t e_{t-1} + phi_t`, `A = sum_t e_t (phi_t - rho_t gamma_{t+1} phi_{t+1})^T`
and `b = sum_t rho_t e_t r_{t+1}` (Yu 2010, Mahmood, van Hasselt and Sutton 2014).
"""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np

from o2td.arguments import choice, number, unit
from o2td.arrays import Floats, freeze
from o2td.errors import InputError
from o2td.linear_algebra import Solution, solve
from o2td.model import Model
from o2td.solvers.base import Solver, model_rows
from o2td.solvers.choice import choose
from o2td.solvers.directions import Directions, collect
from o2td.solvers.system import Side, System, expected, product, traced
from o2td.transitions import Transitions


class LSTD(Solver):
    """Least-squares temporal differences, off-policy, with traces.

    Parameters
    ----------
    trace
        lambda in [0, 1], or "auto", which picks the candidate with the smallest estimated error
        among several lambdas, with and without bounds on the ratios inside the trace, with ratios
        adjusted by regression, and shrunk towards a constant. `solution.direction` names the
        choice, and `solution.candidates` has the estimated bias and deviation of all. "auto" takes
        about ten times as long and 2 kB d^2 of memory.
    ridge
        Added to the diagonal of `A` (a sum over rows, not a mean).
    rho_on
        "difference": the ratio multiplies all of `phi - gamma phi'`. "target": it multiplies only
        the successor and the reward, `A = sum e (phi - rho gamma phi')^T`, `b = sum rho e r`, as in
        published code; its variance is far larger.

    Examples
    --------
    >>> import numpy as np
    >>> from o2td import LSTD, Transitions
    >>> batch = Transitions(np.eye(2), [0.0, 1.0], np.eye(2)[[1, 0]], discount=0.5)
    >>> solver = LSTD().fit(batch)
    >>> solver.theta.round(12), solver.solution.status
    (array([0.66666667, 1.33333333]), 'ok')

    >>> from o2td import domains
    >>> batch = domains.collision(seed=0).sample(3000, seed=0)
    >>> solution = LSTD(trace="auto").fit(batch).solution
    >>> print(solution.direction)
    λ = 1
    """

    statistics = (System, Directions)
    solved_with = ("ridge",)

    def __init__(
        self,
        trace: float | Literal["auto"] = 0.0,
        ridge: float = 0.0,
        rho_on: str = "difference",
    ) -> None:
        if not isinstance(trace, str) or trace != "auto":
            trace = unit("trace", trace)
        self.ridge = number("ridge", ridge, low=0.0)
        choice("rho_on", rho_on, ("difference", "target"))
        if rho_on == "target":
            if trace == "auto":
                raise InputError('trace="auto" chooses among traces with rho_on="difference" only')
            warnings.warn(
                'rho_on="target" has a far larger variance than rho_on="difference"', stacklevel=2
            )
        self.trace: float | Literal["auto"] = trace
        self.rho_on = rho_on

    @property
    def selects(self) -> bool:  # type: ignore[override]
        """Whether the data decide which of several answers is given."""
        return self.trace == "auto"

    def _collect(self, batch: Transitions) -> System | Directions:
        if self.trace == "auto":
            return collect(batch)
        if self.rho_on == "target":
            batch = on_target(batch)
        if self.trace > 0.0:
            return traced(batch, self.trace)
        return _untraced(batch, np.ones(batch.n))

    def _collect_more(self, batch: Transitions) -> System | Directions:
        return collect(batch, keep=False) if self.trace == "auto" else self._collect(batch)

    def _solve(self, sums: System | Directions) -> Solution:
        if isinstance(sums, Directions):
            return choose(sums, self.ridge)
        return solve(sums.A, sums.b, self.ridge, rows=sums.rows)

    def _limit(self, model: Model) -> Solution:
        trace = 1.0 if self.trace == "auto" else self.trace  # the longest one has no bias
        target = self.rho_on == "target"
        if trace > 0.0:
            sums = expected(model, model.visits, trace, target)
        else:
            rows, probability = model_rows(model)
            sums = _untraced(on_target(rows) if target else rows, probability)
        return solve(sums.A, sums.b, rows=sums.rows)


def _untraced(batch: Transitions, weight: Floats) -> System:
    right = Side(np.ones(batch.n), 1.0, batch.discount)
    return product(batch, Side(weight * batch.rho), right, batch.reward)


def on_target(batch: Transitions) -> Transitions:
    """Move the ratios into rewards and discounts, which leaves the recursion without ratios."""
    other = batch[:]
    other.reward, other.discount = (
        freeze(batch.rho * batch.reward),
        freeze(batch.rho * batch.discount),
    )
    other.rho = freeze(np.ones(batch.n))
    return other

"""LSETD(lambda): LSTD with the follow-on weights of emphatic TD.

`F_t = i_t + gamma_t rho_{t-1} F_{t-1}`, `M_t = lambda i_t + (1 - lambda) F_t`,
`z_t = rho_t (lambda gamma_t z_{t-1} + M_t phi_t)`, `A = sum_t z_t (phi_t - gamma_{t+1} phi_{t+1})^T`,
`b = sum_t z_t r_{t+1}`. Direction
`X = (I - lambda P_gamma^T)^-1 diag(lambda xi∘i + (1 - lambda) f) Phi`, `f = (I - P_gamma^T)^-1 (xi∘i)`.
Sutton, Mahmood and White (2016); Yu (2015); with `decay` Hallak et al. (2016).
"""

from __future__ import annotations

import numpy as np

from o2td.arguments import number, unit
from o2td.linear_algebra import Solution, solve
from o2td.model import Model
from o2td.solvers.base import Solver
from o2td.solvers.system import System, expected, traced
from o2td.transitions import Transitions


class LSETD(Solver):
    """Least-squares emphatic temporal differences.

    Parameters
    ----------
    trace
        lambda in [0, 1].
    ridge
        Added to the diagonal of `A`.
    decay
        beta in [0, 1], used in `F` instead of the discount (0 where the discount is 0); None means
        the discount itself.

    Examples
    --------
    >>> import numpy as np
    >>> from o2td import LSETD, Transitions
    >>> batch = Transitions(np.eye(2), [0.0, 1.0], np.eye(2)[[1, 0]], discount=0.5)
    >>> LSETD().fit(batch).theta.round(12)
    array([0.66666667, 1.33333333])
    """

    statistics = (System,)
    solved_with = ("ridge",)

    def __init__(self, trace: float = 0.0, ridge: float = 0.0, decay: float | None = None) -> None:
        self.trace, self.ridge = unit("trace", trace), number("ridge", ridge, low=0.0)
        self.decay = None if decay is None else unit("decay", decay)

    def _collect(self, batch: Transitions) -> System:
        return traced(batch, self.trace, emphatic=True, decay=self.decay)

    def _solve(self, sums: System) -> Solution:
        return solve(sums.A, sums.b, self.ridge, rows=sums.rows)

    def _limit(self, model: Model) -> Solution:
        interest = model.visits * model.interest
        gamma = model.discount
        factor = gamma if self.decay is None else np.where(gamma > 0.0, self.decay, 0.0)
        follow = model.traced(interest, model.rho * factor)
        sums = expected(model, self.trace * interest + (1.0 - self.trace) * follow, self.trace)
        return solve(sums.A, sums.b)

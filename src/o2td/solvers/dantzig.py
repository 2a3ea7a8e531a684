"""Dantzig-selector TD: `min ||theta||_1` subject to `||A theta - b||_inf <= epsilon`.

`A`, `b` are LSTD's, as means over rows. With `denoise=True` the constraint is
`||M^T (R - Delta theta)||_inf <= epsilon` on rows aggregated by state, where `M` solves
`min ||Delta^T M - I||_F^2 + ridge ||M||_F^2`, so that `M^T Delta` is nearly the identity and noise in
`A` is not amplified. Both are linear programs. Geist et al. (2012); denoised after Liu, Zhang and
Liu (2016).
"""

from __future__ import annotations

import numpy as np

from o2td.arguments import choice, number, switch
from o2td.arrays import Floats
from o2td.linear_algebra import (
    Solution,
    backward_error,
    conclude,
    pseudo_inverse,
    rank_of,
    triangle,
)
from o2td.model import Model
from o2td.solvers.aggregate import StateSums, collect, estimates
from o2td.solvers.base import Solver, Statistics, model_rows, refuse_overflow
from o2td.solvers.system import Side, System, product
from o2td.transitions import Transitions


class DantzigTD(Solver):
    """The weights of smallest `||theta||_1` whose TD error is small.

    Parameters
    ----------
    epsilon
        Largest allowed component of `A theta - b`, in units of reward times feature.
    denoise
        Use the denoising matrix; needs states.
    ridge
        Regularisation of the denoising matrix.
    weighting
        "normalized" or "ordinary" sums over visits, as in `SOTD`; with `denoise` only.

    Examples
    --------
    >>> import numpy as np
    >>> from o2td import DantzigTD, Transitions
    >>> batch = Transitions(np.eye(2), [0.0, 1.0], np.eye(2)[[1, 0]], discount=0.5)
    >>> DantzigTD(epsilon=0.0).fit(batch).theta.round(9)
    array([0.66666667, 1.33333333])
    """

    statistics = (System, StateSums)
    solved_with = ("epsilon", "ridge", "weighting")

    def __init__(
        self,
        epsilon: float = 0.01,
        denoise: bool = False,
        ridge: float = 0.0,
        weighting: str = "normalized",
    ) -> None:
        number("epsilon", epsilon, low=0.0)
        number("ridge", ridge, low=0.0)
        choice("weighting", weighting, ("normalized", "ordinary"))
        self.epsilon, self.denoise = float(epsilon), switch("denoise", denoise)
        self.ridge, self.weighting = float(ridge), weighting

    @staticmethod
    def _extra(d: int) -> tuple[int]:
        return (1,)

    def _collect(self, batch: Transitions) -> Statistics:
        return self._sums_of(batch, np.ones(batch.n))

    def _sums_of(self, batch: Transitions, weight: Floats) -> Statistics:
        if self.denoise:
            return collect(batch, weight, "DantzigTD with denoise=True")
        right = Side(np.ones(batch.n), 1.0, batch.discount)
        mass = np.array([weight.sum()])
        return product(batch, Side(weight * batch.rho), right, batch.reward, mass)

    def _solve(self, sums: Statistics) -> Solution:
        if isinstance(sums, System):
            A = sums.A if isinstance(sums.A, np.ndarray) else sums.A.toarray()
            A, b = A / sums.extra[0], sums.b / sums.extra[0]
            return select(A, b, self.epsilon, rows=sums.rows)
        assert isinstance(sums, StateSums)  # noqa: S101
        data, d = estimates(sums, self.weighting), sums.d
        counts = {"states left out, all their ratios are zero": data.left_out}
        if data.shape[0] == 0:
            return conclude(np.zeros(d), "no data", 0, np.inf, 0.0, 0, counts)
        R = triangle((block for _, block in data.blocks()), d + 1)
        U, W = pseudo_inverse(R[:, :d], self.ridge, sums.rows)
        system = W @ (U.T @ R)  # M^T [Delta, R]
        return select(system[:, :d], system[:, d], self.epsilon, counts, sums.rows)

    def _limit(self, model: Model) -> Solution:
        return self._solve(self._sums_of(*model_rows(model)))


_FREE = 1e15  # in units of the largest sum: a bound that is never active


def select(
    A: Floats,
    b: Floats,
    epsilon: float,
    counts: dict[str, int] | None = None,
    rows: int = 0,
) -> Solution:
    """`min ||theta||_1` subject to `||A theta - b||_inf <= epsilon`, `A` a sum over `rows`.

    If no theta satisfies that, returns the one with the smallest error and status "infeasible". If
    `A` is singular, others may have the same norm, and the status is "minimum norm".
    """
    d = A.shape[1]
    refuse_overflow({"A": A, "b": b})
    size = float(np.abs(A).max(initial=0.0))
    unit = float(np.abs(b).max(initial=0.0))
    if size == 0.0:
        return conclude(np.zeros(d), "no data", 0, np.inf, float(unit > 0.0), 0, counts)
    rank, condition = rank_of(A, rows)
    scale = unit / size if unit > 0.0 else 1.0
    # In units where A and b are about one, which the solver's absolute tolerances expect.
    A_1, b_1, level = A / size, b / (unit or 1.0), min(epsilon / (unit or 1.0), _FREE)
    theta, steps = _program(A_1, b_1, level), 0
    status = "ok" if rank == d else "minimum norm"
    if theta is None:
        theta, status = _nearest(A_1, b_1), "infeasible"
    theta = theta * scale
    error = backward_error(A, theta, b)
    return conclude(theta, status, rank, condition, error, steps, counts)


def _program(A: Floats, b: Floats, level: float) -> Floats | None:
    """The program in `theta = u - v` with `u, v >= 0`."""
    from scipy.optimize import linprog

    d = A.shape[1]
    rows = np.block([[A, -A], [-A, A]])
    bounds = np.concatenate([b + level, level - b])
    found = linprog(np.ones(2 * d), A_ub=rows, b_ub=bounds, bounds=(0.0, None), method="highs")
    if found.status != 0 or found.x is None:
        return None
    return np.asarray(found.x[:d] - found.x[d:])


def _nearest(A: Floats, b: Floats) -> Floats:
    """`argmin ||A theta - b||_inf`."""
    from scipy.optimize import linprog

    d = A.shape[1]
    one = np.ones((len(b), 1))
    rows = np.block([[A, -one], [-A, -one]])
    bounds = [(None, None)] * d + [(0.0, None)]
    cost = np.append(np.zeros(d), 1.0)
    found = linprog(cost, A_ub=rows, b_ub=np.append(b, -b), bounds=bounds, method="highs")
    return np.zeros(d) if found.x is None else np.asarray(found.x[:d])

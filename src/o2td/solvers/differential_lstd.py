"""Differential LSTD(lambda): average reward and values relative to it, without a step size.

`z_t = rho_t (lambda gamma_t z_{t-1} + phi_t)`, and theta and the average reward `mean` with

    sum_t z_t   (r_{t+1} - mean + gamma_{t+1} phi_{t+1}·theta - phi_t·theta) = 0
    sum_t rho_t (r_{t+1} - mean + gamma_{t+1} phi_{t+1}·theta - phi_t·theta) = 0

which is the fixed point of `DifferentialTD`. Pass discounts of 1. If the features can express a
constant, differential values are determined only up to a constant, and the minimum-norm answer is
taken.

Tsitsiklis and Van Roy (1999), average-cost TD; least squares: Yu and Bertsekas (2009); the second
equation, right off-policy: Wan, Naik and Sutton (2021).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from o2td.arguments import number, unit
from o2td.arrays import Floats
from o2td.linear_algebra import Solution, solve
from o2td.model import Model
from o2td.solvers.base import Solver
from o2td.solvers.system import System, expected, traced
from o2td.transitions import Transitions

BLOCK = 1 << 14  # rows widened at a time


class Widened(System):
    """The sums with a last feature, 1 in every row and 0 in every successor."""

    @property
    def d(self) -> int:  # type: ignore[override]
        """Number of features, without the last one."""
        return len(self.b) - 1


class DifferentialLSTD(Solver):
    """Least squares for the average reward.

    Parameters
    ----------
    trace
        lambda in [0, 1]; with discounts of 1 it must be below 1, or traces never fade.
    ridge
        Added to the diagonal of theta's part of `A` (a sum over rows, not a mean).

    Examples
    --------
    >>> import numpy as np, o2td
    >>> cycle = np.eye(2)
    >>> rows = o2td.Transitions(np.tile(cycle, (50, 1)), np.tile([0.0, 2.0], 50),
    ...                         np.tile(cycle[::-1], (50, 1)), discount=1.0)
    >>> solver = o2td.DifferentialLSTD().fit(rows)
    >>> round(solver.average_reward, 12), solver.theta.round(12)
    (1.0, array([-0.5,  0.5]))
    """

    statistics = (Widened,)
    solved_with = ("ridge",)
    discounted: ClassVar[bool] = False

    def __init__(self, trace: float = 0.0, ridge: float = 0.0) -> None:
        self.trace, self.ridge = unit("trace", trace), float(number("ridge", ridge, low=0.0))

    @property
    def average_reward(self) -> float:
        """The estimate of the target's average reward."""
        if self._sums is None or self._sums.rows == 0:
            return float("nan")
        return float(self._system(cast(Widened, self._sums))[1].theta[-1])

    def _collect(self, batch: Transitions) -> Widened:
        sums = None
        for part in batch.chunks(BLOCK) if batch.n > BLOCK else (batch,):
            found = traced(widened(part), self.trace)
            found.extra = _plain_sums(part)
            sums = found if sums is None else sums.then(found)
        assert sums is not None  # noqa: S101
        return Widened(sums.A, sums.b, sums.rows, sums.extra, sums.past)

    def _system(self, sums: Widened) -> tuple[Solution, Solution]:
        """The answer for theta, and for theta and the average reward together."""
        A, b = sums.A.copy(), sums.b.copy()
        A[-1], b[-1] = sums.extra[:-1], sums.extra[-1]
        A[:-1, :-1] += self.ridge * np.eye(len(b) - 1)
        whole = solve(A, b, rows=sums.rows)
        return replace(whole, theta=whole.theta[:-1], rank=max(whole.rank - 1, 0)), whole

    def _solve(self, sums: Widened) -> Solution:
        return self._system(sums)[0]

    def _limit(self, model: Model) -> Solution:
        wide = replace(model, phi=np.concatenate([model.table, np.ones((model.n_states, 1))], 1))
        sums, plain = (expected(wide, wide.visits, trace) for trace in (self.trace, 0.0))
        one = expected(replace(wide, reward=np.ones_like(wide.reward)), wide.visits, self.trace)
        A, b = sums.A.copy(), sums.b.copy()
        A[:, -1] = one.b
        A[-1], b[-1] = plain.A[-1], plain.b[-1]
        A[-1, -1] = (model.probability * model.rho).sum()
        whole = solve(A, b)
        return replace(whole, theta=whole.theta[:-1])

    @staticmethod
    def _extra(d: int) -> tuple[int]:
        return (d + 2,)


def widened(batch: Transitions) -> Transitions:
    """Append a feature that is 1 in every row and 0 in every successor."""
    names = ("reward", "discount", "rho", "start", "interest")
    columns: dict[str, Any] = {name: getattr(batch, name) for name in names}
    if batch.layout != "table":
        return Transitions(_wider(batch.phi, 1.0), next_phi=_wider(batch.next_phi, 0.0), **columns)
    state: Any = batch.state
    following: Any = batch.next_state
    table = [_wider(batch.table, 1.0), _wider(batch.table, 0.0)]
    both: Any = csr_array(vstack(table)) if batch.sparse else np.vstack(table)
    later = np.where(following < 0, -1, following + batch.table.shape[0])
    return Transitions.from_table(both, state, next_state=later, **columns)


def _wider(rows: Any, last: float) -> Any:
    end = np.full((rows.shape[0], 1), last)
    if isinstance(rows, np.ndarray):
        return np.hstack([rows, end])
    return csr_array(hstack([rows, csr_array(end)]))


def _plain_sums(batch: Transitions) -> Floats:
    """`sum_t rho_t (phi_t - gamma_{t+1} phi_{t+1})`, `sum_t rho_t` and `sum_t rho_t r_{t+1}`."""
    rho, there = batch.rho, np.flatnonzero(batch.discount)
    own = rho @ batch.phi
    if len(there):
        own = own - (rho * batch.discount)[there] @ batch.next_phi[there]
    return np.concatenate([np.asarray(own), [rho.sum(), rho @ batch.reward]])

"""Averager: `theta_j <- sum_t phi_tj rho_t (r + gamma phi'_t·theta) / sum_t phi_tj rho_t`.

With row-stochastic features the map is a contraction in the maximum norm for any distribution of
the data, so its fixed point exists off-policy as well: `(N - B) theta = b` with `N = diag(sum_t
rho_t phi_t)`, `B = sum_t rho_t gamma_{t+1} phi_t phi_{t+1}^T`, solved directly. Gordon (1995).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td import chain
from o2td.arrays import Floats
from o2td.errors import InputError, NoAnswerError
from o2td.linear_algebra import POOR, Solution, backward_error, conclude, solve
from o2td.model import Model
from o2td.solvers.base import Solver, model_rows
from o2td.solvers.system import Side, System, product
from o2td.transitions import Transitions

_ROUNDING = 1e-8


class Averager(Solver):
    """Fitted value iteration with averaging features, at its fixed point.

    Features must be convex weights: nonnegative, with each row summing to one (also in `next_phi`
    where the discount is not 0). The weight of a feature that is active in no row with a positive
    ratio is 0; the solution counts these.

    Examples
    --------
    >>> import numpy as np
    >>> from o2td import Averager, Transitions
    >>> phi = np.array([[1.0, 0.0], [0.5, 0.5]])
    >>> batch = Transitions(phi, [0.0, 1.0], phi[[1, 0]], discount=0.5)
    >>> Averager().fit(batch).theta.round(12)
    array([0.85714286, 1.42857143])
    """

    statistics = (System,)

    @staticmethod
    def _extra(d: int) -> tuple[int]:
        return (d,)

    def _collect(self, batch: Transitions) -> System:
        return self._weighted(batch, np.ones(batch.n))

    def _weighted(self, batch: Transitions, weight: Floats) -> System:
        _check(batch)
        rho = weight * batch.rho
        mass = np.zeros(batch.d)
        for low in range(0, batch.n, 4096):
            mass += np.asarray(batch[low : low + 4096].phi.T @ rho[low : low + 4096])
        right = Side(np.ones(batch.n), 0.0, batch.discount)
        return product(batch, Side(rho), right, batch.reward, mass)

    def _solve(self, sums: System) -> Solution:
        seen = sums.extra > 0.0
        diagonal = np.where(seen, sums.extra, 1.0)
        counts = {"features never touched": int((~seen).sum())}
        if isinstance(sums.A, np.ndarray):
            return solve(sums.A + np.diag(diagonal), sums.b, 0.0, counts, rows=sums.rows)
        return _contracted(sums.A, diagonal, sums.b, counts, sums.rows)

    def _limit(self, model: Model) -> Solution:
        return self._solve(self._weighted(*model_rows(model)))


def _contracted(A: Any, diagonal: Floats, b: Floats, counts: dict[str, int], rows: int) -> Solution:
    """The sparse system as a sum over time: `theta = (I - K)^-1 N^-1 b` with `K = N^-1 B`.

    The inverse is nonnegative, so its largest row sum is found by applying it to a vector of ones.
    """
    from scipy.sparse import csr_array, diags_array

    K = csr_array(diags_array(-1.0 / diagonal) @ A)
    whole = A + diags_array(diagonal)
    try:
        theta, sums = chain.solve(K, np.column_stack([b / diagonal, np.ones(len(b))])).T
    except NoAnswerError:  # nothing is discounted, or rounding made weights negative
        return solve(whole, b, 0.0, counts, rows=rows)
    norm = 1.0 + float(np.max(np.asarray(K.sum(axis=1))))
    condition = norm * float(np.abs(sums).max())
    status = "ok" if condition * POOR <= 1.0 else "ill-conditioned"
    error = backward_error(whole, theta, b)
    return conclude(theta, status, len(b), condition, error, 0, counts)


def _check(batch: Transitions) -> None:
    if batch.layout == "table":
        used = np.zeros(batch.table.shape[0], dtype=np.bool_)
        used[batch.state] = True
        used[batch.next_state[batch.discount > 0.0]] = True  # type: ignore[index]
        _check_rows("table", batch.table, used, 0)
        return
    for low in range(0, batch.n, 4096):
        part = batch[low : low + 4096]
        _check_rows("phi", part.phi, np.ones(part.n, dtype=np.bool_), low)
        _check_rows("next_phi", part.next_phi, part.discount > 0.0, low)


def _check_rows(name: str, rows: Any, used: Any, low: int) -> None:
    with np.errstate(invalid="ignore"):
        total = np.asarray(rows.sum(axis=1)).ravel()
        least = rows.min(axis=1)
        least = np.asarray(least.toarray() if hasattr(least, "toarray") else least).ravel()
        bad = used & ~((np.abs(total - 1.0) <= _ROUNDING) & (least >= -_ROUNDING))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{name} is not a row of weights in row {low + row} (sum {total[row]:g}, least"
            f" {least[row]:g}); Averager needs features that are not negative and sum to 1"
        )

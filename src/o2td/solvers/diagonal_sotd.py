"""Diagonal SOTD: `min_Omega 1/2 ||Delta^T Omega Xi Phi - C||_F^2` over diagonal `Omega`.

Then `theta = (Phi^T Xi Omega Delta)^-1 Phi^T Xi Omega R`: one weight a state, the paper's step from
SOTD towards O2TD. `Omega` is sought from the identity by LSMR (Fong and Saunders 2011), which changes
it by the least amount that solves the problem; with `nonnegative=True` by projected accelerated
gradients. Both see the problem through `Omega -> Delta^T Omega Xi Phi` and its transpose only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td.arrays import freeze
from o2td.model import Model
from o2td.solvers.aggregate import Aggregate, StateSums, collect, estimates, row_norms, scaled
from o2td.solvers.base import Solver, check_choice, check_count, check_number, model_rows
from o2td.solvers.linear import Floats, Solution, conclude, shifted, solve
from o2td.transitions import Transitions

_CONVERGED = (0, 1, 2, 4, 5)  # of LSMR's reasons to stop; 3, 6: near singular, 7: too many steps


class DiagonalSOTD(Solver):
    """SOTD with a diagonal direction `X = Omega Xi Phi`.

    Parameters
    ----------
    weighting
        "normalized" or "ordinary" sums over visits, as in `SOTD`.
    nonnegative
        Keep the weights of all states at zero or more.
    tolerance, max_iterations
        When to stop the search for `Omega`.

    After solving, `omega` holds the weights of the states in `omega_state`.

    Examples
    --------
    >>> import numpy as np
    >>> from o2td import DiagonalSOTD, Transitions
    >>> batch = Transitions.from_table(np.eye(2), [0, 1], [0.0, 1.0], [1, 0], discount=0.5)
    >>> solver = DiagonalSOTD().fit(batch)
    >>> solver.theta.round(12), solver.omega.round(12)
    (array([0.66666667, 1.33333333]), array([0.8, 0.8]))
    """

    statistics = (StateSums,)

    _omega: Floats | None = None

    def __init__(
        self,
        weighting: str = "normalized",
        nonnegative: bool = False,
        tolerance: float = 1e-10,
        max_iterations: int = 10_000,
    ) -> None:
        check_choice("weighting", weighting, ("normalized", "ordinary"))
        check_number("tolerance", tolerance)
        check_count("max_iterations", max_iterations)
        self.weighting, self.nonnegative = weighting, bool(nonnegative)
        self.tolerance, self.max_iterations = float(tolerance), int(max_iterations)

    @property
    def omega(self) -> Floats:
        """The weights of the states, solved anew after new rows."""
        if self._solution is None or self._omega is None:
            self.solve()
        return freeze(np.zeros(0) if self._omega is None else self._omega)

    @property
    def omega_state(self) -> Any:
        """The states that `omega` belongs to: those with a positive sum of ratios."""
        sums = self._sums
        return sums.state[sums.rho > 0.0] if isinstance(sums, StateSums) else np.zeros(0, np.int64)

    def _collect(self, batch: Transitions) -> StateSums:
        return collect(batch, who="DiagonalSOTD")

    def _solve(self, sums: StateSums) -> Solution:
        answer, self._omega = self._answer(sums)
        return answer

    def _answer(self, sums: StateSums) -> tuple[Solution, Floats]:
        data, unit, reward = estimates(sums, self.weighting).in_units()
        counts = {"states left out, all their ratios are zero": data.left_out}
        if data.shape[0] == 0:
            nothing = conclude(np.zeros(sums.d), "no data", 0, np.inf, 0.0, 0, counts)
            return nothing, np.zeros(0)
        operator = _Diagonal(data)
        gap = data.gram() - operator.apply(np.ones(data.shape[0]))
        search = self._projected if self.nonnegative else self._least_squares
        omega, steps, done = search(operator, gap)
        left = scaled(data.phi, omega * data.xi)
        A, b = left.T @ data.delta, left.T @ data.reward
        A = A.toarray() if hasattr(A, "toarray") else A
        answer = solve(A, b, 0.0, counts, rows=sums.rows)
        status = answer.status if done else "not converged"
        numbers = (answer.rank, answer.condition, answer.residual)
        theta = shifted(answer.theta, reward - unit)
        return conclude(theta, status, *numbers, steps, counts), omega

    def _least_squares(self, operator: _Diagonal, gap: Floats) -> tuple[Floats, int, bool]:
        from scipy.sparse.linalg import LinearOperator, lsmr

        S, d = operator.data.shape
        # The search takes a map much smaller than one for a singular one: its norm is made one.
        size = operator.norm() or 1.0
        linear = LinearOperator(
            (d * d, S),
            matvec=lambda omega: operator.apply(omega).ravel() / size,
            rmatvec=lambda y: operator.adjoint(y.reshape(d, d)) / size,
            dtype=np.float64,
        )
        tol, most = self.tolerance, self.max_iterations
        found = lsmr(linear, gap.ravel() / size, atol=tol, btol=tol, conlim=0.0, maxiter=most)
        return 1.0 + found[0], int(found[2]), found[1] in _CONVERGED

    def _projected(self, operator: _Diagonal, gap: Floats) -> tuple[Floats, int, bool]:
        omega = np.ones(operator.data.shape[0])
        ahead, momentum = omega, 1.0
        step = 1.0 / operator.largest()
        first = None
        for count in range(1, self.max_iterations + 1):
            slope = operator.adjoint(operator.apply(ahead - 1.0) - gap)
            after = np.maximum(ahead - step * slope, 0.0)
            change = float(np.linalg.norm(after - ahead))
            first = change if first is None else first
            if change <= self.tolerance * first:
                return after, count, True
            if slope @ (after - omega) > 0.0:  # overshot: start the momentum anew
                momentum = 1.0
            later = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            ahead = after + (momentum - 1.0) / later * (after - omega)
            omega, momentum = after, later
        return omega, self.max_iterations, False

    def _limit(self, model: Model) -> Solution:
        batch, probability = model_rows(model)
        return self._answer(collect(batch, probability))[0]


class _Diagonal:
    """The linear map `omega -> Delta^T diag(omega xi) Phi` and its transpose."""

    def __init__(self, data: Aggregate) -> None:
        self.data = data
        size = max(64, (1 << 20) // data.shape[1])
        self._parts = [slice(k, k + size) for k in range(0, data.shape[0], size)]

    def apply(self, omega: Floats) -> Floats:
        data, d = self.data, self.data.shape[1]
        out = np.zeros((d, d))
        for part in self._parts:
            out += _dense(data.delta[part].T @ scaled(data.phi[part], (omega * data.xi)[part]))
        return out

    def adjoint(self, Y: Floats) -> Floats:
        data = self.data
        out = np.empty(data.shape[0])
        for part in self._parts:
            pulled = np.asarray(data.delta[part] @ Y)
            phi = data.phi[part]
            if isinstance(phi, np.ndarray):
                out[part] = np.einsum("sj,sj->s", pulled, phi)
            else:
                out[part] = np.asarray(phi.multiply(pulled).sum(axis=1)).ravel()
        return out * data.xi

    def norm(self) -> float:
        """The Frobenius norm: column s of the map is `xi_s Delta_s phi_s^T`."""
        data = self.data
        return float(np.linalg.norm(data.xi * row_norms(data.delta) * row_norms(data.phi)))

    def largest(self) -> float:
        """The largest squared singular value, rounded up, by the Lanczos method."""
        from scipy.sparse.linalg import LinearOperator, eigsh

        S = self.data.shape[0]
        start = 0.5 + np.random.default_rng(0).random(S)
        if S < 3:
            columns = np.column_stack([self.apply(unit).ravel() for unit in np.eye(S)])
            return float(np.linalg.norm(columns) ** 2) or 1.0
        if not self.adjoint(self.apply(start)).any():
            return 1.0  # features of zero, which the method refuses
        square = LinearOperator(
            (S, S), matvec=lambda v: self.adjoint(self.apply(v.ravel())), dtype=np.float64
        )
        value = float(eigsh(square, k=1, v0=start, tol=1e-3, return_eigenvectors=False)[0])
        return 1.01 * value if value > 0.0 else 1.0


def _dense(rows: Any) -> Floats:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)

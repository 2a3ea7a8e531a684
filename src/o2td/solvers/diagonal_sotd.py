"""Diagonal SOTD: `min_Omega 1/2 ||Delta^T Omega Xi Phi - C||_F^2` over diagonal `Omega`.

Then `theta = (Phi^T Xi Omega Delta)^-1 Phi^T Xi Omega R`: one weight per state, the paper's step
from SOTD towards O2TD. The search starts from the identity and uses LSMR (Fong and Saunders 2011),
which finds the smallest change that solves the problem, or, with `nonnegative=True`, projected
accelerated gradients. Both access the problem only through `Omega -> Delta^T Omega Xi Phi` and its
transpose. If there are enough states for an exact fit, the search is preconditioned.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td.arguments import choice, number, switch, whole
from o2td.arrays import Floats, freeze
from o2td.linear_algebra import Solution, conclude, shifted, solve
from o2td.model import Model
from o2td.solvers.aggregate import Aggregate, StateSums, collect, estimates, scaled
from o2td.solvers.base import Solver, model_rows
from o2td.solvers.diagonal import Diagonal, Suited
from o2td.transitions import Transitions

_CONVERGED = (0, 1, 2, 4, 5)  # LSMR's stopping codes; 3, 6: near singular, 7: too many steps
_EXACT = (0, 1, 4)  # codes for which the equations hold
_WORK = 2e12  # multiplications allowed for a limit on a model: some minutes
_LEAST = 100


class DiagonalSOTD(Solver):
    """SOTD with a diagonal direction `X = Omega Xi Phi`.

    Parameters
    ----------
    weighting
        "normalized" or "ordinary" sums over visits, as in `SOTD`.
    nonnegative
        Constrain the weights of all states to be nonnegative.
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
    solved_with = ("weighting", "nonnegative", "tolerance", "max_iterations")

    _omega: Floats | None = None

    def __init__(
        self,
        weighting: str = "normalized",
        nonnegative: bool = False,
        tolerance: float = 1e-10,
        max_iterations: int = 10_000,
    ) -> None:
        choice("weighting", weighting, ("normalized", "ordinary"))
        number("tolerance", tolerance, low=0.0)
        whole("max_iterations", max_iterations, 1)
        self.weighting, self.nonnegative = weighting, switch("nonnegative", nonnegative)
        self.tolerance, self.max_iterations = float(tolerance), int(max_iterations)

    @property
    def omega(self) -> Floats:
        """The weights of the states, solved again after new rows."""
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

    def _answer(self, sums: StateSums, model: Model | None = None) -> tuple[Solution, Floats]:
        rows, data = sums.rows, estimates(sums, self.weighting)
        del sums  # large, and where this is a limit nobody else holds it
        data, unit, reward = data.in_units()
        counts = {"states left out, all their ratios are zero": data.left_out}
        if data.shape[0] == 0:
            nothing = conclude(np.zeros(data.shape[1]), "no data", 0, np.inf, 0.0, 0, counts)
            return nothing, np.zeros(0)
        if model is None:
            omega, steps, done = self._weights(data, self.max_iterations)
        else:
            key = ("DiagonalSOTD", self.get_params())
            omega, steps, done = model.once(key, lambda: self._weights(data, _affordable(data)))
        left = scaled(data.phi, omega * data.xi)
        A, b = left.T @ data.delta, left.T @ data.reward
        A = A.toarray() if hasattr(A, "toarray") else A
        answer = solve(A, b, 0.0, counts, rows=rows)
        status = answer.status if done else "not converged"
        numbers = (answer.rank, answer.condition, answer.residual)
        theta = shifted(answer.theta, reward - unit)
        return conclude(theta, status, *numbers, steps, counts), omega

    def _weights(self, data: Aggregate, most: int) -> tuple[Floats, int, bool]:
        """`omega` from at most `most` steps, their number, and whether they converged."""
        most = min(most, self.max_iterations)
        gap = data.gram() - Diagonal(data).apply(np.ones(data.shape[0]))
        if self.nonnegative:
            return self._projected(Diagonal(data), gap, most)
        suited = Suited.found(data)
        if suited is not None:
            change, steps, stop = self._least_squares(suited, suited.target(gap), data, most)
            # Equations with the same solutions are equivalent only if there is a solution.
            if stop in _EXACT or (stop == 7 and steps == most):
                return 1.0 + change, steps, stop in _EXACT
        change, steps, stop = self._least_squares(Diagonal(data), gap, data, most)
        return 1.0 + change, steps, stop in _CONVERGED

    def _least_squares(
        self, operator: Diagonal | Suited, gap: Floats, data: Aggregate, most: int
    ) -> tuple[Floats, int, int]:
        from scipy.sparse.linalg import LinearOperator, lsmr

        S, d = data.shape
        # LSMR would treat a map much smaller than one as singular, so its norm is scaled to one.
        size = operator.norm() or 1.0
        linear = LinearOperator(
            (d * d, S),
            matvec=lambda omega: operator.apply(omega).ravel() / size,
            rmatvec=lambda y: operator.adjoint(y.reshape(d, d)) / size,
            dtype=np.float64,
        )
        tol = self.tolerance
        found = lsmr(linear, gap.ravel() / size, atol=tol, btol=tol, conlim=0.0, maxiter=most)
        return found[0], int(found[2]), int(found[1])

    def _projected(self, operator: Diagonal, gap: Floats, most: int) -> tuple[Floats, int, bool]:
        omega = np.ones(operator.data.shape[0])
        ahead, momentum = omega, 1.0
        step = 1.0 / operator.largest()
        first = None
        for count in range(1, most + 1):
            slope = operator.adjoint(operator.apply(ahead - 1.0) - gap)
            after = np.maximum(ahead - step * slope, 0.0)
            change = float(np.linalg.norm(after - ahead))
            first = change if first is None else first
            if change <= self.tolerance * first:
                return after, count, True
            if slope @ (after - omega) > 0.0:  # overshot: restart the momentum
                momentum = 1.0
            later = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            ahead = after + (momentum - 1.0) / later * (after - omega)
            omega, momentum = after, later
        return omega, most, False

    def _limit(self, model: Model) -> Solution:
        batch, probability = model_rows(model)
        return self._answer(collect(batch, probability), model)[0]


def _affordable(data: Aggregate) -> int:
    """Number of steps allowed for a limit, so that it takes minutes at most."""
    S, d = data.shape
    return max(_LEAST, int(_WORK / (S * d * d)))

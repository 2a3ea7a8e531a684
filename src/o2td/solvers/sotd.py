"""SOTD, the paper's Algorithm 1, on rows aggregated by state.

Stage 1: `X = argmin 1/2 ||Delta^T X - C||_F^2`. Stage 2: `theta = argmin ||X^T (Delta theta - R)||^2`.

`Delta` (S, d) and `R` estimate `L Phi` and the expected reward by state, `C = sum_s xi_s phi_s phi_s^T`.
The best direction `X* = L^-T Xi Phi` satisfies `Delta^T X* = C`, which motivates stage 1.

What the paper leaves open: stage 1 has a unique solution only if S <= d. Otherwise the answer
depends on where the search starts. From zero, every iterate and the minimum-norm solution have the
form `X = Delta M`, and stage 2 then gives exactly the unweighted Bellman-residual minimiser of the
aggregated data; `start="td"` (`X_0 = Xi Phi`) gives another. Iterates stay in `X_0 + Delta M`, so
with more states than features only `M` (d, d) is kept, and X is never formed.
"""

from __future__ import annotations

import numpy as np

from o2td.arguments import choice, number, whole
from o2td.arrays import Floats
from o2td.linear_algebra import (
    POOR,
    Solution,
    conclude,
    condition_of,
    pseudo_inverse,
    shifted,
    solve,
    triangle,
)
from o2td.model import Model
from o2td.solvers.aggregate import Aggregate, StateSums, collect, estimates
from o2td.solvers.base import Solver, model_rows
from o2td.transitions import Transitions

_CHECK_EVERY = 10
_HUGE = 1e200


class SOTD(Solver):
    """State-aggregated optimal temporal differences.

    Parameters
    ----------
    weighting
        "normalized": sums over visits divided by the sum of the ratios. "ordinary": by the number of
        visits, as printed in the paper.
    start
        `X_0` of stage 1: "zero", or "td" for `Xi Phi`.
    solver
        "direct", "gradient" (descent) or "nesterov" (accelerated, restarted when it overshoots).
    ridge
        Adds `ridge/2 ||X - X_0||^2` to stage 1.
    tolerance, max_iterations
        The iterations stop when `||Delta (Delta^T X - C)||` has fallen to `tolerance` of its first
        value.

    States whose ratios are all zero carry no information about the target; they are excluded and
    counted.

    Examples
    --------
    >>> import numpy as np
    >>> from o2td import SOTD, Transitions
    >>> batch = Transitions.from_table(np.eye(2), [0, 1], [0.0, 1.0], [1, 0], discount=0.5)
    >>> SOTD().fit(batch).theta.round(12)
    array([0.66666667, 1.33333333])
    """

    statistics = (StateSums,)
    solved_with = ("weighting", "start", "solver", "ridge", "tolerance", "max_iterations")

    def __init__(
        self,
        weighting: str = "normalized",
        start: str = "zero",
        solver: str = "direct",
        ridge: float = 0.0,
        tolerance: float = 1e-8,
        max_iterations: int = 10_000,
    ) -> None:
        choice("weighting", weighting, ("normalized", "ordinary"))
        choice("start", start, ("zero", "td"))
        choice("solver", solver, ("direct", "gradient", "nesterov"))
        number("ridge", ridge, low=0.0)
        number("tolerance", tolerance, low=0.0)
        whole("max_iterations", max_iterations, 1)
        self.weighting, self.start, self.solver = weighting, start, solver
        self.ridge, self.tolerance = float(ridge), float(tolerance)
        self.max_iterations = int(max_iterations)

    def _collect(self, batch: Transitions) -> StateSums:
        return collect(batch, who="SOTD")

    def _solve(self, sums: StateSums) -> Solution:
        data, unit, reward = estimates(sums, self.weighting).in_units()
        # ridge in the same unit; once it dominates, its size no longer matters
        ridge = min(float(shifted(np.array(self.ridge), -2 * unit)), _HUGE)
        counts = {"states left out, all their ratios are zero": data.left_out}
        if data.shape[0] == 0:
            return conclude(np.zeros(sums.d), "no data", 0, np.inf, 0.0, 0, counts)
        # X_0^T [Delta, R], which is all that stage 2 needs of X_0
        first = np.zeros((sums.d, sums.d + 1))
        if self.start == "td":
            first = np.column_stack(
                [data.weighted(data.delta), data.weighted(data.reward[:, None])]
            )
        gap = data.gram() - first[:, :-1].T
        condition = 1.0
        if self.solver == "direct":
            change, condition = self._direct(data, gap, ridge, sums.rows)
            steps, done = 0, True
        else:
            change, steps, done = self._iterate(data, gap, ridge)
        system = first + change
        answer = solve(system[:, :-1], system[:, -1], 0.0, counts, rows=sums.rows)
        status = answer.status if done else "not converged"
        if status == "ok" and condition * POOR > 1.0:
            status = "ill-conditioned"  # both stages count, and the second may hide the first
        condition = max(answer.condition, condition)
        theta = shifted(answer.theta, reward - unit)
        return conclude(theta, status, answer.rank, condition, answer.residual, steps, counts)

    def _direct(
        self, data: Aggregate, gap: Floats, ridge: float, rows: int
    ) -> tuple[Floats, float]:
        """`(X - X_0)^T [Delta, R]` for `X - X_0 = (Delta Delta^T + ridge)^+ Delta gap`."""
        d = data.shape[1]
        R = triangle((block for _, block in data.blocks()), d + 1)
        U, W = pseudo_inverse(R[:, :d], ridge, rows)
        condition = 1.0 if ridge else condition_of(R[:, :d], rows)
        return gap.T @ (W @ (U.T @ R)), condition

    def _iterate(self, data: Aggregate, gap: Floats, ridge: float) -> tuple[Floats, int, bool]:
        """The same by `X <- X - eta Delta (Delta^T X - gap)`, from zero."""
        states, d = data.shape
        if states > d:
            # X = Delta M: descend in M, with the products Delta^T [Delta, R] taken once
            both = sum(np.asarray(block[:, :d].T @ block) for _, block in data.blocks())
            gram = np.asarray(both)[:, :d]
            M, steps, done = self._descend(gram, gap, gram, ridge)
            return M.T @ both, steps, done
        delta = data.delta if isinstance(data.delta, np.ndarray) else data.delta.toarray()
        X, steps, done = self._descend(delta @ delta.T, delta @ gap, None, ridge)
        return X.T @ np.column_stack([delta, data.reward]), steps, done

    def _descend(
        self, curvature: Floats, target: Floats, metric: Floats | None, ridge: float
    ) -> tuple[Floats, int, bool]:
        """Solve `(curvature + ridge) X = target` by descent, from zero.

        The stopping rule is on the gradient in terms of `X` proper: with `X = Delta M` its squared
        norm is `<slope, Delta^T Delta slope>`, hence `metric`.
        """

        def size(slope: Floats) -> float:
            pulled = slope if metric is None else metric @ slope
            return float(np.sqrt(max(0.0, np.sum(slope * pulled))))

        X = np.zeros_like(target)
        Y, momentum = X, 1.0
        largest = float(np.linalg.eigvalsh(curvature)[-1]) + ridge
        limit = self.tolerance * size(target)
        for step in range(self.max_iterations):
            slope = curvature @ Y + ridge * Y - target
            if step % _CHECK_EVERY == 0 and size(slope) <= limit:
                return Y, step, True
            later = Y - slope / largest
            if self.solver == "gradient":
                X = Y = later
                continue
            if np.sum(slope * (later - X)) > 0.0:  # overshot: restart the momentum
                momentum = 1.0
            after = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            Y = later + (momentum - 1.0) / after * (later - X)
            X, momentum = later, after
        return X, self.max_iterations, False

    def _limit(self, model: Model) -> Solution:
        batch, probability = model_rows(model)
        return self._solve(collect(batch, probability))

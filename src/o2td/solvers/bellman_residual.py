"""Bellman-residual minimisation: `theta = argmin_theta ||L Phi theta - R||^2`, weighted or not.

Three ways to estimate the residual:

- "double": two independent successors per row, `A = sum rho rho_2 (phi - gamma_2 phi'_2)
  (phi - gamma phi')^T`, `b = sum rho rho_2 (phi - gamma_2 phi'_2) r`. Direction `X = Xi L Phi`.
- "aggregated": rows summed by state first, `min sum_s w_s (Delta_s·theta - R_s)^2` with `w` the
  visits or one. The same limit; with `weighted=False` the limit of SOTD from zero where S > d.
- "single": `min sum rho delta^2`, one successor for both factors. Biased: noise in the successor is
  penalised like an error. No direction X.

Schweitzer and Seidmann (1985), Baird (1995).
"""

from __future__ import annotations

from itertools import chain
from typing import Self

import numpy as np

from o2td.arguments import choice, number, switch
from o2td.errors import InputError
from o2td.linear_algebra import Solution, conclude, solve, triangle
from o2td.model import Model
from o2td.solvers.aggregate import StateSums, collect, estimates
from o2td.solvers.base import Solver, Statistics, model_rows
from o2td.solvers.system import Side, System, product
from o2td.transitions import Transitions


class BellmanResidual(Solver):
    """Minimiser of the squared Bellman residual.

    Parameters
    ----------
    sampling
        "double", "aggregated" or "single", as above. "auto" takes the first of these that the first
        batch allows: with a second successor, with states, with neither.
    weighted
        Weight states by their visits. False (each visited state counts once) needs "aggregated".
    weighting
        "normalized" or "ordinary" sums over visits, as in `SOTD`; for "aggregated" only.
    ridge
        Added to the diagonal of the normal equations.

    Examples
    --------
    >>> import numpy as np
    >>> from o2td import BellmanResidual, Transitions
    >>> batch = Transitions(np.eye(2), [0.0, 1.0], np.eye(2)[[1, 0]], discount=0.5)
    >>> BellmanResidual().fit(batch).theta.round(12)
    array([0.66666667, 1.33333333])
    """

    statistics = (System, StateSums)
    solved_with = ("weighting", "ridge")

    def __init__(
        self,
        sampling: str = "auto",
        weighted: bool = True,
        weighting: str = "normalized",
        ridge: float = 0.0,
    ) -> None:
        choice("sampling", sampling, ("auto", "double", "aggregated", "single"))
        choice("weighting", weighting, ("normalized", "ordinary"))
        number("ridge", ridge, low=0.0)
        switch("weighted", weighted)
        if not weighted and sampling in ("double", "single"):
            raise InputError(
                f'weighted=False needs states: pass sampling="aggregated", not {sampling!r}'
            )
        self.sampling, self.weighted = sampling, switch("weighted", weighted)
        self.weighting, self.ridge = weighting, float(ridge)

    @staticmethod
    def _extra(d: int) -> tuple[int]:
        return (1,)

    def _collect(self, batch: Transitions) -> Statistics:
        sampling = self._resolved(batch)
        if sampling == "aggregated":
            return collect(batch, who="BellmanResidual")
        ones = np.ones(batch.n)
        right = Side(ones, 1.0, batch.discount)
        kind = np.array([float(sampling == "double")])  # rows of two kinds must not be mixed
        if sampling == "single":
            left = Side(batch.rho, 1.0, batch.discount)
        elif batch.rho_2 is None or batch.discount_2 is None:
            raise InputError(
                "BellmanResidual(sampling='double') needs a second successor; pass next_phi_2"
                " (or next_state_2), or choose another sampling"
            )
        else:
            left = Side(batch.rho * batch.rho_2, 1.0, batch.discount_2, "next_phi_2")
        return product(batch, left, right, batch.reward, kind * batch.n)

    def _resolved(self, batch: Transitions) -> str:
        if self.sampling != "auto":
            return self.sampling
        sums = self._sums
        if isinstance(sums, StateSums) or not self.weighted:
            return "aggregated"
        if isinstance(sums, System) and sums.rows:
            return "double" if sums.extra[0] else "single"
        if batch.rho_2 is not None:
            return "double"
        return "single" if batch.state is None else "aggregated"

    def fit(self, transitions: Transitions) -> Self:
        """Forget everything (even the kind of sampling), learn from `transitions` and solve."""
        held, self._sums = self._sums, None
        try:
            return super().fit(transitions)
        except BaseException:
            self._sums = held
            raise

    def _solve(self, sums: Statistics) -> Solution:
        if isinstance(sums, System):
            if sums.extra[0] not in (0.0, float(sums.rows)):
                raise InputError(
                    "rows with and without a second successor were merged; fit them apart"
                )
            return solve(sums.A, sums.b, self.ridge, rows=sums.rows)
        assert isinstance(sums, StateSums)  # noqa: S101
        return self._aggregated(sums)

    def _aggregated(self, sums: StateSums) -> Solution:
        data, d = estimates(sums, self.weighting), sums.d
        counts = {"states left out, all their ratios are zero": data.left_out}
        if data.shape[0] == 0:
            return conclude(np.zeros(d), "no data", 0, np.inf, 0.0, 0, counts)
        root = np.sqrt(data.xi if self.weighted else np.ones(data.shape[0]))
        weighted = (root[part, None] * block for part, block in data.blocks())
        shrink = [np.sqrt(self.ridge) * np.eye(d, d + 1)] if self.ridge else []
        R = triangle(chain(weighted, shrink), d + 1)[:d]
        return solve(R[:, :d], R[:, d], 0.0, counts, triangular=True, rows=sums.rows)

    def _limit(self, model: Model) -> Solution:
        batch, probability = model_rows(model)
        if self.sampling == "single":
            ones = np.ones(batch.n)
            left = Side(probability * batch.rho, 1.0, batch.discount)
            sums = product(batch, left, Side(ones, 1.0, batch.discount), batch.reward)
            return solve(sums.A, sums.b, rows=sums.rows)
        return self._aggregated(collect(batch, probability))

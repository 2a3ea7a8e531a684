"""Monte Carlo: regression of importance-weighted returns on features.

`theta = argmin sum_t w_t (y_t / w_t - phi_t·theta)^2`, that is
`(sum w_t phi_t phi_t^T) theta = sum phi_t y_t`, where, going backwards along a trajectory,

- per decision: `y_t = rho_t (r_{t+1} + gamma_{t+1} y_{t+1})`, and
  `w_t = rho_t ((1 - gamma_{t+1}) + gamma_{t+1} w_{t+1})`, the mean of the ratios up to where the
  return would end if the discount were a chance of ending (Precup, Sutton and Singh 2000; this
  normalisation after Mahmood, van Hasselt and Sutton 2014);
- whole trajectories: `w_t` is the product of all ratios that follow, `y_t = w_t G_t`.

Unweighted means `w_t = 1` in the regression: unbiased, with a larger variance. All four have the
best direction `X* = L^-T Xi Phi` and the largest variance of all solvers.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from o2td import chain
from o2td.arguments import choice, number, switch
from o2td.arrays import Floats
from o2td.errors import InputError
from o2td.linear_algebra import Solution, conclude, solve
from o2td.model import Model
from o2td.solvers import row_loops
from o2td.solvers.base import (
    Arrays,
    Solver,
    Statistics,
    refuse_overflow,
)
from o2td.solvers.regression import regress
from o2td.solvers.system import Side, product
from o2td.transitions import Transitions

_END = (0.0, 1.0)  # return and weight after the last row of a trajectory


@dataclass(eq=False)
class Returns(Statistics):
    """Sums over finished trajectories, and over the unfinished last one as a function of its rest.

    With `(Y, W)` the return and weight of the next row, an open row has
    `y = y_1 + y_Y Y + y_W W` and `w = w_1 + w_W W`; `open_b` has a column for each of the three,
    `open_a` a matrix for each of the two. `head_y`, `head_w` are those of the first row.
    """

    A: Any
    b: Floats
    open_a: Floats
    open_b: Floats
    head_y: Floats
    head_w: Floats
    counts: Floats  # rows in trajectories: terminated, truncated, open
    head_starts: bool
    head_open: bool
    keep: bool
    rows: int

    @property
    def d(self) -> int:  # type: ignore[override]
        """Number of features."""
        return len(self.b)

    def then(self, other: Self) -> Self:
        """`self` followed by `other`, whose first row may continue the open trajectory."""
        if not self.rows or not other.rows:
            return other if other.rows else self
        joined = type(self)(**vars(self))
        joined.rows = self.rows + other.rows
        finished, joined.counts = self.counts.copy(), other.counts.copy()
        joined.counts[:2] += finished[:2]
        joined.A, joined.b = self.A + other.A, self.b + other.b
        joined.open_a, joined.open_b = other.open_a, other.open_b
        open_b, open_a = self.open_b, self.open_a
        if other.head_starts:
            joined._finish(open_a, open_b, *_END, finished[2], truncated=True)
        elif other.head_open:
            joined.open_b = other.open_b + _compose(open_b, other.head_y, other.head_w)
            joined.open_a = other.open_a + _compose_weight(open_a, other.head_w)
            joined.counts[2] += finished[2]
        else:
            Y, W = float(other.head_y[0]), float(other.head_w[0])
            cut = bool(other.head_w[2])
            joined._finish(open_a, open_b, Y, W, finished[2], truncated=cut)
        joined._head_of(self, other)
        refuse_overflow(joined.arrays())
        return joined

    def _head_of(self, first: Self, other: Self) -> None:
        if not first.head_open:
            return
        if other.head_starts:
            y, w = np.array([*_END[:1], 0.0, 0.0]), np.array([_END[1], 0.0, 1.0])
        else:
            y, w = other.head_y, other.head_w
        self.head_y = _compose(first.head_y[None], y, w)[0]
        weight = _compose_weight(first.head_w[:2, None, None], w).ravel()
        self.head_w = np.array([*weight, w[2]])
        self.head_open = other.head_open and not other.head_starts

    def _finish(
        self, A: Floats, b: Floats, Y: float, W: float, rows: float, truncated: bool
    ) -> None:
        """Add an open trajectory whose remainder is known."""
        self.counts[1 if truncated else 0] += rows
        if truncated and not self.keep:
            return
        self.b = self.b + b @ np.array([1.0, Y, W])
        self.A = self.A + A[0] + W * A[1]

    def closed(self) -> Self:
        """The sums if the open trajectory ends where the data end."""
        ended = type(self)(**vars(self))
        ended.counts = self.counts.copy()
        ended._finish(self.open_a, self.open_b, *_END, self.counts[2], truncated=True)
        return ended

    def arrays(self) -> Arrays:
        """All sums by name."""
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """The inverse of `arrays`, shapes checked."""
        d = len(arrays["b"])
        shapes = {
            "A": (d, d),
            "open_a": (2, d, d),
            "open_b": (d, 3),
            "head_y": (3,),
            "head_w": (3,),
        }
        for name, shape in {**shapes, "counts": (3,)}.items():
            if arrays[name].shape != shape:
                raise ValueError(f"{name} has the wrong shape")
        flags = {name: bool(arrays[name]) for name in ("head_starts", "head_open", "keep")}
        values: dict[str, Any] = {**arrays, **flags, "rows": int(arrays["rows"])}
        return cls(**values)


class MonteCarlo(Solver):
    """Regression on importance-weighted returns.

    Parameters
    ----------
    ratios
        "per-decision": each reward is weighted by the ratios up to it. "trajectory": it is weighted
        by all ratios until the trajectory ends.
    weighted
        Divide by the sum of the weights instead of the number of rows.
    truncated
        "keep": truncated trajectories count with the rewards seen, as if nothing followed.
        "drop": only trajectories that terminate (discount 0) count.
    ridge
        Added to the diagonal of the normal equations.

    Examples
    --------
    >>> import numpy as np
    >>> from o2td import MonteCarlo, Transitions
    >>> batch = Transitions(np.eye(2), [0.0, 1.0], np.eye(2)[[1, 0]], discount=[0.5, 0.0])
    >>> MonteCarlo().fit(batch).theta
    array([0.5, 1. ])
    """

    statistics = (Returns,)
    solved_with = ("ridge",)

    def __init__(
        self,
        ratios: str = "per-decision",
        weighted: bool = True,
        truncated: str = "keep",
        ridge: float = 0.0,
    ) -> None:
        choice("ratios", ratios, ("per-decision", "trajectory"))
        choice("truncated", truncated, ("keep", "drop"))
        number("ridge", ridge, low=0.0)
        self.ratios, self.weighted = ratios, switch("weighted", weighted)
        self.truncated, self.ridge = truncated, float(ridge)

    def _collect(self, batch: Transitions) -> Returns:
        n, d = batch.n, batch.d
        if batch.sparse and d > 4096:
            raise InputError(f"phi has {d} sparse features; MonteCarlo takes at most 4096")
        y, w, kind = np.zeros((n, 3)), np.zeros((n, 2)), np.zeros(n, dtype=np.int64)
        vectors = (batch.reward, batch.discount, batch.rho, batch.start)
        row_loops.returns(*vectors, self.ratios == "trajectory", y, w, kind)
        head_w = np.array([*w[0], float(kind[0] == 1)]) if n else np.zeros(3)
        head_y = y[0].copy() if n else np.zeros(3)
        if not self.weighted:
            w[:] = [1.0, 0.0]
        first = int(np.count_nonzero(kind != 2))  # open rows are the last ones
        used = (kind == 0) | ((kind == 1) & (self.truncated == "keep"))
        done = _sums(batch[:first], w[:first, 0] * used[:first], y[:first, 0] * used[:first])
        rest = batch[first:]
        parts = [_sums(rest, w[first:, 0], y[first:, 0]), _sums(rest, w[first:, 1], y[first:, 1])]
        last = np.asarray(rest.phi.T @ y[first:, 2]) if rest.n else np.zeros(d)
        return Returns(
            *done,
            np.stack([part[0] for part in parts]),
            np.column_stack([parts[0][1], parts[1][1], last]),
            head_y,
            head_w,
            np.bincount(kind, minlength=3).astype(np.float64),
            head_starts=bool(n and batch.start[0]),
            head_open=bool(n and kind[0] == 2),
            keep=self.truncated == "keep",
            rows=n,
        )

    def _solve(self, sums: Returns) -> Solution:
        sums = sums.closed()
        cut = int(sums.counts[1])
        dropped = "rows of truncated trajectories dropped"
        kept = "rows of truncated trajectories counted as if nothing followed"
        counts = {kept if sums.keep else dropped: cut}
        if not sums.keep and not sums.counts[0]:
            return conclude(np.zeros(sums.d), "no data", 0, np.inf, 0.0, 0, counts)
        return solve(sums.A, sums.b, self.ridge, counts, rows=sums.rows)

    def _limit(self, model: Model) -> Solution:
        seen = np.where(model.visits > 0.0, model.visits, 1.0)
        reward = model.by_state(model.rho * model.reward) / seen
        flow = model.flow(model.rho * model.discount / seen[model.state])
        weight = model.visits
        if self.weighted:
            weight = np.where(model.by_state(model.rho) > 0.0, weight, 0.0)
        return regress(model.phi, chain.solve(flow, reward), weight)


def _sums(batch: Transitions, weight: Floats, y: Floats) -> tuple[Floats, Floats]:
    if not weight.any() and not y.any():
        return np.zeros((batch.d, batch.d)), np.zeros(batch.d)
    system = product(batch, Side(np.ones(batch.n)), Side(weight), y)
    return system.A, system.b


def _compose(rows: Floats, y: Floats, w: Floats) -> Floats:
    """Coefficients on the next remainder, from those on this one and its dependence on the next."""
    constant = rows[:, 0] + rows[:, 1] * y[0] + rows[:, 2] * w[0]
    return np.column_stack([constant, rows[:, 1] * y[1], rows[:, 1] * y[2] + rows[:, 2] * w[1]])


def _compose_weight(A: Floats, w: Floats) -> Floats:
    return np.stack([A[0] + w[0] * A[1], w[1] * A[1]])

"""Plug-in optimum: `V = L^-1 R` on the estimated model, then `theta = argmin ||Phi theta - V||_xi`.

Rows aggregated by state give a model of the target's chain. One sparse solve gives its values, and
a regression weighted by visits the best weights, so the direction is the best one, `X* = L^-T Xi
Phi`, for the estimated model. This is what SOTD approximates. Successors that were never visited
(or only with ratio 0) have no row of their own: they get LSTD's prediction and are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from o2td import chain
from o2td.arguments import choice
from o2td.arrays import Floats, Ints
from o2td.errors import InputError, NoAnswerError
from o2td.linear_algebra import Solution, conclude, solve
from o2td.model import Model
from o2td.solvers.aggregate import StateSums, collect
from o2td.solvers.base import Arrays, Solver, Statistics, model_rows, refuse_overflow
from o2td.solvers.groups import distinct
from o2td.solvers.regression import regress
from o2td.transitions import Transitions


@dataclass(eq=False)
class ModelSums(Statistics):
    """Sums by state, sums of `rho gamma` by pair of states, and features of the successors."""

    here: StateSums
    ahead: StateSums
    pair: Ints  # (2, m): state and successor, sorted
    weight: Floats

    @property
    def d(self) -> int:  # type: ignore[override]
        """Number of features."""
        return self.here.d

    @property
    def rows(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return self.here.rows

    def then(self, other: Self) -> Self:
        """Sums over both."""
        both = (np.concatenate([self.pair, other.pair], 1), np.append(self.weight, other.weight))
        pair, weight = _unique_pairs(*both)
        refuse_overflow({"weight": weight})
        here, ahead = self.here.then(other.here), self.ahead.then(other.ahead)
        return type(self)(here, ahead, pair, weight)

    def arrays(self) -> Arrays:
        """All sums by name."""
        parts = {"here": self.here.arrays(), "ahead": self.ahead.arrays()}
        named = {f"{part}.{k}": v for part, arrays in parts.items() for k, v in arrays.items()}
        return {**named, "pair": self.pair, "weight": self.weight}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """The inverse of `arrays`, shapes checked."""
        here, ahead = (
            StateSums.from_arrays(
                {k.removeprefix(p): v for k, v in arrays.items() if k.startswith(p)}
            )
            for p in ("here.", "ahead.")
        )
        pair, weight = arrays["pair"], arrays["weight"]
        if pair.shape != (2, len(weight)) or weight.ndim != 1 or here.d != ahead.d:
            raise ValueError("pairs have the wrong shape")
        if not (np.isin(pair[0], here.state).all() and np.isin(pair[1], ahead.state).all()):
            raise ValueError("pairs are of states without sums")
        return cls(here, ahead, pair, weight)


class PluginOptimal(Solver):
    """Values of the estimated model, projected onto the features.

    Parameters
    ----------
    weighting
        "normalized": the model's transitions are sums divided by the sum of the ratios.
        "ordinary": they are divided by the number of visits.

    Examples
    --------
    >>> import numpy as np
    >>> from o2td import PluginOptimal, Transitions
    >>> table = np.ones((2, 1))
    >>> batch = Transitions.from_table(table, [0, 1], [0.0, 1.0], [1, 0], discount=0.5)
    >>> PluginOptimal().fit(batch).theta.round(12)
    array([1.])
    """

    statistics = (ModelSums,)
    solved_with = ("weighting",)

    def __init__(self, weighting: str = "normalized") -> None:
        choice("weighting", weighting, ("normalized", "ordinary"))
        self.weighting = weighting

    def _collect(self, batch: Transitions) -> ModelSums:
        return _collect(batch, np.ones(batch.n))

    def _solve(self, sums: ModelSums) -> Solution:
        here = sums.here
        kept = np.flatnonzero(here.rho > 0.0)
        counts = {"states left out, all their ratios are zero": len(here.rho) - len(kept)}
        if not len(kept):
            return conclude(np.zeros(sums.d), "no data", 0, np.inf, 0.0, 0, counts)
        state, phi = here.state[kept], here.features()[kept]
        by = (here.rho if self.weighting == "normalized" else here.visits)[kept]
        source, there, weight = self._links(sums, state, by)
        reward = here.reward[kept] / by
        outside = there < 0
        if outside.any():
            strange = np.unique(sums.pair[1][np.isin(sums.pair[0], state)][outside])
            counts["successors never visited take the prediction of LSTD"] = len(strange)
            guess = self._predicted(sums, phi, kept)
            reward = reward + np.bincount(
                source[outside],
                weight[outside] * guess(sums.pair[1][np.isin(sums.pair[0], state)][outside]),
                minlength=len(state),
            )
        inside = (source[~outside], there[~outside], weight[~outside])
        value, status = _values(*inside, reward, sums.rows)
        answer = regress(phi, value, here.visits[kept], counts, sums.rows)
        if status != "ok" and answer.status == "ok":
            numbers = (answer.rank, answer.condition, answer.residual)
            return conclude(answer.theta, status, *numbers, 0, counts)
        return answer

    def _links(self, sums: ModelSums, state: Ints, by: Floats) -> tuple[Ints, Ints, Floats]:
        """Positions of source and successor in `state` (-1 if absent), and `P_gamma`."""
        known = np.isin(sums.pair[0], state)
        source = np.searchsorted(state, sums.pair[0][known])
        ahead = sums.pair[1][known]
        there = np.minimum(np.searchsorted(state, ahead), len(state) - 1)
        there = np.where(state[there] == ahead, there, -1)
        return source, there, sums.weight[known] / by[source]

    def _predicted(self, sums: ModelSums, phi: Any, kept: Ints) -> Any:
        A = phi.T @ sums.here.delta[kept]
        A = A.toarray() if hasattr(A, "toarray") else A
        theta = solve(A, np.asarray(phi.T @ sums.here.reward[kept]), rows=sums.rows).theta
        value = np.asarray(sums.ahead.features() @ theta)
        return lambda states: value[np.searchsorted(sums.ahead.state, states)]

    def _limit(self, model: Model) -> Solution:
        return self._solve(_collect(*model_rows(model)))


def _collect(batch: Transitions, weight: Floats) -> ModelSums:
    here = collect(batch, weight, "PluginOptimal")
    if batch.next_state is None:
        raise InputError(
            "PluginOptimal follows successors by state and these have none; pass next_state= too"
        )
    alive = np.flatnonzero((batch.discount > 0.0) & (batch.rho > 0.0))
    assert batch.state is not None  # noqa: S101
    pair = np.stack([batch.state[alive], batch.next_state[alive]])
    each = (weight * batch.rho * batch.discount)[alive]
    return ModelSums(here, _successors(batch, alive), *_unique_pairs(pair, each))


def _successors(batch: Transitions, alive: Ints) -> StateSums:
    """Features of the successor states; only these are used of the sums."""
    assert batch.next_state is not None  # noqa: S101
    state, first, where = distinct(batch.next_state[alive])
    nothing = np.zeros(len(state))
    visits = np.bincount(where, minlength=len(state)).astype(np.float64)
    phi = None if batch.layout == "table" else batch.next_phi[alive[first]]
    from scipy.sparse import csr_array

    empty = csr_array((len(state), batch.d))
    return StateSums(state, visits, nothing, nothing, empty, phi, batch.table, batch.n)


def _unique_pairs(pair: Ints, weight: Floats) -> tuple[Ints, Floats]:
    """The pairs that occur, sorted, and the sums of their weights in the order of the rows."""
    m, k = (int(part.max(initial=-1)) + 1 for part in pair)
    if m * k <= 4 * len(weight):  # few enough for one entry each
        place = pair[0] * k + pair[1]
        found = np.flatnonzero(np.bincount(place, minlength=m * k))
        total = np.bincount(place, weight, minlength=m * k)[found]
        return np.stack(np.divmod(found, max(k, 1))), total.astype(np.float64, copy=False)
    order = np.lexsort((pair[1], pair[0]))
    pair, weight = pair[:, order], weight[order]
    new = np.ones(pair.shape[1], dtype=np.bool_)
    new[1:] = (np.diff(pair, axis=1) != 0).any(axis=0)
    total = np.bincount(np.cumsum(new) - 1, weight, minlength=int(new.sum()))
    return pair[:, new], total.astype(np.float64, copy=False)


def _values(
    source: Ints, there: Ints, weight: Floats, reward: Floats, rows: int
) -> tuple[Floats, str]:
    from scipy.sparse import csr_array, eye_array

    n = len(reward)
    K = csr_array((weight, (source, there)), shape=(n, n))
    try:
        return chain.solve(K, reward), "ok"
    except NoAnswerError:
        # A closed set without discount, or ratios that add up to more than one.
        L: Any = csr_array(eye_array(n) - K)
        answer = solve(L.toarray() if n <= chain.DENSE_LIMIT else L, reward, rows=rows)
        return answer.theta, answer.status

"""A finite problem as algorithms may see it: expectations over transitions, without the truth.

A `Model` lists every (s, a, s') that the behaviour produces, with its long-run probability. Learners
and solvers turn it into their own expected behaviour (mean dynamics, limits), so an equation is
written once and serves sampled rows and exact expectations alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from o2td import chain
from o2td.arguments import instance
from o2td.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Model:
    """Every transition of the behaviour with its long-run probability.

    `phi` (S, d), `visits` (S,) is xi, `interest` (S,); the others have one entry per transition:
    `probability` is xi(s) b(a|s) P(s'|s, a), and sums to one.
    """

    phi: Any
    visits: Floats
    interest: Floats
    state: Ints
    next_state: Ints
    probability: Floats
    reward: Floats
    discount: Floats
    rho: Floats
    target_prob: Floats
    behavior_prob: Floats

    @property
    def n_states(self) -> int:
        """Number of states, unvisited ones included."""
        return int(self.phi.shape[0])

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.phi.shape[1])

    def flow(self, weight: Floats) -> Any:
        """`F(s, s') = E[weight; s_t = s, s_{t+1} = s']`, dense for small problems, else CSR."""
        n, mass = self.n_states, weight * self.probability
        if n <= chain.DENSE_LIMIT:
            return np.bincount(self._cell, mass, minlength=n * n).reshape(n, n)
        from scipy.sparse import coo_array

        return coo_array((mass, (self.state, self.next_state)), shape=(n, n)).tocsr()

    def by_state(self, weight: Floats) -> Floats:
        """`E[weight; s_t = s]` for every state."""
        if len(self.state) == 0:
            return np.zeros(self.n_states)
        sums = np.add.reduceat(weight * self.probability, self._run)
        return np.bincount(self.state[self._run], sums, self.n_states).astype(np.float64)

    @cached_property
    def _cell(self) -> Ints:
        """Places of `(s, s')` in a dense matrix."""
        return self.state * self.n_states + self.next_state

    @cached_property
    def _run(self) -> Ints:
        """Where transitions of a state follow those of another."""
        return np.flatnonzero(np.diff(self.state, prepend=-1))

    def share(self, weight: Floats) -> Floats:
        """`E[weight | s]`; 1 where that is 1 up to rounding, and where a state is never visited."""
        share = np.where(self.visits > 0.0, self.by_state(weight) / self._seen, 1.0)
        return np.where(np.abs(share - 1.0) > 1e-12, share, 1.0)

    def gram(self, weight: Floats) -> Floats:
        """`E[weight phi phi^T]`."""
        shares = self.by_state(weight)
        return np.asarray(self.once(("gram", shares), lambda: self.products(shares)))

    def cross(self, weight: Floats) -> Floats:
        """`E[weight phi phi'^T]`."""

        def product() -> Any:
            return self.table.T @ (self.flow(weight) @ self.table)

        return np.asarray(self.once(("cross", weight), product))

    def products(self, weight: Floats) -> Floats:
        """`Phi^T diag(weight) Phi`."""
        return np.asarray(self.table.T @ (weight[:, None] * self.table))

    @cached_property
    def table(self) -> Floats:
        """The features as a dense array."""
        if isinstance(self.phi, np.ndarray):
            return self.phi
        return np.asarray(self.once(("table",), self.phi.toarray))

    @cached_property
    def _seen(self) -> Floats:
        """The visits, 1 where there are none."""
        return np.where(self.visits > 0.0, self.visits, 1.0)

    def once(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """What `make` gives; a model that is asked often may keep it by `key`.

        Only for what does not depend on the rewards: replicas with other rewards share it.
        """
        return make()

    def step(self, coefficient: Floats) -> Any:
        """`K(s, s') = E[coefficient; s_{t+1} = s' | s_t = s]`; `coefficient` by transition."""
        return self.flow(coefficient / self._seen[self.state])

    def traced(self, inflow: Any, coefficient: Floats) -> Any:
        """`Y` solving `Y = inflow + K^T Y`: what accumulates along the chain by `coefficient`."""

        def accumulated() -> Floats:
            return chain.solve_transposed(self.step(coefficient), inflow)

        return self.once(("traced", inflow, coefficient), accumulated)

    def ahead(self, value: Floats, coefficient: Floats) -> Floats:
        """`Y` solving `Y = value + K Y`: what is to come along the chain, by `coefficient`."""
        return chain.solve(self.step(coefficient), value)

    def features_ahead(self, weight: Floats, coefficient: Floats) -> Floats:
        """`ahead` of `weight(s) phi(s)`."""

        def summed() -> Floats:
            return self.ahead(weight[:, None] * self.table, coefficient)

        return np.asarray(self.once(("ahead", weight, coefficient), summed))


def known_model(value: object) -> Model:
    """`value`, which must be a model: what algorithms give on one is asked for by users, too."""
    return instance("model", value, Model, "what exact.model(problem) returns")

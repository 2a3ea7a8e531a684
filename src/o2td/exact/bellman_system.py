"""The parts of every exact quantity: `P_gamma`, `R`, `V`, `xi` and the features, computed once.

A problem is immutable, so its system is cached as long as the problem lives.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from o2td import chain
from o2td.arrays import Floats
from o2td.errors import InputError, NoAnswerError
from o2td.linear_algebra import Compressed, column_sizes, compress, orthonormalizer
from o2td.problem import Problem

_known: WeakKeyDictionary[Problem, BellmanSystem] = WeakKeyDictionary()


class BellmanSystem:
    """The target's Bellman operator and the weights of the metrics."""

    def __init__(self, problem: Problem) -> None:
        _check_active(problem)
        self.phi = problem.features
        self.active = problem.active
        self.P_gamma = problem.discounted_matrix(problem.target)
        self.reward = problem.expected_reward(problem.target)
        self._problem = ref(problem)  # systems are cached by problem and must not keep it alive

    @cached_property
    def visits(self) -> Floats:
        """`xi`; the target's value does not need it, and may exist where `xi` does not."""
        problem = self._problem()
        if problem is None:
            raise RuntimeError("the problem of this system is gone")
        return problem.visits

    @cached_property
    def weight(self) -> Floats:
        """`xi` in the states in which the target is followed, normalised."""
        weight = np.where(self.active, self.visits, 0.0)
        if weight.sum() <= 0.0:
            raise NoAnswerError(
                "the behaviour visits no state in which the target is followed, so nothing weights"
                " an error; follow the target in a state that the behaviour visits"
            )
        return np.asarray(weight / weight.sum())

    @cached_property
    def value(self) -> Floats:
        """`V = L^-1 R`."""
        value = chain.solve(self.P_gamma, self.reward)
        if not np.isfinite(value).all():
            s = int(np.argmax(~np.isfinite(value)))
            raise NoAnswerError(
                f"the value of state {s} is beyond the largest number; divide the rewards by some"
            )
        return value

    @cached_property
    def delta(self) -> Any:
        """`L Phi`, CSR if both are."""
        return self.phi - self.P_gamma @ self.phi

    @cached_property
    def scale(self) -> Floats:
        """The scale of each feature: its root mean square over the visited states."""
        return column_sizes(self.phi, self.visits)

    @cached_property
    def best(self) -> Compressed:
        """The weighted regression of V on the features."""
        return compress(self.phi, self.value, self.weight, self.scale)

    @cached_property
    def basis(self) -> Floats:
        """`B` (d, r) such that the columns of `Phi B` are orthonormal in the weighted norm."""
        return orthonormalizer(self.phi, self.weight)

    @cached_property
    def unweighted(self) -> Floats:
        """As `basis`, with every state that counts weighted by one."""
        return orthonormalizer(self.phi, (self.weight > 0.0).astype(np.float64))


def finite_problem(problem: Problem) -> Problem:
    """Raise unless `problem` is a finite problem."""
    if not isinstance(problem, Problem):
        raise InputError(
            f"exact quantities need a finite Problem, got {type(problem).__name__};"
            " for a simulated one use metrics from held-out rows"
        )
    return problem


def system(problem: Problem) -> BellmanSystem:
    """The system of a finite problem, computed on first use."""
    finite_problem(problem)
    if problem not in _known:
        _known[problem] = BellmanSystem(problem)
    return _known[problem]


def _check_active(problem: Problem) -> None:
    """Check that active states lead to inactive ones only by transitions of discount 0."""
    p = problem.pairs
    followed = problem.target[p.state, p.action] > 0.0
    bad = followed & ~problem.active[p.next_state] & (p.discount > 0.0)
    if bad.any():
        k = int(np.argmax(bad))
        raise InputError(
            f"the target is followed in state {p.state[k]} but not in its successor"
            f" {p.next_state[k]}, whose value then has no meaning; give that transition discount 0"
        )

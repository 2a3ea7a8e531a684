"""Garnet problems: random sparse MDPs (Bhatnagar, Sutton, Ghavamzadeh & Lee 2009), off-policy."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td.arguments import switch, unit, whole
from o2td.arrays import Floats, Ints, Seed
from o2td.domains.common import fitting, generator, shares
from o2td.errors import InputError
from o2td.problem import Problem

MAX_PEAK = 64  # all beyond is the same: one action
_FAINT = 1e-280


def garnet(
    states: int = 30,
    actions: int = 4,
    features: int = 8,
    branching: int = 3,
    seed: Seed = 0,
    discount: float = 0.95,
    peak: int = 3,
    least: float = 0.02,
    on_policy: bool = False,
) -> Problem:
    """Sparse random MDP with peaked policies that disagree, so that it is strongly off-policy.

    Every (s, a) has `branching` successors, drawn without replacement, with probabilities
    proportional to U[0, 1]. One successor of action 0 is the next state of a random cycle through
    all states, so every state is visited. Rewards `r(s, a)` are uniform in [0, 1], and so are the
    features except the last, which is 1. Any number of states works: nothing dense is built.

    Parameters
    ----------
    states, actions, features, branching : int
        Number of each; `branching` is the number of successors per state and action.
    seed : int or several
        Seed of the problem itself, not of its samples.
    discount : float
        gamma of every step that does not end an episode.
    peak : int
        Policies are proportional to `U[0, 1]^(2^peak)`: 0 is mild, 5 nearly deterministic, 64 the
        maximum.
    least : float
        Smallest probability of any action under the behaviour, so that it covers the target.
    on_policy : bool
        Whether the target equals the behaviour.

    Examples
    --------
    >>> problem = garnet(states=50, branching=2, seed=1)
    >>> len(problem.pairs.state) == 50 * 4 * 2
    True
    >>> bool(problem.behavior.min() > 0.0199 and problem.visits.min() > 0)
    True
    """
    n, m, d = (
        whole("states", states, 1),
        whole("actions", actions, 1),
        whole("features", features, 1),
    )
    k = whole("branching", branching, 1)
    peak = whole("peak", peak, 0, MAX_PEAK)
    if k > n:
        raise InputError(f"branching is {k} but there are only {n} states to go to")
    fitting(n, m, k, of="states, actions and branching")
    fitting(n, d, of="states and features")
    if unit("least", least) * m > 1.0 or least == 0.0:
        raise InputError(
            f"least must be above 0 and at most 1/{m}, one over the actions; got {least}"
        )
    rng = generator(seed)
    cycle = np.argsort(rng.random(n))
    following = np.empty(n, dtype=np.int64)
    following[cycle] = np.roll(cycle, -1)
    chosen = _distinct(rng, n, m, k, following)
    probability = shares(rng.random((n, m, k)) + 1e-5)
    behavior = least + (1.0 - m * least) * _peaked(rng, n, m, peak)
    target = _peaked(rng, n, m, peak)
    phi = np.hstack([rng.random((n, d - 1)), np.ones((n, 1))])
    return Problem(
        _matrices(chosen, probability),
        reward=rng.random((n, m)),
        discount=unit("discount", discount),
        behavior=behavior,
        target=behavior if switch("on_policy", on_policy) else target,
        features=phi,
        name="garnet",
    )


def _distinct(rng: np.random.Generator, n: int, m: int, k: int, following: Ints) -> Ints:
    """`k` different successors of each (s, a); the first of action 0 is `following`."""
    chosen = np.empty((n, m, k), dtype=np.int64)
    for j in range(k):
        pick = (rng.random((n, m)) * (n - j)).astype(np.int64)
        if j == 0:
            pick[:, 0] = following
        # The pick-th state among those not taken yet: step over the taken ones in order.
        for taken in np.moveaxis(np.sort(chosen[..., :j], axis=-1), -1, 0):
            pick += taken <= pick
        chosen[..., j] = pick
    return chosen


def _peaked(rng: np.random.Generator, n: int, m: int, peak: int) -> Floats:
    first = rng.random((n, m)) + 1e-3
    weight = first
    with np.errstate(over="ignore"):
        for _ in range(peak):
            weight = weight * weight
    # If the powers of all actions underflow or overflow, they do so together.
    lost = ~((weight.max(axis=1) > _FAINT) & (weight.max(axis=1) < 1.0 / _FAINT))
    power = 2.0**peak * np.log(first[lost] / first[lost].max(axis=1, keepdims=True))
    weight[lost] = np.exp(power)
    return shares(weight)


def _matrices(chosen: Ints, probability: Floats) -> list[Any]:
    from scipy.sparse import coo_array

    n, m, k = chosen.shape
    row = np.repeat(np.arange(n), k)
    return [
        coo_array((probability[:, a].ravel(), (row, chosen[:, a].ravel())), shape=(n, n))
        for a in range(m)
    ]

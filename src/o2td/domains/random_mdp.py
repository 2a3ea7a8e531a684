"""The random MDP of Dann, Neumann & Peters (2014), the first experiment of the O²TD paper."""

from __future__ import annotations

import numpy as np

from o2td import chain
from o2td.arguments import choice, unit, whole
from o2td.arrays import Floats, Seed
from o2td.domains.common import fitting, generator, shares
from o2td.problem import Problem

_LEAST = 1e-5  # added to every weight, so that all transitions and actions are possible


def random_mdp(
    states: int = 400,
    actions: int = 10,
    features: int = 201,
    discount: float = 0.95,
    seed: Seed = 0,
    reward: str = "state_action",
) -> Problem:
    """Dense random MDP: `P(s'|s,a)`, both policies and the start proportional to `U[0,1] + 1e-5`.

    All features are uniform in [0, 1] except the last, which is 1. `description` gives the spread
    of the target's value: with `reward="action_next"` V is nearly constant, so errors there measure
    little more than how fast a constant is learned.

    Parameters
    ----------
    states, actions, features : int
        Number of each.
    discount : float
        gamma of every step that does not end an episode.
    seed : int or several
        Seed of the problem itself, not of its samples.
    reward : "state_action" or "action_next"
        `r(s, a) ~ U[0, 1]`, or `r(a, s') ~ U[0, 1]` as in the code of Dann et al.

    Examples
    --------
    >>> random_mdp(states=20, actions=3, features=5, seed=1)
    Problem('random_mdp', states=20, actions=3, features=5, 'V = 10.23 ± 0.203')
    """
    n, m = whole("states", states, 1), whole("actions", actions, 1)
    d = whole("features", features, 1)
    fitting(n, m, n, of="states and actions")
    fitting(n, d, of="states and features")
    gamma = unit("discount", discount)
    choice("reward", reward, ("state_action", "action_next"))
    rng = generator(seed)

    def draw(*shape: int) -> Floats:
        return shares(rng.random(shape) + _LEAST)

    transition = draw(n, m, n)
    behavior, target, start = draw(n, m), draw(n, m), draw(n)
    phi = np.hstack([rng.random((n, d - 1)), np.ones((n, 1))])
    table: Floats = (
        rng.random((n, m))
        if reward == "state_action"
        else np.broadcast_to(rng.random((m, n)), (n, m, n))
    )
    problem = Problem(
        transition, table, gamma, behavior, target, phi, start=start, name="random_mdp"
    )
    problem.description = _spread(problem) if gamma < 1.0 else ""
    return problem


def _spread(problem: Problem) -> str:
    value = chain.solve(
        problem.discounted_matrix(problem.target), problem.expected_reward(problem.target)
    )
    return f"V = {value.mean():.2f} ± {value.std():.3g}"

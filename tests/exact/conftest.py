from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2td import Problem


def make_problem(
    seed: int = 0,
    states: int = 12,
    actions: int = 3,
    features: Any = 4,
    branching: int = 3,
    discount: float = 0.9,
    on_policy: bool = False,
    terminal: int = 0,
    **options: Any,
) -> Problem:
    """A random sparse problem, off-policy unless asked; `terminal` last states end episodes."""
    rng = np.random.default_rng(seed)
    P = np.zeros((states, actions, states))
    for s in range(states):
        for a in range(actions):
            chosen = rng.choice(states, branching, replace=False)
            chosen[0] = (s + 1) % states  # so that one class holds all states
            P[s, a, np.unique(chosen)] = rng.dirichlet(np.ones(len(np.unique(chosen))))
    behavior = rng.dirichlet(np.ones(actions), states) * 0.8 + 0.2 / actions
    target = behavior if on_policy else rng.dirichlet(np.full(actions, 0.5), states)
    if isinstance(features, int):
        features = rng.standard_normal((states, features))
    options.setdefault("reward", rng.standard_normal((states, actions, states)))
    ends = np.arange(states - terminal, states) if terminal else None
    return Problem(
        P,
        discount=discount,
        behavior=behavior,
        target=target,
        features=features,
        terminal=ends,
        **options,
    )


@pytest.fixture
def make() -> Any:
    return make_problem

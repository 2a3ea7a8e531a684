"""Boyan's chain (Boyan 2002), on-policy, with interpolating features."""

from __future__ import annotations

import numpy as np

from o2td.arguments import unit, whole
from o2td.domains.common import fitting
from o2td.problem import Problem


def boyan_chain(states: int = 14, discount: float = 0.95, features: int = 4) -> Problem:
    """Chain of single and double steps, r = -3, with values linear along it if discount is 1.

    State i leads to i+1 or i+2 with equal probability and reward -3; the second to last always
    steps to the last with reward -2; the last ends the episode, and the next starts at the first.
    With 13 states and discount 1 the values are -24, -22, …, -2, 0, given by the weights -24, -16,
    -8, 0.

    Parameters
    ----------
    states : int
        Number of states, including the terminal one: 14 in Dann et al. (2014), 13 in Boyan (2002).
    discount : float
        gamma of every step that does not end an episode.
    features : int
        Number of triangular bumps, evenly spaced along the chain.

    Examples
    --------
    >>> boyan_chain(states=13, discount=1.0).features[[0, 1, 6]]
    array([[1.  , 0.  , 0.  , 0.  ],
           [0.75, 0.25, 0.  , 0.  ],
           [0.  , 0.5 , 0.5 , 0.  ]])
    """
    n, d = whole("states", states, 3), whole("features", features, 2)
    fitting(n, max(n, d), of="states and features")
    transition, reward = np.zeros((n, 1, n)), np.full((n, 1), -3.0)
    for i in range(n - 2):
        transition[i, 0, [i + 1, i + 2]] = 0.5
    transition[n - 2, 0, n - 1] = 1.0
    reward[n - 2] = -2.0
    place = np.arange(n) * (d - 1) / (n - 1)
    bumps = np.maximum(0.0, 1.0 - np.abs(place[:, None] - np.arange(d)))
    certain = np.ones((n, 1))
    return Problem(
        transition,
        reward,
        unit("discount", discount),
        behavior=certain,
        target=certain,
        features=bumps,
        start=np.eye(n)[0],
        terminal=[n - 1],
        name="boyan_chain",
    )

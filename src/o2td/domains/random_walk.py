"""The five-state random walk of the TDRC paper (Ghiassian et al. 2020, arXiv:2007.00611).

Its three feature sets go back to Sutton et al. (2009, section 6).
"""

from __future__ import annotations

import numpy as np

from o2td.arguments import choice, unit
from o2td.arrays import Floats
from o2td.problem import Problem

STATES = 5


def random_walk(form: str = "tabular", discount: float = 1.0) -> Problem:
    """Five states between two ends, r = -1 left and +1 right; the target leans right, 0.4 to 0.6.

    Episodes start in the middle; the behaviour goes left (action 0) or right (1) with equal
    probability. States 5 and 6 are the left and the right end.

    Parameters
    ----------
    form : "tabular", "inverted" or "dependent"
        One feature per state; all features but the state's own, at 1/2; or three normalised
        features, which cannot represent all values.
    discount : float
        gamma of every step that does not end an episode.

    Examples
    --------
    >>> random_walk("dependent").features[:3].round(3)
    array([[1.   , 0.   , 0.   ],
           [0.707, 0.707, 0.   ],
           [0.577, 0.577, 0.577]])
    """
    left, right, n = STATES, STATES + 1, STATES + 2
    transition, reward = np.zeros((n, 2, n)), np.zeros((n, 2))
    for s in range(STATES):
        transition[s, 0, s - 1 if s > 0 else left] = 1.0
        transition[s, 1, s + 1 if s < STATES - 1 else right] = 1.0
    reward[0, 0], reward[STATES - 1, 1] = -1.0, 1.0
    table = _features(choice("form", form, ("tabular", "inverted", "dependent")))
    return Problem(
        transition,
        reward,
        unit("discount", discount),
        behavior=np.full((n, 2), 0.5),
        target=np.tile([0.4, 0.6], (n, 1)),
        features=np.vstack([table, np.zeros((2, table.shape[1]))]),
        start=np.eye(n)[STATES // 2],
        terminal=[left, right],
        name="random_walk",
    )


def _features(form: str) -> Floats:
    if form == "tabular":
        return np.eye(STATES)
    if form == "inverted":
        return (1.0 - np.eye(STATES)) / 2.0
    ones = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1], [0, 0, 1]], dtype=np.float64)
    return np.asarray(ones / np.sqrt(ones.sum(axis=1, keepdims=True)))

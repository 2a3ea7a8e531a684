"""The Collision task of Ghiassian & Sutton (2021, arXiv:2106.00922)."""

from __future__ import annotations

import numpy as np

from o2td.arguments import unit, whole
from o2td.arrays import Seed
from o2td.domains.common import fitting, generator
from o2td.errors import InputError
from o2td.problem import Problem

STATES = 8


def collision(seed: Seed = 0, features: int = 6, ones: int = 3, discount: float = 0.9) -> Problem:
    """Drive on or turn away, eight states: how near a collision is if the car drives on.

    Episodes start in one of states 0-3 with equal probability. Action 0 (forward) moves on, and
    from state 7 gives reward 1 and ends; action 1 (turn) ends with reward 0. The target always
    drives on, `v(s) = 0.9^(7-s)`; the behaviour does so in states 0-3 and tosses a coin in 4-7.

    Parameters
    ----------
    seed : int or several
        Seed of the features: each state has `ones` of its `features` binary features set, drawn
        independently, so two states may look alike.
    features, ones : int
        Number of features per state, and how many of them are 1.
    discount : float
        gamma of every step that does not end an episode.

    Examples
    --------
    >>> problem = collision(seed=3)
    >>> problem.features[:8].sum(axis=1)
    array([3., 3., 3., 3., 3., 3., 3., 3.])
    >>> (problem.visits * 35).round(9)
    array([2., 4., 6., 8., 8., 4., 2., 1., 0.])
    """
    d = whole("features", features, 1)
    fitting(STATES + 1, d, of="features")
    if whole("ones", ones, 1) > d:
        raise InputError(f"ones is {ones}, but a state has only {d} features; lower ones")
    end = STATES
    transition, reward = np.zeros((end + 1, 2, end + 1)), np.zeros((end + 1, 2))
    for s in range(STATES):
        transition[s, 0, s + 1] = 1.0
        transition[s, 1, end] = 1.0
    reward[end - 1, 0] = 1.0
    behavior = np.tile([1.0, 0.0], (end + 1, 1))
    behavior[STATES // 2 :] = 0.5
    phi = np.zeros((end + 1, d))
    order = np.argsort(generator(seed).random((STATES, d)), axis=1)
    np.put_along_axis(phi[:STATES], order[:, :ones], 1.0, axis=1)
    return Problem(
        transition,
        reward,
        unit("discount", discount),
        behavior=behavior,
        target=np.tile([1.0, 0.0], (end + 1, 1)),
        features=phi,
        start=np.r_[np.full(4, 0.25), np.zeros(5)],
        terminal=[end],
        name="collision",
    )

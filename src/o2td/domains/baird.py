"""Baird's counterexample: off-policy TD(0) diverges although every value is zero.

`form="star"`: Sutton & Barto (2018), section 11.2, after Baird (1995).
`form="survey"`: Dann, Neumann & Peters (2014), with one more corner.
"""

from __future__ import annotations

import numpy as np

from o2td.arguments import choice, unit
from o2td.problem import Problem


def baird(form: str = "star", discount: float = 0.99) -> Problem:
    """Baird's star: rewards are 0, the target always goes to the centre, TD(0) diverges.

    Action 0 (dashed) leads to a corner chosen uniformly; action 1 (solid) to the centre. The
    behaviour takes the solid action just often enough to visit all states equally often, the target
    always. Corner i has features `2 e_i + e_last`, the centre `e_centre + 2 e_last`.
    `initial_theta` is one everywhere and 10 for the centre's own weight.

    Parameters
    ----------
    form : "star" or "survey"
        Six corners and 8 features, or seven corners and 9 features.
    discount : float
        gamma of every step that does not end an episode.

    Examples
    --------
    >>> problem = baird()
    >>> problem.features[[0, 6]]
    array([[2., 0., 0., 0., 0., 0., 0., 1.],
           [0., 0., 0., 0., 0., 0., 1., 2.]])
    >>> problem.initial_theta
    array([ 1.,  1.,  1.,  1.,  1.,  1., 10.,  1.])
    """
    corners = {"star": 6, "survey": 7}[choice("form", form, ("star", "survey"))]
    n = corners + 1
    transition = np.zeros((n, 2, n))
    transition[:, 0, :corners] = 1.0 / corners
    transition[:, 1, corners] = 1.0
    features = np.zeros((n, n + 1))
    np.fill_diagonal(features, 2.0)
    features[:, -1] = 1.0
    features[corners, -2:] = 1.0, 2.0
    theta = np.ones(n + 1)
    theta[corners] = 10.0
    return Problem(
        transition,
        reward=np.zeros((n, 2)),
        discount=unit("discount", discount),
        behavior=np.tile([corners / n, 1.0 / n], (n, 1)),
        target=np.tile([0.0, 1.0], (n, 1)),
        features=features,
        initial_theta=theta,
        name="baird",
    )

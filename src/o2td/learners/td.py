"""TD(lambda), off-policy by importance sampling.

    z_t = rho_{t-1} gamma_t lambda z_{t-1} + M_t phi_t,    theta += alpha rho_t delta_t z_t

It solves `Phi theta = Pi T_lambda Phi theta`; its direction is `X = (I - lambda P_gamma^T)^-1 Xi Phi`,
and X* at lambda = 1. Off-policy it may diverge (Baird 1995). With `emphasis` it becomes emphatic TD
(`ETD`) or O2TD (`O2TD`).

Sutton (1988); with ratios: Precup, Sutton & Singh (2000).
"""

from __future__ import annotations

from o2td.learners.weighted import WeightedLearner


class TD(WeightedLearner):
    """Temporal-difference learning.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> phi = np.eye(2)
    >>> batch = o2td.Transitions(phi, [0.0, 1.0], phi[::-1], discount=[0.5, 0.0])
    >>> o2td.TD(step_size=0.5).partial_fit(batch).theta
    array([0. , 0.5])
    """

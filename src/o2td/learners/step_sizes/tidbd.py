"""TIDBD: a step size for every feature, adapted while learning by gradient descent on the TD error.

    beta_i += rate rho delta phi_i h_i,    alpha_i = initial exp(beta_i)
    z_t = decay_t z_{t-1} + M_t phi_t,     theta_i += alpha_i rho delta z_i
    h_i = h_i [1 - alpha_i rho phi_i z_i]^+ + alpha_i rho delta z_i

`h_i` follows how theta_i depends on beta_i, so features whose errors keep their sign get larger steps,
and noisy ones smaller. On-policy (rho = M = 1) this is the published semi-gradient TIDBD(lambda); ratios
multiply delta, as in TD, and the bracket. CSR rows cost the entries of the row and of the trace.

Kearney, Veeriah, Travnik, Sutton & Pilarski (2018), "TIDBD: Adapting temporal-difference step-sizes
through stochastic meta-descent", algorithm 1.
"""

from __future__ import annotations

import numpy as np

from o2td.arguments import number
from o2td.arrays import Floats
from o2td.compiled import njit
from o2td.kernels.access import count, follow, index, td_error, value
from o2td.learners.step_sizes.rule import Gauge, Rule

__all__ = ["TIDBD"]


@njit(cache=True)
def step(row, p, s, theta, beta, h, z):  # type: ignore[no-untyped-def]
    """One row; `row.alpha_w` is the ratio in the update."""
    delta = row.alpha_w * td_error(row, theta)
    follow(z, row.decay, row.emphasis, row.phi)
    for k in range(count(row.phi)):
        j, x = index(row.phi, k), value(row.phi, k)
        beta[j] += p.rate * delta * x * h[j]
        own = row.alpha * np.exp(beta[j]) * row.alpha_w * x * z.values[j]
        h[j] *= max(0.0, 1.0 - own)
    for k in range(count(z)):
        j = index(z, k)
        moved = row.alpha * np.exp(beta[j]) * delta * value(z, k)
        theta[j] += moved
        h[j] += moved


class TIDBD(Rule):
    """One step size per feature, for `TD` and weighted learners (`ETD`, `VTrace`, `O2TD`, ...).

    Parameters
    ----------
    initial : float
        Initial step size of every feature.
    rate : float
        The meta step size; 0 keeps all step sizes constant.

    Examples
    --------
    Of two features, one predicts the reward and the other is noise:

    >>> import numpy as np, o2td
    >>> noise = np.random.default_rng(0).normal(size=2000)
    >>> phi = np.column_stack([np.ones(2000), noise])
    >>> rows = o2td.Transitions(phi, np.ones(2000), phi, discount=0.0)
    >>> learner = o2td.TD(o2td.learners.TIDBD(0.01, rate=0.1)).partial_fit(rows)
    >>> sizes = learner.feature_step_sizes
    >>> bool(sizes[0] > 2 * sizes[1])
    True
    """

    vectors = ("beta", "h")
    step = staticmethod(step)

    def __init__(self, initial: float = 0.01, rate: float = 0.01) -> None:
        self.initial, self.rate = (
            number("initial", initial, above=0.0),
            number("rate", rate, low=0.0),
        )

    def fill(self, gauge: Gauge, out: Floats) -> None:
        """The initial step size, which the step multiplies by `exp(beta)` of each feature."""
        out[:] = self.initial

    def sizes(self, beta: Floats) -> Floats:
        """The step sizes of all features, from their `beta`."""
        return np.asarray(self.initial * np.exp(beta))

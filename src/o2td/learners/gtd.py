"""GTD, the first gradient-TD method: gradient descent on the norm of the expected TD update.

    theta += alpha (z.w) dphi,    w += alpha_w (delta z - w)

Its objective is `|E[delta z]|^2`, whose minimiser is TD's solution: `X = Xi Phi` at lambda = 0. Stable
off-policy; slower than its successors because w is not preconditioned by `E[phi phi^T]`.

Sutton, Szepesvari & Maei (2008).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from o2td.arrays import Floats
from o2td.kernels.gradient import Member
from o2td.learners.gradient import GradientLearner
from o2td.learners.step_sizes import Auto, Gauge, rule_of
from o2td.learners.step_sizes.auto import HORIZON


class GTD(GradientLearner):
    """GTD, the first gradient-TD method (2008).

    Examples
    --------
    >>> import numpy as np, o2td
    >>> problem = o2td.domains.random_walk()
    >>> learner = o2td.GTD(step_size=0.1).partial_fit(problem.sample(2000, seed=0))
    >>> learner.status.kind
    'ok'
    """

    def _fill_gains(self, gauge: Gauge, out: dict[str, Floats]) -> None:
        """With "auto", alpha_w is 1 / 2, decaying, and alpha a fifth of the usual one squared.

        w scales with the features here, so this makes predictions independent of their scale.
        """
        if isinstance(rule_of(self.step_size), Auto):
            unit = replace(gauge, kappa=0.0)
            Auto().fill(unit, out["gain"])
            out["gain"] *= 0.2 * out["gain"]
        else:
            rule_of(self.step_size).fill(gauge, out["gain"])
        second = self.step_size if self.second_step_size is None else self.second_step_size
        if isinstance(rule_of(second), Auto):
            steps = np.arange(gauge.first, gauge.first + len(out["gain"]))
            out["second_gain"][:] = 0.5 / np.sqrt(1.0 + steps / HORIZON)
        else:
            gauge.fill_second(rule_of(second), out["second_gain"])

    def member(self) -> Member:
        """`(z.w) dphi` and `delta z - w`."""
        return Member(theta_z_phi=1.0, theta_z_next=1.0, kappa=1.0)

"""GTD2: stochastic gradient descent on the projected Bellman error.

    theta += alpha (z.w) dphi,    w += alpha_w (delta z - (phi.w) phi)

`w` learns `C^-1 E[delta z]`; the limit is TD's, `X = Xi Phi` at lambda = 0 and uniform emphasis,
and it is stable off-policy. With `Omega` or `FollowOn` emphasis it keeps the limit of O2TD or ETD
and adds this stability: a variant that the O2TD paper mentions but does not study. The expanded
form replaces `E[phi z^T] w` by `(phi.w) phi`: `theta += alpha ((phi.w) phi - gamma (1 - lambda)
(z.w) phi')`.

Sutton et al. (2009), eqs. 8-9; traces: Maei (2011).
"""

from __future__ import annotations

from typing import Unpack

from o2td.arguments import choice
from o2td.errors import InputError
from o2td.kernels.gradient import Member
from o2td.learners.gradient import GradientAxes, GradientLearner
from o2td.learners.step_sizes import StepSize


class GTD2(GradientLearner):
    """GTD2: gradient descent on the projected Bellman error.

    Parameters
    ----------
    form : "sampled" | "expanded", optional
        How the expected direction is sampled. "expanded" requires uniform emphasis and traces that
        use the ratio itself. In that case it is the default if there are traces: its variance is
        smaller.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> problem = o2td.domains.random_walk()
    >>> learner = o2td.GTD2(step_size=0.1).partial_fit(problem.sample(2000, seed=0))
    >>> learner.status.kind
    'ok'
    """

    def __init__(
        self, step_size: StepSize = "auto", *, form: str | None = None, **axes: Unpack[GradientAxes]
    ) -> None:
        self.form = form
        super().__init__(step_size, **axes)
        if form is not None:
            choice("form", form, ("sampled", "expanded"))
        if form == "expanded" and not self._ordinary:
            raise InputError(
                'form="expanded" holds for uniform emphasis, one lambda and traces that pass on the'
                ' ratio itself; use form="sampled"'
            )

    def member(self) -> Member:
        """`(z.w) dphi`, or its expanded form, and `delta z - (phi.w) phi`."""
        expanded = self.form == "expanded" or (
            self.form is None and self._ordinary and self._traced
        )
        if expanded:
            return Member(theta_w_phi=1.0, theta_z_next=1.0 - self.trace, w_w_phi=-1.0)
        return Member(theta_z_phi=1.0, theta_z_next=1.0, w_w_phi=-1.0)

"""GTD2: stochastic gradient descent on the projected Bellman error.

    theta += alpha (z.w) dphi,    w += alpha_w (delta z - (phi.w) phi)

`w` learns `C^-1 E[delta z]`; the limit is TD's, `X = Xi Phi` at lambda = 0 and uniform emphasis, and it
is stable off-policy. With `Omega` or `FollowOn` emphasis it keeps the limit of O2TD or ETD and adds
this stability: the variant that the paper on O2TD mentions and leaves out. The expanded form replaces
`E[phi z^T] w` by `(phi.w) phi`: `theta += alpha ((phi.w) phi - gamma (1 - lambda) (z.w) phi')`.

Sutton et al. (2009), eqs. 8-9; traces: Maei (2011).
"""

from __future__ import annotations

from typing import Any

from o2td.errors import InputError
from o2td.kernels.gradient import Member
from o2td.learners.gradient import GradientLearner


class GTD2(GradientLearner):
    """GTD2.

    Parameters
    ----------
    step_size : float, PowerDecay or "auto"
        alpha; "auto" is 0.1 over the largest squared norm of features so far.
    second_step_size : optional
        alpha_w; None means the same as `step_size`.
    trace : float
        lambda.
    emphasis : Uniform() | FollowOn() | Omega()
        The weight of a row; uniform if left out.
    form : "sampled" | "expanded"
        How the expected direction is sampled; "expanded" is for uniform emphasis only.
    initial_theta : (d,) array, optional
        Where learning starts; zero if left out.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> problem = o2td.domains.random_walk()
    >>> learner = o2td.GTD2(step_size=0.1).partial_fit(problem.sample(2000, seed=0))
    >>> learner.status.kind
    'ok'
    """

    def __init__(
        self,
        step_size: Any = "auto",
        second_step_size: Any = None,
        trace: float = 0.0,
        emphasis: Any = None,
        form: str = "sampled",
        initial_theta: Any = None,
    ) -> None:
        super().__init__(step_size, second_step_size, trace, initial_theta)
        self.weigh_by(emphasis)
        if form not in ("sampled", "expanded"):
            raise InputError(f'form must be "sampled" or "expanded", got {form!r}')
        if form == "expanded" and not self.weighting.uniform:
            raise InputError('form="expanded" holds for uniform emphasis only; use form="sampled"')
        self.form = form

    def member(self) -> Member:
        """`(z.w) dphi`, or its expanded form, and `delta z - (phi.w) phi`."""
        if self.form == "expanded":
            return Member(theta_w_phi=1.0, theta_z_next=1.0 - self.trace, w_w_phi=-1.0)
        return Member(theta_z_phi=1.0, theta_z_next=1.0, w_w_phi=-1.0)

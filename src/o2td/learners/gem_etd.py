"""GEM-ETD: emphatic TD whose expected emphasis is learned instead of followed.

    e_t = i_t + gamma_t rho_{t-1} k.phi_{t-1} - k.phi_t          (TD backwards in time)
    u += alpha_w (e - u.phi) phi,    k += alpha_w (u.phi) (phi - gamma_t rho_{t-1} phi_{t-1})
    theta += alpha rho delta max(0, k.phi) phi

`k.phi` goes to the best linear `E[F_t | s]` in the norm of a projected Bellman error, by gradient
descent (GTD2 backwards). ETD's limit without the follow-on trace's variance, as far as features can tell
the emphasis of states. The average step is not linear, so there are no mean dynamics.

Zhang, Liu, Yao & Whiteson (2020), gradient emphasis learning; Jiang et al. (2022), learned expected
emphatic traces (X-ETD).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from o2td.compiled import njit
from o2td.learners.step_learner import Row, StepLearner, add, dot, follow, td_error

__all__ = ["GEMETD"]

Floats = npt.NDArray[np.float64]


@njit(cache=True)
def step(row: Row, p, s, theta, k, u, past):  # type: ignore[no-untyped-def]
    """One row; `past` holds the features of the row before."""
    back = row.before * row.rho_before
    emphasis = dot(row.phi, k)
    error, along = row.interest + back * dot(past, k) - emphasis, dot(row.phi, u)
    delta = td_error(row, theta)
    add(theta, row.alpha * row.rho * delta * max(0.0, emphasis), row.phi)
    add(u, row.alpha_w * (error - along), row.phi)
    add(k, row.alpha_w * along, row.phi)
    add(k, -row.alpha_w * along * back, past)
    follow(past, 0.0, 1.0, row.phi)


class GEMETD(StepLearner):
    """Emphatic TD with a learned emphasis.

    Parameters
    ----------
    second_step_size : optional
        alpha_w, of the emphasis; None means the same as `step_size`.

    Examples
    --------
    >>> import o2td
    >>> problem = o2td.domains.random_walk()
    >>> learner = o2td.GEMETD(0.1).partial_fit(problem.sample(2000, seed=0))
    >>> learner.status.kind
    'ok'
    """

    vectors: ClassVar[tuple[str, ...]] = ("theta", "k", "u", "past")
    traces: ClassVar[tuple[str, ...]] = ("past",)
    undefined: ClassVar[tuple[str, ...]] = ("trace", "clip", "cut", "emphasis")
    counts_rows: ClassVar[bool] = True
    step = staticmethod(step)

    @property
    def emphasis_weights(self) -> Floats:
        """k: the expected emphasis of features phi is `max(0, k.phi)`."""
        return self.vector("k")

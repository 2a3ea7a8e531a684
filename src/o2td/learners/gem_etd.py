"""GEM-ETD: emphatic TD whose expected emphasis is learned instead of traced.

    e_t = i_t + gamma_t rho_{t-1} k.phi_{t-1} - k.phi_t          (TD backwards in time)
    u += alpha_w (e - u.phi) phi,    k += alpha_w (u.phi) (phi - gamma_t rho_{t-1} phi_{t-1})
    theta += alpha rho delta max(0, k.phi) phi

`k.phi` converges to the best linear `E[F_t | s]` in the norm of a projected Bellman error, by
gradient descent (GTD2 backwards). It has ETD's limit without the variance of the follow-on trace,
as far as the features can represent the emphasis of states. The average step is not linear, so
there are no mean dynamics.

With `step_size="auto"` both step sizes are `2 / (S sqrt(1 + t / 1000))`, where S is the root mean
square of a bound on the relative change that a row makes: `|phi| |phi - gamma rho phi_{t-1}| +
|phi|^2` for the emphasis, `rho k.phi |phi| (|phi| + gamma |phi'|)` for theta. No row overshoots.

Zhang, Liu, Yao & Whiteson (2020), gradient emphasis learning; Jiang et al. (2022), learned expected
emphatic traces (X-ETD).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from o2td.compiled import jitable, njit
from o2td.learners.step_learner import Row, StepLearner, add, dot, follow, square, td_error
from o2td.load_store import greater, lesser

__all__ = ["GEMETD"]

Floats = npt.NDArray[np.float64]
HORIZON = 1000.0  # steps after which step sizes begin to fall


@jitable
def bounded(fall, squares, size):  # type: ignore[no-untyped-def]
    """`fall` over the root of a mean of squares, bounded so that no row overshoots."""
    if not squares > 0.0:
        return 0.0
    found = fall / np.sqrt(squares)
    return lesser(found, 1.0 / size) if size > 0.0 else found


@njit(cache=True, allocates=False)
def step(row: Row, p, s, theta, k, u, past):  # type: ignore[no-untyped-def]
    """One row; `past` holds the features of the previous row."""
    back = row.before * row.rho_before
    emphasis = dot(row.phi, k)
    error, along = row.interest + back * dot(past, k) - emphasis, dot(row.phi, u)
    delta, gain = td_error(row, theta), row.rho * greater(0.0, emphasis)
    alpha, alpha_w = row.alpha, row.alpha_w
    own, count = square(row.phi), s.steps + 1.0
    fall = 2.0 / np.sqrt(1.0 + s.steps / HORIZON)
    change = own + back * (back * square(past) - 2.0 * dot(row.phi, past))
    size_w = own + np.sqrt(own * max(0.0, change))
    s.sizes_w += (size_w * size_w - s.sizes_w) / count
    if alpha_w < 0.0:
        alpha_w *= -bounded(fall, s.sizes_w, size_w)
    size = gain * np.sqrt(own) * (np.sqrt(own) + row.discount * np.sqrt(square(row.next_phi)))
    s.sizes += (size * size - s.sizes) / count
    if alpha < 0.0:
        alpha *= -bounded(fall, s.sizes, size)
    add(theta, alpha * gain * delta, row.phi)
    add(u, alpha_w * (error - along), row.phi)
    add(k, alpha_w * along, row.phi)
    add(k, -alpha_w * along * back, past)
    follow(past, 0.0, 1.0, row.phi)


class GEMETD(StepLearner):
    """Emphatic TD with a learned emphasis.

    Parameters
    ----------
    second_step_size : optional
        alpha_w, the step size of the emphasis; None means the same as `step_size`.

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
    scalars: ClassVar[tuple[str, ...]] = ("sizes", "sizes_w")
    counts_rows: ClassVar[bool] = True
    finds_step: ClassVar[bool] = True
    step = staticmethod(step)
    no_dynamics: ClassVar[str] = (
        "it multiplies two things that it learns, so its step is not linear"
    )

    @property
    def emphasis_weights(self) -> Floats:
        """k: the expected emphasis of features phi is `max(0, k.phi)`."""
        return self.vector("k")

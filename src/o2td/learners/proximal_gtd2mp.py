"""l1-proximal GTD2-MP (RO-TD by mirror-prox): sparse weights from a saddle point, averaged.

    (theta~, w~) = prox of a GTD2 step from (theta, w)
    (theta, w)   = prox of a step from (theta, w) with directions at (theta~, w~)
    prox(theta) = sign(theta) max(0, |theta| - alpha l1)

Minimises the projected Bellman error plus `l1 |theta|_1`. Mirror-prox's guarantee is for the
average of the iterates, which is what `theta` returns. GTD2's limit at l1 = 0.

Liu, Mahadevan & Liu (2012), regularised off-policy TD; Liu et al. (2015), algorithm 2, with its prox.
"""

from __future__ import annotations

from typing import ClassVar

import numpy.typing as npt

from o2td.compiled import jitable, njit
from o2td.cuts import Cut
from o2td.emphasis import Emphasis
from o2td.kernels.gradient import Member
from o2td.kernels.weighted import FASTMATH
from o2td.learners.dynamics import MeanDynamics
from o2td.learners.row_mask import MaskedStepLearner, learned
from o2td.learners.step_learner import (
    Row,
    add,
    count,
    follow,
    index,
    td_error,
    value,
)
from o2td.learners.step_sizes import StepSize
from o2td.learners.traced import Trace
from o2td.load_store import greater, lesser
from o2td.model import Model

__all__ = ["ProximalGTD2MP"]


@jitable
def shrunk(x, bound):  # type: ignore[no-untyped-def]
    """`sign(x) max(0, |x| - bound)`."""
    return greater(0.0, x - bound) + lesser(0.0, x + bound)


@njit(cache=True, allocates=False, fastmath=FASTMATH)
def step(row: Row, p, s, theta, w, mid, z):  # type: ignore[no-untyped-def]
    """One row; `mid`, zero between rows, holds the change of theta by the first step.

    Each loop over a row or trace does all that it can: the fewer, the sooner a first use begins.
    """
    kept = row.rho * row.decay / row.rho_before if row.decay > 0.0 else 0.0  # z = rho e
    follow(z, kept, row.rho * row.emphasis, row.phi)
    delta, wphi, zphi, norm, wz, zz = td_error(row, theta), 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(count(row.phi)):
        j, x = index(row.phi, k), value(row.phi, k)
        wphi += x * w[j]
        zphi += x * z.values[j]
        norm += x * x
    for k in range(count(z)):
        x = value(z, k)
        wz += x * w[index(z, k)]
        zz += x * x
    add(mid, row.alpha * wz, row.phi)
    add(mid, -row.alpha * wz * row.discount, row.next_phi)
    bound = row.alpha * p.l1
    v = next_v = 0.0
    for k in range(count(row.phi)):
        j = index(row.phi, k)
        v += value(row.phi, k) * shrunk(theta[j] + mid[j], bound)
    for k in range(count(row.next_phi)):
        j = index(row.next_phi, k)
        next_v += value(row.next_phi, k) * shrunk(theta[j] + mid[j], bound)
        mid[j] = 0.0
    middle = row.reward + row.discount * next_v - v
    middle_wphi = wphi + row.alpha_w * (delta * zphi - wphi * norm)
    middle_wz = wz + row.alpha_w * (delta * zz - wphi * zphi)
    for k in range(count(z)):
        w[index(z, k)] += row.alpha_w * middle * value(z, k)
    for k in range(count(row.phi)):
        j, x = index(row.phi, k), value(row.phi, k)
        mid[j] = 0.0
        theta[j] += row.alpha * middle_wz * x
        w[j] -= row.alpha_w * middle_wphi * x
    add(theta, -row.alpha * middle_wz * row.discount, row.next_phi)


class ProximalGTD2MP(MaskedStepLearner):
    """l1-proximal GTD2 by mirror-prox, with averaged output.

    Parameters
    ----------
    l1 : float
        Weight of the l1 norm of theta.
    average : bool or float
        Predict with the average of all theta, to which mirror-prox's guarantee applies.
    replicates : int
        Number of online bootstrap replicates, for `predict(phi, interval=0.95)`.
    second_step_size : optional
        alpha_w; None means the same as `step_size`.
    skip_zero_ratio : bool
        Whether rows with ratio 0 leave theta and w unchanged.

    Examples
    --------
    >>> import o2td
    >>> problem = o2td.domains.random_walk()
    >>> rows = problem.sample(2000, seed=0)
    >>> learner = o2td.ProximalGTD2MP(0.1, l1=0.01).partial_fit(rows)
    >>> learner.status.kind
    'ok'
    """

    vectors: ClassVar[tuple[str, ...]] = ("theta", "w", "mid", "z")
    traces: ClassVar[tuple[str, ...]] = ("z",)
    step = staticmethod(step)

    def __init__(
        self,
        step_size: StepSize = "auto",
        *,
        l1: float = 0.01,
        average: bool | float = True,
        second_step_size: StepSize | None = None,
        skip_zero_ratio: bool = False,
        trace: Trace = 0.0,
        clip: float | None = None,
        cut: Cut | str | None = None,
        emphasis: Emphasis | str | None = None,
        radius: float | None = None,
        replicates: int = 0,
        initial_theta: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(
            step_size,
            second_step_size=second_step_size,
            skip_zero_ratio=skip_zero_ratio,
            trace=trace,
            clip=clip,
            cut=cut,
            emphasis=emphasis,
            average=average,
            l1=l1,
            radius=radius,
            replicates=replicates,
            initial_theta=initial_theta,
        )

    def _numbers(self, lane: int) -> dict[str, float]:
        """The step itself needs the bound of the prox."""
        return {**super()._numbers(lane), "l1": self.l1}

    def mean_dynamics(self, model: Model) -> MeanDynamics:
        """GTD2's, up to terms of order alpha, without l1."""
        member = Member(theta_z_phi=1.0, theta_z_next=1.0, w_w_phi=-1.0)
        return self._gradient_dynamics(model, member, learned=learned(self, model))

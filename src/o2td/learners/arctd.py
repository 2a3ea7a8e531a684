"""ARCTD: averaged, regularised, clipped TD(lambda), with nothing to tune.

    z     = lambda gamma_t min(1, rho_{t-1}) z + phi
    delta = r + gamma bounded(phi'.theta) - phi.theta
    theta += alpha (rho delta z + (rho (z.w) dphi - (phi.w) phi) / 2)
    w     += alpha (rho delta z - (phi.w) phi - N w)
    alpha = 4 / ((sqrt(L) + 2 N) sqrt(1 + t / 100))

and predictions use the average of theta over about the last sixth of all rows. `L` is the running mean
of `(rho |z| |dphi|)^2`, `N` that of `|phi|^2`. No single row overshoots: alpha is at most
`1 / (|phi|^2 + N)` and `2 / (rho |z| |dphi| + (|phi|^2 + N) / 2)`. The correction, TDC's in the form
that is right for any trace, is regularised in the features' own unit, so that no scale matters.

`bounded`: no value lies beyond what the rewards so far allow, the least and the largest of them (and
0) times the longest discounted horizon seen. Where TD is stable this does nothing after the first
rows; where it is not, predictions stay bounded.

The limit is TD(lambda)'s with clipped traces, where the mean dynamics are stable.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from o2td.arrays import Floats
from o2td.compiled import njit
from o2td.kernels.fused import fade, move, sizes
from o2td.kernels.steps import CARRIED
from o2td.kernels.weighted import FASTMATH
from o2td.learners.dynamics import MeanDynamics, trace_moments
from o2td.learners.step_learner import StepLearner
from o2td.learners.step_sizes import StepSize
from o2td.learners.traced import Trace
from o2td.model import Model

FIRST, HORIZON = 4.0, 100.0
SHARE = 0.5  # of TDC's correction
NEGLIGIBLE = 1e-20  # of a feature's usual size: entries of a sparse trace below this are dropped
FAINT = 1e-100  # where the scale of w is written into w


@njit(nogil=True, fastmath=FASTMATH, forceinline=True)
def step(row, p, s, theta, w, z):  # type: ignore[no-untyped-def]
    """One row; w is held as `s.scale` times the vector, so that shrinking it costs nothing."""
    if s.steps == 0.0:
        s.scale = 1.0
    fade(z, row.decay, row.phi, NEGLIGIBLE * np.sqrt(s.squares))
    value, later, phi_w, z_w, zz, own, apart = sizes(row, theta, w, z)
    phi_w, z_w = s.scale * phi_w, s.scale * z_w
    # The values that the rewards so far allow.
    s.high, s.low = max(s.high, row.reward), min(s.low, row.reward)
    s.ahead = 1.0 + row.before * s.ahead
    s.longest = max(s.longest, s.ahead)
    later = min(max(later, s.low * s.longest), s.high * s.longest)
    delta = row.reward + row.discount * later - value
    # The step size.
    size = row.rho * np.sqrt(zz * apart)
    count = s.steps + 1.0
    s.lengths += (size * size - s.lengths) / count
    s.squares += (own - s.squares) / count
    known = np.sqrt(s.lengths) + 2.0 * s.squares
    if not known > 0.0:
        return
    alpha = row.alpha
    if alpha < 0.0:
        both = own + s.squares
        alpha = FIRST / (known * np.sqrt(1.0 + s.steps / HORIZON))
        alpha = min(alpha, 1.0 / both, 2.0 / (size + SHARE * both))
    # theta, then w.
    push, turn = alpha * row.rho * delta, SHARE * alpha * row.rho * z_w
    pull = alpha * phi_w
    move(theta, row, z, push, turn - SHARE * pull, -turn * row.discount)
    s.scale *= 1.0 - alpha * s.squares
    if s.scale < FAINT:
        for j in range(len(w)):
            w[j] *= s.scale
        s.scale = 1.0
    move(w, row, z, push / s.scale, -pull / s.scale, 0.0)


class ARCTD(StepLearner):
    """Averaged, regularised, clipped TD: an online learner whose defaults nobody needs to change.

    Parameters
    ----------
    step_size
        "auto", or a number or rule in place of what it finds itself.
    trace
        lambda.
    clip
        Largest ratio inside the trace.
    average
        Predictions use the average over about the last `1 / average` of all rows.

    Examples
    --------
    >>> import o2td
    >>> problem = o2td.domains.garnet(seed=0)
    >>> learner = o2td.ARCTD().partial_fit(problem.sample(3000, seed=0))
    >>> learner.status.kind
    'ok'
    """

    vectors = ("theta", "w", "z")
    traces = ("z",)
    scalars = ("scale", "high", "low", "ahead", "longest", "lengths", "squares")
    step = staticmethod(step)
    linear = False
    finds_step = True

    def __init__(
        self,
        step_size: StepSize = "auto",
        *,
        trace: Trace = 0.5,
        clip: float | None = 1.0,
        average: bool | float = 6.0,
        initial_theta: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(
            step_size, trace=trace, clip=clip, average=average, initial_theta=initial_theta
        )

    @property
    def w(self) -> Floats:
        """The second vector, without the scale that it is kept with."""
        if not self._arrays:
            return np.empty(0)
        scale = self._arrays["scalars"][0, len(CARRIED)] if self.steps else 1.0
        return np.asarray(scale * self._arrays["w"][0])

    def _moving(self) -> Floats:
        return np.concatenate([self.last_theta, self.w])

    def mean_dynamics(self, model: Model) -> MeanDynamics:
        """Of theta and w, in units of alpha, where no value is beyond its bounds."""
        emphasis, decay = self._expected(model)
        z = trace_moments(model, emphasis, decay, model.rho)
        C, d = model.gram(np.ones_like(model.rho)), model.d
        A = np.zeros((2 * d, 2 * d))
        A[:d, :d] = A[d:, :d] = z.dphi
        A[:d, d:] = SHARE * (C - z.dphi.T)
        A[d:, d:] = C + np.trace(C) * np.eye(d)
        return MeanDynamics(A, np.concatenate([z.reward, z.reward]), d)

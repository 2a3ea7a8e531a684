"""ARCTD: averaged, regularised, clipped TD(lambda), with nothing to tune.

    z     = (1 - 1 / 2g) gamma_t min(3, rho_{t-1}) z + phi,    g = sqrt(1 + t / 3000), at most 5
    delta = r + gamma bounded(phi'.theta) - phi.theta
    theta += alpha (rho delta (z + K f u) + share (rho (z.w) dphi - (phi.w) phi))
    w     += alpha (rho delta z - (phi.w) phi - N w)
    alpha = 3.5 pace / ((sqrt(L) + 2 N) sqrt(1 + t / 100)),    share = min(1, 1.5 N / Z) / 2

and predictions use the average of theta over about the last quarter of all rows. `L` is the running
mean of `(rho |z| |dphi|)^2`, `N` that of `|phi|^2`, `Z` that of `|z|^2`. No single row overshoots:
alpha is at most `1 / (|phi|^2 + N)` and `2 / (rho |z| |dphi| + share (|phi|^2 + N))`, with |phi| in
place of |dphi| if it is larger and the successor's value exceeds its bounds, because that value
then does not change with theta. The correction is TDC's, in the form that holds for any trace; it
is regularised in units of the features, so their scale does not matter. It fades where traces are
long, because w could not follow them, and stays where they are cut, which is where TD may be
unstable.

`pace` falls where theta only fluctuates: from one check to the next (rows 50, 75, 112 ...) theta has
moved by `D`, in steps whose squares `(alpha rho delta)^2 (|z|^2 + K f^2)` add up to `S`. Where there
is a long way to go, `D^2` is larger than S; where theta returns again and again to the same place, it
is far smaller, and smaller steps leave less noise:

    pace = min(1, pace (D^2 / 0.2 S)^0.2),    at least 1 / 128

Where `D^2` stays above S / 2, steps need not shrink, because there is little noise in them: instead of
1, `pace` becomes `pace (D^2 / 0.5 S)^0.2`, if that is larger, up to `sqrt(1 + t / 100)`. So the error of
theta falls geometrically where nothing is random, and that of the average with the fourth power of t.

`u` makes a constant of the features, as well as they can: `u += 2 (1 - phi.u) phi / (|phi|^2 + N)`.
The level that all values share is what TD learns last if the discount is near 1, so steps along u
are larger: `f` is the trace of phi.u, and

    K = min(4 N, 0.03 mean |dphi|^2 / mean (dphi.u)^2) min(1, m^2 / 10 v) / sqrt(1 + t / 1000)

which falls to zero, so the limit does not change. `m` is the recent mean of the values phi.theta
and `v` their variance: where values differ more than they share, there is no level to learn first.
`|z|^2` and `|dphi|^2` in the step size then include `K f^2` and `K (dphi.u)^2`. Steps along u are
summed up and added to theta at once every few rows, because they move all of theta; `delta` includes
what has not been added yet.

Traces start short, while noise dominates, and become longer as bias begins to dominate: lambda goes
from 1/2 to 0.9. If `trace` is a number, it does not change. If `step_size` is given, K is 0.

`bounded`: values are clipped to what the rewards so far allow, that is, the smallest and the
largest reward (and 0) times the longest discounted horizon seen. Where TD is stable, this has no
effect after the first rows; where it is not, predictions stay bounded.

Where the mean dynamics are stable, the limit is that of TD(0.9) with trace ratios clipped at 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arrays import Floats
from o2td.compiled import njit
from o2td.kernels.fused import lift, measured, move
from o2td.kernels.kept import CARRIED
from o2td.kernels.weighted import FASTMATH
from o2td.learners.dynamics import MeanDynamics, trace_moments, trace_square
from o2td.learners.replicates import FEWEST
from o2td.learners.step_learner import StepLearner
from o2td.learners.step_sizes import StepSize
from o2td.learners.traced import Trace
from o2td.load_store import greater, lesser
from o2td.model import Model
from o2td.transitions import Transitions

FIRST, HORIZON = 3.5, 100.0
EARLY, LATER, ADAPT, SLOWEST = 50.0, 1.5, 0.2, 1.0 / 128.0  # of the pace
STILL, STRAIGHT = 0.2, 0.5  # D^2 / S below which the pace falls, and above which it exceeds 1
SHARE, LONG = 0.5, 1.5  # of TDC's correction, and the |z|^2 over |phi|^2 from which it fades
GROWTH, MOST = 3000.0, 5.0  # of traces
LARGEST = 3.0  # ratio in a trace
GROWING, GROWN = -1.0, -2.0  # in place of lambda
BOOST, LASTS, EVEN, RECENT, COMMON = 4.0, 1000.0, 0.03, 5.0, 0.1  # of steps along u
FLAT = 1e-3  # how far phi.u may be from 1 without a change of u
NEGLIGIBLE = 1e-14  # of the root of N: entries of a sparse trace below this are dropped
FAINT = 1e-100  # where the scale of w is written into w


@njit(nogil=True, fastmath=FASTMATH, forceinline=True, allocates=False)
def step(row, p, s, theta, w, u, past, z):  # type: ignore[no-untyped-def]
    """One row; w is stored as `s.scale` times a vector, so that shrinking it costs nothing."""
    if s.steps == 0.0:
        s.scale, s.pace, s.check = 1.0, 1.0, EARLY
        for j in range(len(theta)):  # a slice would take two seconds to compile
            past[j] = theta[j]
    if s.steps >= s.due:
        lift(theta, w, u, z, s.shift, 1.0, s.steps >= s.check)
        wait = lesser(s.steps / 16.0, greater(8.0, len(theta) / 8.0))
        s.shift, s.due = 0.0, s.steps + 1.0 + wait
        if s.steps >= s.check:
            far = 0.0
            for j in range(len(theta)):
                moved = theta[j] - past[j]
                far += moved * moved
                past[j] = theta[j]
            if s.path > 0.0:
                pace = s.pace * (far / (STILL * s.path)) ** ADAPT
                if pace > 1.0:
                    pace = greater(1.0, s.pace * (far / (STRAIGHT * s.path)) ** ADAPT)
                s.pace = lesser(np.sqrt(1.0 + s.steps / HORIZON), greater(SLOWEST, pace))
            s.path, s.check = 0.0, LATER * s.steps
    decay = row.decay
    if p.trace < 0.0:
        grown = MOST if p.trace == GROWN else lesser(MOST, np.sqrt(1.0 + s.steps / GROWTH))
        decay = (1.0 - 0.5 / grown) * row.before * lesser(LARGEST, row.rho_before)
    floor = NEGLIGIBLE * np.sqrt(s.squares)
    found = measured(row, theta, w, u, z, decay, floor)
    value, later, phi_w, z_w, level, next_level, zz, own, apart = found
    phi_w, z_w = s.scale * phi_w, s.scale * z_w
    value, later = value + s.shift * level, later + s.shift * next_level
    # The values that the rewards so far allow.
    s.high, s.low = greater(s.high, row.reward), lesser(s.low, row.reward)
    s.ahead = 1.0 + row.before * s.ahead
    s.longest = greater(s.longest, s.ahead)
    bounded = lesser(greater(later, s.low * s.longest), s.high * s.longest)
    delta = row.reward + row.discount * bounded - value
    # Steps along u.
    count, rise = s.steps + 1.0, level - row.discount * next_level
    s.squares += (own - s.squares) / count
    s.flat = decay * s.flat + level
    s.apart += (apart - s.apart) / count
    s.rises += (rise * rise - s.rises) / count
    recent = RECENT / (s.steps + RECENT)
    s.level += recent * (value - s.level)
    s.values += recent * (value * value - s.values)
    boost, common = 0.0, COMMON * s.level * s.level
    if row.alpha < 0.0 and s.rises > 0.0:
        boost = lesser(BOOST * s.squares, EVEN * s.apart / s.rises) / np.sqrt(1.0 + s.steps / LASTS)
        variance = s.values - s.level * s.level
        if common < variance:
            boost *= common / variance
    # The step size.
    reached = zz + boost * s.flat * s.flat
    size = row.rho * np.sqrt(reached * (apart + boost * rise * rise))
    s.lengths += (size * size - s.lengths) / count
    s.traces += (zz - s.traces) / count
    known = np.sqrt(s.lengths) + 2.0 * s.squares
    if not known > 0.0:
        return
    share = SHARE * lesser(1.0, LONG * s.squares / s.traces) if s.traces > 0.0 else SHARE
    alpha, both = row.alpha, own + s.squares
    if alpha < 0.0:
        reach = size
        if bounded != later:
            reach = greater(size, row.rho * np.sqrt(reached * (own + boost * level * level)))
        alpha = s.pace * FIRST / (known * np.sqrt(1.0 + s.steps / HORIZON))
        alpha = -row.alpha * lesser(lesser(alpha, 1.0 / both), 2.0 / (reach + share * both))
    # theta and w; a change of u does not change theta + shift u.
    push, turn = alpha * row.rho * delta, share * alpha * row.rho * z_w
    pull, bend = alpha * phi_w, 0.0
    s.path += push * push * reached
    s.shift += push * boost * s.flat
    if row.alpha < 0.0 and abs(1.0 - level) > FLAT:
        bend = 2.0 * (1.0 - level) / both
    s.scale *= 1.0 - alpha * s.squares
    if s.scale < FAINT:
        lift(theta, w, u, z, 0.0, s.scale, False)
        s.scale = 1.0
    first = push, turn - share * pull - s.shift * bend, -turn * row.discount
    move(theta, w, u, row, z, first, (push / s.scale, -pull / s.scale), bend)


class ARCTD(StepLearner):
    """Averaged, regularised, clipped TD: an online learner that needs no tuning.

    Parameters
    ----------
    step_size
        "auto", or a number or rule to use instead.
    trace
        "auto", or lambda.
    clip
        Largest ratio inside the trace, if lambda is given.
    average
        Predictions use the average over about the last `1 / average` of all rows.
    replicates
        Number of online bootstrap replicates, for `predict(phi, interval=0.95)`; 64 are enough.

    Examples
    --------
    >>> import o2td
    >>> problem = o2td.domains.garnet(seed=0)
    >>> learner = o2td.ARCTD().partial_fit(problem.sample(3000, seed=0))
    >>> learner.status.kind
    'ok'
    """

    vectors = ("theta", "w", "u", "past", "z")
    traces = ("z",)
    scalars = (
        *("scale", "high", "low", "ahead", "longest", "lengths", "squares", "traces"),
        *("shift", "due", "flat", "apart", "rises", "level", "values", "pace", "path", "check"),
    )
    step = staticmethod(step)
    one_lambda = False  # `p.trace` is read only where it grows
    linear = False
    finds_step = True
    postpones = True
    set_once = ("trace",)
    simplified = (
        "traces and step size are held fixed here; ARCTD() lengthens its traces and shrinks its steps"
        " as it learns"
    )

    def __init__(
        self,
        step_size: StepSize = "auto",
        *,
        trace: Trace | str = "auto",
        clip: float | None = 1.0,
        average: bool | float = 4.0,
        replicates: int = 0,
        initial_theta: npt.ArrayLike | None = None,
    ) -> None:
        grows = isinstance(trace, str) and trace == "auto"
        super().__init__(
            step_size,
            trace=1.0 - 0.5 / MOST if grows else trace,
            clip=clip,
            average=average,
            replicates=replicates,
            initial_theta=initial_theta,
        )
        if grows:
            self.trace = trace
            self._assigned = None  # both are right

    @property
    def _grows(self) -> bool:
        return isinstance(self.trace, str)

    @property
    def _by_number(self) -> bool:
        return self._grows or super()._by_number

    @property
    def _traced(self) -> bool:
        return self._grows or super()._traced

    def _lambda(self, block: Transitions) -> Any:
        return 1.0 - 0.5 / MOST if self._grows else super()._lambda(block)

    def trace_decay(self, rho: Any, target_prob: Any, behavior_prob: Any) -> Any:
        """`lambda c`; for growing traces, its final value."""
        if self._grows:
            return (1.0 - 0.5 / MOST) * np.minimum(LARGEST, rho)
        return super().trace_decay(rho, target_prob, behavior_prob)

    @property
    def _ahead(self) -> int:
        return self.replicates // 2 if self._grows and self.replicates >= FEWEST else 0

    def _numbers(self, lane: int) -> dict[str, float]:
        grown = lane > self.replicates - self._ahead
        own = {"trace": GROWN if grown else GROWING} if self._grows else {}
        return {**super()._numbers(lane), **own}

    @property
    def w(self) -> Floats:
        """The second vector, with its stored scale applied."""
        if not self._arrays:
            return np.empty(0)
        scale = self._arrays["scalars"][0, len(CARRIED)] if self.steps else 1.0
        return np.asarray(scale * self._arrays["w"][0])

    def _moving(self) -> Floats:
        return np.concatenate([self.last_theta, self.w])

    def mean_dynamics(self, model: Model) -> MeanDynamics:
        """The joint system of theta and w, in units of alpha, while no value exceeds its bounds."""
        emphasis, decay = self._expected(model)
        z = trace_moments(model, emphasis, decay, model.rho)
        C, d = model.gram(np.ones_like(model.rho)), model.d
        share = SHARE * min(1.0, LONG * np.trace(C) / trace_square(model, decay))
        A = np.zeros((2 * d, 2 * d))
        A[:d, :d] = A[d:, :d] = z.dphi
        A[:d, d:] = share * (C - z.dphi.T)
        A[d:, d:] = C + np.trace(C) * np.eye(d)
        return MeanDynamics(A, np.concatenate([z.reward, z.reward]), d)

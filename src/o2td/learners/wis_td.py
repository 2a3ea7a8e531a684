"""WIS-TD(lambda): weighted importance sampling, O(d), with a step size per feature from its usage.

    u = (1 - eta phi^2) (u + (rho - 1) g v) + rho phi^2,    v = rho g (1 - eta phi^2) v + rho phi^2
    a = alpha / u,    e = rho (g e + (1 - rho g phi.e) a phi),    g = gamma_t lambda
    b = g (d - rho (phi.d) a phi),    y = theta_{t-1}.phi_t, at a start theta_t.phi_t
    theta += (r + gamma theta.phi' - y) e + rho (y - theta.phi) a phi + (rho - 1) b
    d = rho b + (r + theta.phi' - y) e

(all per feature). With one feature per state, u is the sum of the ratios over a state's visits, and
theta the average of weighted importance sampling, whose variance is smaller than TD's; d holds what
rows of a trace have moved, to be weighted anew by the ratios that follow. Leave `step_size` at 1 for
that; `usage` is the initial u, and `recency` (eta) forgets old rows.

Mahmood & Sutton (2015), "Off-policy learning based on weighted importance sampling with linear
computational complexity", WIS-TD(lambda).
"""

from __future__ import annotations

from typing import ClassVar, Unpack

from o2td.arguments import number, unit
from o2td.arrays import Floats
from o2td.compiled import jitable, njit
from o2td.learners.step_learner import (
    Row,
    StepLearner,
    add,
    count,
    dot,
    follow,
    index,
    value,
)
from o2td.learners.step_sizes import StepSize
from o2td.learners.traced import LambdaAxes
from o2td.load_store import greater

__all__ = ["WISTD"]

LEAST = 1e-12  # usage below this stands for never used
FAINT = 1e-140  # what a ratio of 0 leaves of e: theta moves there, and a sparse e must list it


@jitable
def use(row, p, kept, u, v):  # type: ignore[no-untyped-def]
    """The usage u and its trace v after this row; u is stored without its initial value."""
    for k in range(count(row.phi)):
        j, x = index(row.phi, k), value(row.phi, k)
        square = x * x
        own = (row.rho - 1.0) * kept * v.values[j]
        u[j] += row.rho * square - p.recency * square * (u[j] + p.usage + own)
    add(u, (row.rho - 1.0) * kept, v)
    follow(v, row.rho * kept, row.rho, row.phi)
    for k in range(count(row.phi)):
        j, x = index(row.phi, k), value(row.phi, k)
        rest = v.values[j] - row.rho * x
        v.values[j] = rest - p.recency * x * x * rest + row.rho * x * x


@njit(cache=True, allocates=False)
def step(row: Row, p, s, theta, u, d, e, v):  # type: ignore[no-untyped-def]
    """One row; `s.value` is `theta_{t-1}.phi_t`. Where d is not 0, e is not, either."""
    here, next_v = dot(row.phi, theta), dot(row.next_phi, theta)
    before = here if row.start else s.value
    kept = row.before * p.trace
    moved = row.rho * (1.0 - row.rho * kept * dot(row.phi, e))
    provisional = row.rho * kept * dot(row.phi, d)
    use(row, p, kept, u, v)
    for k in range(count(e)):
        j = index(e, k)
        theta[j] += (row.rho - 1.0) * kept * d[j]
        d[j] *= row.rho * kept
    follow(e, row.rho * kept if row.rho > 0.0 else FAINT * kept, moved, row.phi)
    back = row.rho * (before - here) - (row.rho - 1.0) * provisional
    for k in range(count(row.phi)):
        j, x = index(row.phi, k), value(row.phi, k)
        a = row.alpha / greater(u[j] + p.usage, LEAST)
        e.values[j] += moved * (a - 1.0) * x
        theta[j] += back * a * x
        d[j] -= row.rho * provisional * a * x
    add(theta, row.reward + row.discount * next_v - before, e)
    add(d, row.reward + next_v - before, e)
    s.value = next_v


class WISTD(StepLearner):
    """Weighted importance sampling TD(lambda).

    Parameters
    ----------
    step_size : float, rule or "auto"
        alpha, which multiplies 1 / u; 1 is weighted importance sampling.
    usage : float
        u before the first row.
    recency : float
        eta, from 0 to 1: how fast old rows are forgotten.

    Examples
    --------
    The weighted average of 1 and 3 with ratios 3 and 1:

    >>> import numpy as np, o2td
    >>> one = np.ones((2, 1))
    >>> rows = o2td.Transitions(one, [1.0, 3.0], one, 0.0, rho=[3.0, 1.0])
    >>> o2td.WISTD(usage=1e-9).partial_fit(rows).theta.round(6)
    array([1.5])
    """

    vectors: ClassVar[tuple[str, ...]] = ("theta", "u", "d", "e", "v")
    traces: ClassVar[tuple[str, ...]] = ("e", "v")
    scalars: ClassVar[tuple[str, ...]] = ("value",)
    undefined: ClassVar[tuple[str, ...]] = ("second_step_size", "clip", "cut", "emphasis")
    counts_rows: ClassVar[bool] = True
    step = staticmethod(step)
    no_dynamics: ClassVar[str] = "its step sizes fall with what was used"

    def __init__(
        self,
        step_size: StepSize = 1.0,
        *,
        second_step_size: StepSize | None = None,
        usage: float = 10.0,
        recency: float = 0.0,
        **axes: Unpack[LambdaAxes],
    ) -> None:
        self.usage, self.recency = number("usage", usage, above=0.0), unit("recency", recency)
        super().__init__(step_size, second_step_size=second_step_size, **axes)

    @property
    def used(self) -> Floats:
        """How much each feature was used: 1 over its step size."""
        return self.vector("u") + self.usage

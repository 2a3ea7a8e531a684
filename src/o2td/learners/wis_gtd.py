"""WIS-GTD(lambda): gradient TD with the step sizes of weighted importance sampling, O(d).

    e = rho (g e + phi),    g = gamma_t lambda,    a = alpha / u, by feature
    theta += a (delta e - gamma (1 - lambda) (e.w) phi'),    w += alpha_w (delta e - (phi.w) phi)

with the usage u of `wis_td`. Limit and w are those of GTD(lambda), which is `TDC` here; the step
size of w does not fall with use. Leave `step_size` at 1 for weighted importance sampling.

Mahmood & Sutton (2015), "Off-policy learning based on weighted importance sampling with linear
computational complexity", WIS-GTD(lambda).
"""

from __future__ import annotations

from typing import ClassVar, Unpack

from o2td.arguments import switch
from o2td.arrays import Floats
from o2td.compiled import njit
from o2td.learners.row_mask import skip_rows
from o2td.learners.step_learner import Row, add, count, dot, follow, index, td_error, value
from o2td.learners.step_sizes import StepSize
from o2td.learners.traced import LambdaAxes
from o2td.learners.wis_td import LEAST, WISTD, use
from o2td.load_store import greater
from o2td.transitions import Transitions

__all__ = ["WISGTD"]


@njit(cache=True, allocates=False)
def step(row: Row, p, s, theta, w, u, e, v):  # type: ignore[no-untyped-def]
    """One row."""
    delta = td_error(row, theta)
    kept = row.before * p.trace
    use(row, p, kept, u, v)
    follow(e, row.rho * kept, row.rho, row.phi)
    back = row.discount * (1.0 - p.trace) * dot(e, w)
    for k in range(count(e)):
        j = index(e, k)
        theta[j] += row.alpha / greater(u[j] + p.usage, LEAST) * delta * value(e, k)
    for k in range(count(row.next_phi)):
        j = index(row.next_phi, k)
        theta[j] -= row.alpha / greater(u[j] + p.usage, LEAST) * back * value(row.next_phi, k)
    pull = row.alpha_w * dot(row.phi, w)
    add(w, row.alpha_w * delta, e)
    add(w, -pull, row.phi)


class WISGTD(WISTD):
    """Weighted importance sampling GTD(lambda).

    Parameters
    ----------
    step_size : float, rule or "auto"
        alpha, which multiplies 1 / u; 1 is weighted importance sampling.
    second_step_size : float, rule or "auto"
        alpha_w.
    usage : float
        u before the first row.
    recency : float
        eta, from 0 to 1: how fast old rows are forgotten.
    skip_zero_ratio : bool
        Whether rows with ratio 0 leave theta and w unchanged; they count as use of features.

    Examples
    --------
    The weighted average of 1 and 3 with ratios 3 and 1, where nothing follows:

    >>> import numpy as np, o2td
    >>> one = np.ones((2, 1))
    >>> rows = o2td.Transitions(one, [1.0, 3.0], one, 0.0, rho=[3.0, 1.0])
    >>> o2td.WISGTD(usage=1e-9).partial_fit(rows).theta.round(6)
    array([1.5])
    """

    vectors: ClassVar[tuple[str, ...]] = ("theta", "w", "u", "e", "v")
    undefined: ClassVar[tuple[str, ...]] = ("clip", "cut", "emphasis")
    scalars: ClassVar[tuple[str, ...]] = ()
    step = staticmethod(step)

    def __init__(
        self,
        step_size: StepSize = 1.0,
        *,
        second_step_size: StepSize | None = "auto",
        usage: float = 10.0,
        recency: float = 0.0,
        skip_zero_ratio: bool = False,
        **axes: Unpack[LambdaAxes],
    ) -> None:
        self.skip_zero_ratio = switch("skip_zero_ratio", skip_zero_ratio)
        super().__init__(
            step_size,
            second_step_size=second_step_size,
            usage=usage,
            recency=recency,
            **axes,
        )

    def _fill_rows(self, block: Transitions, out: dict[str, Floats]) -> None:
        super()._fill_rows(block, out)
        skip_rows(self, block, out)

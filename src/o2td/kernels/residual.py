"""The compiled loop of residual gradient: `theta += gain_t delta_t (phi_t - gamma2_t phi2'_t)`.

With one successor, `gamma2, phi2'` are gamma and phi' themselves and gain is alpha rho; with a second,
independent one they are its own, and gain is alpha rho rho_2 (Baird 1995).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from o2td.arrays import Floats
from o2td.compiled import jitable, overload
from o2td.kernels.lanes import advance
from o2td.kernels.row_passes import add_row, dot_row

HUGE = 1e150


class ResidualLanes(NamedTuple):
    """Residual-gradient lanes; `second` holds the successors that give the direction."""

    reward: Floats
    discount: Floats
    source: npt.NDArray[np.int64]
    second: Any
    discount_2: Floats
    gain: Floats
    theta: Floats


@jitable(fastmath={"reassoc", "contract"})
def run(
    rows, following, second, lo: int, hi: int, reward, discount, discount_2, gain, theta
) -> int:
    """Move one lane over rows lo:hi; returns the first row that was not applied."""
    for t in range(lo, hi):
        delta = reward[t] - dot_row(rows, t, theta)
        if discount[t] != 0.0:
            delta += discount[t] * dot_row(following, t, theta)
        a = gain[t] * delta
        if not (abs(delta) < HUGE and abs(a) < HUGE):
            return t
        add_row(rows, t, a, theta)
        if discount_2[t] != 0.0:
            add_row(second, t, -a * discount_2[t], theta)
    return hi


@overload(advance)
def _advance(rows, following, lanes, lane, lo, hi):
    if getattr(lanes, "instance_class", None) is not ResidualLanes:
        return None

    def any_rows(rows, following, lanes, lane, lo, hi):
        k = lanes.source[lane]
        return run(
            rows, following, lanes.second, lo, hi, lanes.reward[k], lanes.discount[k],
            lanes.discount_2[lane], lanes.gain[lane], lanes.theta[lane],
        )  # fmt: skip

    return any_rows

"""The step size chosen from the data, independent of the scale of features and rewards.

    alpha_t = 2 / ((sqrt(L_t) + N_t + kappa) sqrt(1 + t / 1000)),    alpha_t (own size of row t) <= 1

`L_t` is the running mean of `(rho |z| |dphi|)^2` and `N_t` that of `|phi|^2`, both including the
current row; `kappa`, for alpha_w only, is the fraction of itself that w loses in every step. The
own size of a row is `rho |z| |dphi|`, plus `|phi|^2 + kappa` if there is a second vector, so no
single row overshoots. The bound stops binding as alpha falls, so it does not change the limit,
whereas dividing by each row's own size would.

Learners whose w or theta moves by the transpose of TD's matrix (`cautious`: HTD, TDC-MP) take
`min(1, 4 (1 - gamma))` of it, gamma the mean discount so far and of one row with discount 0. Along
the level that all values share, that matrix pulls back with `1 - gamma` only, while every row pushes
with its full size: at other learners' steps, noise grows without bound on problems whose mean
dynamics are stable.
"""

from __future__ import annotations

import numpy as np

from o2td.arrays import Floats
from o2td.learners.step_sizes.rule import Gauge, Rule

__all__ = ["Auto"]

HORIZON = 1000.0  # steps after which alpha begins to fall
PULL = 4.0  # of 1 - gamma, in the share that cautious learners take


class Auto(Rule):
    """What `step_size="auto"` stands for."""

    def fill(self, gauge: Gauge, out: Floats) -> None:
        """From running means, stored as sums."""
        sums = gauge.memory.setdefault("auto", np.zeros(2))
        measured, kappa = gauge.measured, gauge.kappa
        steps = np.arange(gauge.first + 1.0, gauge.first + 1.0 + len(out))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            lengths = np.cumsum(np.append(sums[0], measured.size**2))
            squares = np.cumsum(np.append(sums[1], measured.square))
            scale = np.sqrt(lengths[1:] / steps) + squares[1:] / steps + kappa
            own = measured.size + (measured.square + kappa if gauge.second else 0.0)
            fall = np.sqrt(1.0 + (steps - 1.0) / HORIZON)
            found = gauge.share * np.minimum(2.0 / (scale * fall), 1.0 / own)
        if gauge.lost is not None:
            before = gauge.memory.setdefault("lost", np.zeros(1))
            lost = np.cumsum(np.append(before, gauge.lost))
            before[0] = lost[-1]
            found *= np.minimum(1.0, PULL * (1.0 + lost[1:]) / steps)
        sums[:] = lengths[-1], squares[-1]
        out[:] = np.where(np.isfinite(found), found, 0.0)

    def shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Sums: of squares, and of what discounts take off."""
        return {"auto": (2,), "lost": (1,)}

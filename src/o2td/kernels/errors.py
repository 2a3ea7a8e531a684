"""Metrics of many theta at once, sixteen side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from o2td.kernels.vectors import WIDTH, squares

HUGEST = 1e300  # a sum of squares beyond this is shown as infinite


@njit(cache=True, nogil=True)
def errors(
    snapshots: Any, turned: bool, R: Any, center: Any, constant: float, room: Any, out: Any
) -> None:
    """`sqrt(|R (theta - center)|^2 + constant)` of every theta in `snapshots`, (groups, 16 d).

    A group is sixteen theta one after the other, or a column each if they are `turned`. R (d, d), upper
    triangular, is laid out flat; `room` (2, 16 d) is memory.
    """
    d = len(center)
    shifted, total = room[0], room[1]
    across, along = (WIDTH, 1) if turned else (1, d)
    for group in range(len(snapshots)):
        theta = snapshots[group]
        for j in range(d):
            for s in range(WIDTH):
                shifted[j * WIDTH + s] = theta[j * across + s * along] - center[j]
        squares(R, shifted, total, d)
        for s in range(WIDTH):
            value = total[s] + constant
            at = group * WIDTH + s
            out[at] = np.sqrt(max(value, 0.0)) if value < HUGEST else np.inf

"""Metrics of many theta at once, sixteen side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from o2td.kernels.vectors import LINE, WIDTH, squares

HUGEST = 1e300  # a sum of squares beyond this is shown as infinite


@njit(cache=True, nogil=True)
def errors(
    snapshots: Any,
    first: int,
    records: int,
    turned: bool,
    stride: int,
    lanes: Any,
    R: Any,
    center: Any,
    constant: float,
    metric: int,
    values: Any,
) -> None:
    """`sqrt(|R (theta - center)|^2 + constant)` of every theta, to `values[lane, metric, record]`.

    `snapshots` (groups, 16 d) holds `stride` theta of each record, of which the first are those of
    `lanes`. A group is sixteen theta one after the other, or a column each if they are `turned`. R
    (d, d), upper triangular, is laid out flat.
    """
    d = len(center)
    memory = np.empty((d + 2) * WIDTH)  # vectors begin at lines of the cache
    skip = -memory.ctypes.data % LINE // 8
    shifted, total = memory[skip : skip + d * WIDTH], memory[skip + d * WIDTH :]
    across, along = (WIDTH, 1) if turned else (1, d)
    for group in range(-(-records * stride // WIDTH)):
        theta = snapshots[group]
        for j in range(d):
            for s in range(WIDTH):
                shifted[j * WIDTH + s] = theta[j * across + s * along] - center[j]
        squares(R, shifted, total, d)
        for s in range(WIDTH):
            value = total[s] + constant
            record, lane = divmod(group * WIDTH + s, stride)
            if record < records and lane < len(lanes):
                found = np.sqrt(max(value, 0.0)) if value < HUGEST else np.inf
                values[lanes[lane], metric, first + record] = found


@njit(cache=True, nogil=True)
def is_upper(R: Any) -> bool:
    """Whether a square matrix is zero below its diagonal."""
    for i in range(1, len(R)):
        for j in range(i):
            if R[i, j] != 0.0:
                return False
    return True

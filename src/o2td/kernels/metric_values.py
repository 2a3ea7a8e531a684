"""Metrics of many theta at once, sixteen side by side."""

from __future__ import annotations

import numpy as np

from o2td.compiled import njit
from o2td.kernels.vectors import LINE, WIDTH, squares
from o2td.load_store import get_row, get_theta, posted, put_z

HUGEST = 1e300  # larger sums of squares are shown as infinite


@njit(cache=True, nogil=True)
def metric_values(
    ring, low: int, high: int, lanes, R, center, constant: float, metric: int, values
) -> None:
    """`values[lane, metric, record] = sqrt(|R (theta - center)|^2 + constant)` for records low:high.

    R (d, d), upper triangular, is flattened. Nothing is written for a record before it is in the ring.
    """
    d, rows = len(center), len(ring.theta)
    memory = np.zeros((d + 2) * WIDTH)  # vectors are aligned to cache lines
    skip = -memory.ctypes.data % LINE // 8
    shifted, total = memory[skip : skip + d * WIDTH], memory[skip + d * WIDTH :]
    flat, stride = ring.theta.ravel(), ring.stride
    high = min(high, posted(ring.written, 0))
    for row in range(low * stride, high * stride, WIDTH):
        many = min(WIDTH, high * stride - row)
        begin = row % rows * d
        if ring.turned[row // stride % len(ring.turned)]:
            for j in range(d):
                for k in range(j * WIDTH, (j + 1) * WIDTH):
                    put_z(shifted, k, get_theta(flat, begin + k) - get_row(center, j))
        else:
            for s in range(many):
                begin = (row + s) % rows * d
                for j in range(d):
                    value = get_theta(flat, begin + j) - get_row(center, j)
                    put_z(shifted, j * WIDTH + s, value)
        squares(R, shifted, total, d)
        for s in range(many):
            value = total[s] + constant
            record, lane = divmod(row + s, stride)
            if lane < len(lanes):
                found = np.sqrt(max(value, 0.0)) if value < HUGEST else np.inf
                values[lanes[lane], metric, record] = found


@njit(cache=True, nogil=True)
def is_upper(R) -> bool:
    """Whether a square matrix is zero below its diagonal."""
    for i in range(1, len(R)):
        entries = 0
        for j in range(i):
            entries += R[i, j] != 0.0
        if entries > 0:
            return False
    return True

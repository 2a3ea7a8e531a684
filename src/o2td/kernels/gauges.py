"""What step-size rules measure on each row: the sizes of the trace, of dphi and of phi."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td.compiled import njit
from o2td.kernels.gradient_sparse import dot_active, trace_sparse
from o2td.kernels.row_passes import add_row, dot_row, dphi_moments, norm_of
from o2td.kernels.weighted import FASTMATH

__all__ = ["measure_dense", "measure_sparse"]


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def measure_dense(
    rows: Any,
    following: Any,
    discount: Any,
    weight: Any,
    decay: Any,
    traced: bool,
    z: Any,
    out: Any,
) -> None:
    """`|z| |dphi|`, `z.dphi` and `|phi|^2` of each row into `out` (3, n); `z` is updated."""
    for t in range(len(weight)):
        along, square = dphi_moments(rows, following, t, discount[t])
        norm = norm_of(rows, t)
        length = weight[t] * weight[t] * norm
        across = weight[t] * along
        if traced:
            length = 0.0
            for j in range(len(z)):
                z[j] *= decay[t]
            add_row(rows, t, weight[t], z)
            for j in range(len(z)):
                length += z[j] * z[j]
            across = dot_row(rows, t, z)
            if discount[t] != 0.0:
                across -= discount[t] * dot_row(following, t, z)
        out[0, t], out[1, t], out[2, t] = np.sqrt(length) * np.sqrt(square), across, norm


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def measure_sparse(
    rows: Any,
    following: Any,
    discount: Any,
    weight: Any,
    decay: Any,
    z: Any,
    active: Any,
    count: int,
    out: Any,
) -> None:
    """The same on CSR rows, with a trace that lists its nonzero indices."""
    for t in range(len(weight)):
        square = dphi_moments(rows, following, t, discount[t])[1]
        count = trace_sparse(rows, rows.at[t], weight[t], decay[t], z, active, count)
        length = dot_active(z, active, count, z)
        across = dot_row(rows, t, z)
        if discount[t] != 0.0:
            across -= discount[t] * dot_row(following, t, z)
        out[0, t], out[1, t] = np.sqrt(length) * np.sqrt(square), across
        out[2, t] = norm_of(rows, t)

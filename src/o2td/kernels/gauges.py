"""What step-size rules measure on each row: the sizes of the trace, of dphi and of phi."""

from __future__ import annotations

import numpy as np

from o2td.compiled import jitable, njit
from o2td.kernels.gradient_sparse import dot_active
from o2td.kernels.lanes import Flag
from o2td.kernels.row_passes import dot_row, dphi_moments, norm_of
from o2td.kernels.weighted import FASTMATH
from o2td.kernels.weighted_sparse import trace_sparse
from o2td.load_store import get_row, get_z, put_z

__all__ = ["measure_dense", "measure_sparse"]


@jitable(fastmath=FASTMATH)
def _sizes(here, i, there, k, gamma, weight, decay, traced, z):
    """`|z|^2`, `|dphi|^2`, `z.dphi` and `|phi|^2` of the rows from i and k on; z is updated."""
    length = square = across = norm = 0.0
    for j in range(len(z)):
        phi = get_row(here, i + j)
        dphi = phi - gamma * get_row(there, k + j)
        square += dphi * dphi
        norm += phi * phi
        if traced is None:
            across += phi * dphi
        else:
            entry = decay * get_z(z, j) + weight * phi
            put_z(z, j, entry)
            length += entry * entry
            across += entry * dphi
    if traced is None:
        return weight * weight * norm, square, weight * across, norm
    return length, square, across, norm


@njit(cache=True, nogil=True, allocates=False, fastmath=FASTMATH)
def measure_dense(rows, following, discount, weight, decay, traced: Flag, z, out) -> None:
    """`|z| |dphi|`, `z.dphi` and `|phi|^2` of each row into `out` (3, n); `z` is updated."""
    here, there, d = rows.matrix, following.matrix, len(z)
    for t in range(len(weight)):
        i, gamma = rows.at[t] * d, discount[t]
        if gamma != 0.0:
            k = following.at[t] * d
            found = _sizes(here, i, there, k, gamma, weight[t], decay[t], traced, z)
        else:
            found = _sizes(here, i, here, i, gamma, weight[t], decay[t], traced, z)
        out[0, t], out[1, t] = np.sqrt(found[0]) * np.sqrt(found[1]), found[2]
        out[2, t] = found[3]


@njit(cache=True, nogil=True, allocates=False, fastmath=FASTMATH)
def measure_sparse(
    rows, following, discount, weight, decay, traced: Flag, z, active, count: int, out
) -> None:
    """The same on CSR rows, with a trace that lists its nonzero indices."""
    for t in range(len(weight)):
        along, square = dphi_moments(rows, following, t, discount[t])
        norm = norm_of(rows, t)
        if traced is None:
            length, across = weight[t] * weight[t] * norm, weight[t] * along
        else:
            count = trace_sparse(rows, rows.at[t], weight[t], decay[t], z, active, count)
            length, across = dot_active(z, active, count, z), dot_row(rows, t, z)
            if discount[t] != 0.0:
                across -= discount[t] * dot_row(following, t, z)
        out[0, t], out[1, t], out[2, t] = np.sqrt(length) * np.sqrt(square), across, norm

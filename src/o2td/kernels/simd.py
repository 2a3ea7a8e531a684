"""Many lanes over dense rows, sixteen side by side: the same steps, with features read once.

As in the plain kernels, a pass over theta applies the step of one row and takes the dot products of
the next. Here such a pass moves sixteen lanes (`vectors`), so features come from memory once for
all of them and there is no sum across a vector to wait for. `dphi = phi - gamma phi'` is computed
once for all groups. A group is padded to sixteen with lanes of zeros. A diverged lane is
replaced by zeros too: it is taken out as it was before the row that overflowed, and does not affect
others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from o2td.arrays import Floats
from o2td.compiled import njit
from o2td.kernels.lanes import CACHED_ROWS
from o2td.kernels.vectors import WIDTH, aligned
from o2td.kernels.weighted import FASTMATH, quotient
from o2td.load_store import get_row, put_z

__all__ = ["Room", "differences", "room_for"]


class Room(NamedTuple):
    """Memory for a block of rows and a group of lanes."""

    dphi: Floats
    """Rows of differences, flattened: one of zeros, then those of the block."""
    omega: Floats
    """One per row of the block."""
    gains: Floats
    """Up to four numbers per row and lane, (4, rows, 16)."""
    numbers: Floats
    """Eight numbers per lane, (8, 16)."""
    lanes: npt.NDArray[np.int64]
    """The lanes' indices 0, 1, ..."""


def room_for(lanes: int, n: int, d: int) -> Room:
    """Memory for n rows of d features."""
    most = min(n, CACHED_ROWS)
    return Room(
        np.zeros((most + 1) * d),
        np.zeros(most),
        np.zeros((4, most, WIDTH)),
        aligned(8, 1),
        np.arange(lanes),
    )


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def differences(rows, following, discount, lo: int, hi: int, room) -> None:
    """`dphi` and omega of rows lo:hi; a row with gamma = 0 has no successor to read."""
    d = rows.matrix.shape[1]
    here, there, dphi = rows.matrix.ravel(), following.matrix.ravel(), room.dphi
    for t in range(lo, hi):
        up, gamma, to = rows.at[t] * d, discount[t], (t - lo + 1) * d
        along = square = 0.0
        if gamma == 0.0:
            for j in range(d):
                x = get_row(here, up + j)
                put_z(dphi, to + j, x)
                square += x * x
            along = square
        else:
            k = following.at[t] * d
            for j in range(d):
                phi = get_row(here, up + j)
                x = phi - gamma * get_row(there, k + j)
                put_z(dphi, to + j, x)
                along += x * phi
                square += x * x
        room.omega[t - lo] = quotient((along, square))

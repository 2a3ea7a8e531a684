"""A ring buffer of theta: drivers append every lane's each k steps, and metrics read it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from o2td.compiled import jitable
from o2td.load_store import get_theta, post, put_z

__all__ = ["RingBuffer", "append"]


class RingBuffer(NamedTuple):
    """The latest records: record r is stored at r modulo their number."""

    theta: npt.NDArray[np.float64]
    """Rows (records * stride, d); the first rows of a record belong to the lanes."""
    turned: npt.NDArray[np.bool_]
    """Whether each sixteen rows of a record hold (d, 16), one column per lane."""
    written: npt.NDArray[np.int64]
    """The number written in total; read it with `load_store.posted`."""
    stride: int
    """Rows per record."""

    @classmethod
    def room(cls, records: int, stride: int, d: int) -> RingBuffer:
        """Memory for a number of records."""
        theta = np.empty((records * stride, d))
        return cls(theta, np.zeros(records, np.bool_), np.zeros(1, np.int64), stride)


@jitable
def append(thetas, turned: bool, ring) -> None:
    """Append all thetas, (lanes, d) or, transposed, (groups, 16 d), unless the ring has no room."""
    if len(ring.turned) > 0:
        slot = ring.written[0] % len(ring.turned)
        begin = slot * ring.stride * ring.theta.shape[1]
        for j in range(thetas.size):
            put_z(ring.theta, begin + j, get_theta(thetas, j))
        ring.turned[slot] = turned
        post(ring.written, 0, ring.written[0] + 1)

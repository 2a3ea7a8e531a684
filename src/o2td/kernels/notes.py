"""What drivers note every k steps, theta of every lane, for whoever works out their errors meanwhile."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from o2td.compiled import njit
from o2td.kernels.memory import get_theta, post, put_z

__all__ = ["Notes", "note"]


class Notes(NamedTuple):
    """The last records, in turn in the same memory: record r is where r modulo their number is."""

    theta: npt.NDArray[np.float64]
    """Rows (records * stride, d); of a record the first are those of the lanes."""
    turned: npt.NDArray[np.bool_]
    """Whether sixteen rows of a record hold (d, 16), a column a lane."""
    noted: npt.NDArray[np.int64]
    """How many have been noted in all; read it with `memory.posted`."""
    stride: int
    """Rows of a record."""

    @classmethod
    def room(cls, records: int, stride: int, d: int) -> Notes:
        """Memory for so many records."""
        theta = np.empty((records * stride, d))
        return cls(theta, np.zeros(records, np.bool_), np.zeros(1, np.int64), stride)


@njit(cache=True, nogil=True)
def note(thetas: Any, turned: bool, notes: Any) -> None:
    """Note all thetas, (lanes, d) or, turned, (groups, 16 d), if there is room for any."""
    if len(notes.turned) > 0:
        slot = notes.noted[0] % len(notes.turned)
        given, out = thetas.ravel(), notes.theta.ravel()
        begin = slot * notes.stride * notes.theta.shape[1]
        for j in range(len(given)):
            put_z(out, begin + j, get_theta(given, j))
        notes.turned[slot] = turned
        post(notes.noted, 0, notes.noted[0] + 1)

"""Lanes of the weighted-TD family: their arrays, and one lane over a block of rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from o2td.arrays import Bools, Floats, Ints
from o2td.compiled import overload
from o2td.kernels.lanes import Flag, advance
from o2td.kernels.weighted import dense_lane
from o2td.kernels.weighted_sparse import sparse_lane

__all__ = ["WeightedLanes"]


class WeightedLanes(NamedTuple):
    """Weighted-TD lanes: row arrays are (lanes, n); `source` selects a lane's reward and discount."""

    reward: Floats
    discount: Floats
    source: Ints
    gain: Floats
    weight: Floats
    decay: Floats
    inner: Bools | None
    """Whether a lane's weight includes omega; None if none does."""
    traced: Flag
    theta: Floats
    z: Floats
    bound: Floats
    active: npt.NDArray[np.int32]
    size: Ints


@overload(advance)
def _advance(rows, following, lanes, lane, lo, hi):
    if getattr(lanes, "instance_class", None) is not WeightedLanes:
        return None
    if "matrix" in rows.fields:

        def dense(rows, following, lanes, lane, lo, hi):
            k = lanes.source[lane]
            return dense_lane(
                rows, following, lo, hi, lanes.reward[k], lanes.discount[k], lanes.gain[lane],
                lanes.weight[lane], lanes.inner, lane, lanes.decay[lane], lanes.traced,
                lanes.theta[lane], lanes.z[lane], lanes.bound[lane],
            )  # fmt: skip

        return dense

    def sparse(rows, following, lanes, lane, lo, hi):
        k = lanes.source[lane]
        return sparse_lane(
            rows, following, lo, hi, lanes.reward[k], lanes.discount[k], lanes.gain[lane],
            lanes.weight[lane], lanes.inner, lane, lanes.decay[lane], lanes.traced,
            lanes.theta[lane], lanes.z[lane], lanes.active[lane], lanes.size[lane],
            lanes.bound[lane],
        )  # fmt: skip

    return sparse

"""Lanes of the gradient-TD family: their arrays, and one lane over a block of rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from o2td.arrays import Floats, Ints
from o2td.compiled import overload
from o2td.kernels.gradient import dense_lane
from o2td.kernels.gradient_sparse import sparse_lane
from o2td.kernels.lanes import Flag, advance

__all__ = ["GradientLanes"]


class GradientLanes(NamedTuple):
    """Gradient-TD lanes; `member` (lanes, 10) says which method each one is."""

    reward: Floats
    discount: Floats
    source: Ints
    gain: Floats
    second_gain: Floats
    weight: Floats
    decay: Floats
    decay_b: Floats
    member: Floats
    traced: Flag
    mirror: Flag
    theta: Floats
    w: Floats
    z: Floats
    zb: Floats
    bound: Floats
    active: npt.NDArray[np.int32]
    active_b: npt.NDArray[np.int32]
    size: Ints


@overload(advance)
def _advance(rows, following, lanes, lane, lo, hi):
    if getattr(lanes, "instance_class", None) is not GradientLanes:
        return None
    if "matrix" in rows.fields:

        def dense(rows, following, lanes, lane, lo, hi):
            k = lanes.source[lane]
            return dense_lane(
                rows, following, lo, hi, lanes.reward[k], lanes.discount[k], lanes.gain[lane],
                lanes.second_gain[lane], lanes.weight[lane], lanes.decay[lane],
                lanes.decay_b[lane], lanes.member[lane], lanes.traced, lanes.mirror,
                lanes.theta[lane], lanes.w[lane], lanes.z[lane], lanes.zb[lane],
                lanes.bound[lane],
            )  # fmt: skip

        return dense

    def sparse(rows, following, lanes, lane, lo, hi):
        k = lanes.source[lane]
        return sparse_lane(
            rows, following, lo, hi, lanes.reward[k], lanes.discount[k], lanes.gain[lane],
            lanes.second_gain[lane], lanes.weight[lane], lanes.decay[lane],
            lanes.decay_b[lane], lanes.member[lane], lanes.traced, lanes.mirror,
            lanes.theta[lane], lanes.w[lane], lanes.z[lane], lanes.zb[lane],
            lanes.active[lane], lanes.active_b[lane], lanes.size[lane], lanes.bound[lane],
        )  # fmt: skip

    return sparse

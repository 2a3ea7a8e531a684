"""Many lanes over one stream: the one compiled driver of both families.

A lane is one learner. Rows are taken in small blocks that stay in the processor's cache while every
lane passes over them, and theta is noted every k steps without leaving compiled code. A lane
that diverges stops there, with its step noted, and never touches another.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit
from numba.extending import overload

from o2td.kernels.gradient import dense_lane as _gradient_dense
from o2td.kernels.gradient_sparse import sparse_lane as _gradient_sparse
from o2td.kernels.notes import note
from o2td.kernels.residual import run as _residual
from o2td.kernels.weighted import dense_lane as _weighted_dense
from o2td.kernels.weighted_sparse import sparse_lane as _weighted_sparse

__all__ = ["GradientLanes", "ResidualLanes", "WeightedLanes", "drive"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

CACHED_ROWS = 64  # rows that every lane passes over before the next ones are read


class WeightedLanes(NamedTuple):
    """Weighted-TD lanes: row arrays are (lanes, n); `source` picks a lane's reward and discount."""

    reward: Floats
    discount: Floats
    source: Ints
    gain: Floats
    weight: Floats
    decay: Floats
    inner: Bools
    traced: Bools
    theta: Floats
    z: Floats
    bound: Floats
    active: npt.NDArray[np.int32]
    size: Ints


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
    traced: Bools
    mirror: Bools
    theta: Floats
    w: Floats
    z: Floats
    zb: Floats
    bound: Floats
    active: npt.NDArray[np.int32]
    active_b: npt.NDArray[np.int32]
    size: Ints


class ResidualLanes(NamedTuple):
    """Residual-gradient lanes, each with its direction's successor `second`."""

    reward: Floats
    discount: Floats
    source: Ints
    second: Any
    discount_2: Floats
    gain: Floats
    theta: Floats


def advance(*arguments: Any) -> int:
    """One lane over rows lo:hi; returns the first row that was not applied."""
    raise NotImplementedError("compiled code only")


@overload(advance)
def _advance(rows, following, lanes, lane, lo, hi):  # type: ignore[no-untyped-def]
    family = lanes.instance_class
    is_dense = "matrix" in rows.fields
    if family is WeightedLanes and is_dense:

        def weighted_dense(rows, following, lanes, lane, lo, hi):  # type: ignore[no-untyped-def]
            k = lanes.source[lane]
            return _weighted_dense(
                rows, following, lo, hi, lanes.reward[k], lanes.discount[k], lanes.gain[lane],
                lanes.weight[lane], lanes.inner[lane], lanes.decay[lane], lanes.traced[lane],
                lanes.theta[lane], lanes.z[lane], lanes.bound[lane],
            )  # fmt: skip

        return weighted_dense
    if family is WeightedLanes:

        def weighted_sparse(rows, following, lanes, lane, lo, hi):  # type: ignore[no-untyped-def]
            k = lanes.source[lane]
            return _weighted_sparse(
                rows, following, lo, hi, lanes.reward[k], lanes.discount[k], lanes.gain[lane],
                lanes.weight[lane], lanes.inner[lane], lanes.decay[lane], lanes.traced[lane],
                lanes.theta[lane], lanes.z[lane], lanes.active[lane], lanes.size[lane],
                lanes.bound[lane],
            )  # fmt: skip

        return weighted_sparse
    if family is GradientLanes and is_dense:

        def gradient_dense(rows, following, lanes, lane, lo, hi):  # type: ignore[no-untyped-def]
            k = lanes.source[lane]
            return _gradient_dense(
                rows, following, lo, hi, lanes.reward[k], lanes.discount[k], lanes.gain[lane],
                lanes.second_gain[lane], lanes.weight[lane], lanes.decay[lane],
                lanes.decay_b[lane], lanes.member[lane], lanes.traced[lane], lanes.mirror[lane],
                lanes.theta[lane], lanes.w[lane], lanes.z[lane], lanes.zb[lane],
                lanes.bound[lane],
            )  # fmt: skip

        return gradient_dense
    if family is GradientLanes:

        def gradient_sparse(rows, following, lanes, lane, lo, hi):  # type: ignore[no-untyped-def]
            k = lanes.source[lane]
            return _gradient_sparse(
                rows, following, lo, hi, lanes.reward[k], lanes.discount[k], lanes.gain[lane],
                lanes.second_gain[lane], lanes.weight[lane], lanes.decay[lane],
                lanes.decay_b[lane], lanes.member[lane], lanes.traced[lane], lanes.mirror[lane],
                lanes.theta[lane], lanes.w[lane], lanes.z[lane], lanes.zb[lane],
                lanes.active[lane], lanes.active_b[lane], lanes.size[lane], lanes.bound[lane],
            )  # fmt: skip

        return gradient_sparse

    def residual_any(rows, following, lanes, lane, lo, hi):  # type: ignore[no-untyped-def]
        k = lanes.source[lane]
        return _residual(
            rows, following, lanes.second, lo, hi, lanes.reward[k], lanes.discount[k],
            lanes.discount_2[lane], lanes.gain[lane], lanes.theta[lane],
        )  # fmt: skip

    return residual_any


@njit(cache=True, nogil=True)
def block_end(lo: int, n: int, first: int, every: int) -> int:
    """Where the block that begins at row lo ends.

    It does not depend on the number of lanes, so that neither do the results.
    """
    return min(n, lo + min(CACHED_ROWS, every - (first + lo) % every)) if every > 0 else n


@njit(cache=True, nogil=True)
def drive(
    rows: Any,
    following: Any,
    lanes: Any,
    diverged: Any,
    n: int,
    first: int,
    every: int,
    notes: Any,
) -> None:
    """All lanes over n rows, the first of which is step `first` of the stream.

    `diverged[lane]` is -1 or the step that could not be taken. After each step whose number is a
    multiple of `every` (none if every is 0) every theta is noted.
    """
    lo = 0
    while lo < n:
        hi = block_end(lo, n, first, every)
        for lane in range(len(diverged)):
            if diverged[lane] < 0:
                done = advance(rows, following, lanes, lane, lo, hi)
                if done < hi:
                    diverged[lane] = first + done
        if every > 0 and (first + hi) % every == 0:
            note(lanes.theta, False, notes)
        lo = hi

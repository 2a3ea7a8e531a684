"""The state of lanes that are moved by steps of their own: saved, restored, and checked for size."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from o2td.arrays import Floats
from o2td.compiled import overload
from o2td.kernels.load_store import peek
from o2td.kernels.weighted import FASTMATH, HUGE

__all__ = ["CARRIED", "Kept", "calm", "keep", "keep_lists"]

CARRIED = ("steps", "before", "rho_before")  # scalars that the driver carries from row to row


class Kept(NamedTuple):
    """Where the state of lanes is, and a saved copy of one lane's."""

    places: npt.NDArray[np.int64]
    """(arrays, 2): the address and the width of each array (lanes, width)."""
    state: Floats
    active: npt.NDArray[np.int32]
    size: npt.NDArray[np.int64]

    @classmethod
    def room(cls, state: Sequence[Floats], lanes: Any) -> Kept:
        """Memory for one lane of these arrays and of the index lists."""
        places = np.array([(array.ctypes.data, array.shape[1]) for array in state])
        width = max((array.shape[1] for array in lanes.active), default=0)
        return cls(
            places,
            np.empty((len(state), max(places[:, 1]))),
            np.empty((len(lanes.active), width), dtype=np.int32),
            np.empty_like(lanes.size[0]),
        )

    def restore(self, state: Sequence[Floats], lanes: Any, lane: int) -> None:
        """Give a lane the saved state."""
        for array, own in zip(state, self.state, strict=True):
            array[lane] = own[: array.shape[1]]
        for array, listed in zip(lanes.active, self.active, strict=True):
            array[lane] = listed
        lanes.size[lane] = self.size


def numbers_at(place: Any, lane: int) -> Floats:
    """The numbers of one lane of the array at this place."""
    address, width = map(int, place)
    kind = ctypes.c_double * width
    return np.ctypeslib.as_array(kind.from_address(address + ctypes.sizeof(kind) * lane))


def keep(kept: Kept, lane: int) -> None:
    """Save the state of a lane, except for its index lists."""
    for place, own in zip(kept.places, kept.state, strict=True):
        own[: place[1]] = numbers_at(place, lane)


@overload(keep)
def _keep(kept, lane):  # type: ignore[no-untyped-def]
    def compiled(kept, lane):  # type: ignore[no-untyped-def]
        for k in range(len(kept.places)):
            address, width = kept.places[k, 0], kept.places[k, 1]
            for j in range(width):
                kept.state[k, j] = peek(address, lane * width + j)

    return compiled


def calm(places: Any, lane: int) -> bool:
    """Whether a lane's own state, without `CARRIED`, sums to less than `HUGE` in absolute value."""
    *arrays, scalars = (np.abs(numbers_at(place, lane)) for place in places)
    total = scalars[len(CARRIED) :].sum() + sum(array.sum() for array in arrays)
    return bool(total < HUGE)


@overload(calm, jit_options={"fastmath": FASTMATH})
def _calm(places, lane):  # type: ignore[no-untyped-def]
    carried = len(CARRIED)

    def compiled(places, lane):  # type: ignore[no-untyped-def]
        total = 0.0
        for k in range(len(places)):
            address, width = places[k, 0], places[k, 1]
            for j in range(carried if k == len(places) - 1 else 0, width):
                total += abs(peek(address, lane * width + j))
        return total < HUGE

    return compiled


def keep_lists(active: Any, size: Any, lane: int, kept: Any) -> None:
    """Save the index lists of a lane's traces, if there are any."""
    for k, array in enumerate(active):
        kept.active[k] = array[lane]
    kept.size[:] = size[lane]


@overload(keep_lists)
def _keep_lists(active, size, lane, kept):  # type: ignore[no-untyped-def]
    if len(active) == 0:
        return lambda active, size, lane, kept: None

    def listed(active, size, lane, kept):  # type: ignore[no-untyped-def]
        for k in range(len(active)):
            array = active[k]
            for j in range(array.shape[1]):
                kept.active[k, j] = array[lane, j]
            kept.size[k] = size[lane, k]

    return listed

"""The state of lanes that are moved by steps of their own: saved, restored, and checked for size."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, type_callable
from numba.np.arrayobj import populate_array

from o2td.arrays import Floats
from o2td.compiled import overload
from o2td.kernels.access import DenseTrace, SparseTrace
from o2td.kernels.weighted import FASTMATH, HUGE
from o2td.load_store import peek, rolled

__all__ = ["CARRIED", "Kept", "address_of", "calm", "keep", "keep_lists", "traces_of", "vectors_of"]

NUMBERS = types.Array(types.float64, 1, "C")
TRACE = types.NamedUniTuple(NUMBERS, 1, DenseTrace)
_NUMBER = 8  # bytes
CARRIED = ("steps", "before", "rho_before")  # scalars that the driver carries from row to row


class Kept(NamedTuple):
    """Where the state of lanes is, and a saved copy of one lane's."""

    places: npt.NDArray[np.int64]
    """(arrays, 2): the address and the width of each array (lanes, width)."""
    state: Floats
    active: npt.NDArray[np.int32]
    size: npt.NDArray[np.int64]

    @classmethod
    def room(cls, state: Sequence[Floats], lanes) -> Kept:
        """Memory for one lane of these arrays and of the index lists."""
        places = np.array([(address_of(array), array.shape[1]) for array in state])
        width = max((array.shape[1] for array in lanes.active), default=0)
        return cls(
            places,
            np.empty((len(state), max(places[:, 1]))),
            np.empty((len(lanes.active), width), dtype=np.int32),
            np.empty_like(lanes.size[0]),
        )

    def restore(self, state: Sequence[Floats], lanes, lane: int) -> None:
        """Give a lane the saved state."""
        for array, own in zip(state, self.state, strict=True):
            array[lane] = own[: array.shape[1]]
        for array, listed in zip(lanes.active, self.active, strict=True):
            array[lane] = listed
        lanes.size[lane] = self.size


def address_of(array) -> int:
    """Where an array's numbers begin."""
    if array.flags.writeable and array.size:  # `array.ctypes.data` takes five times as long
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    return int(array.__array_interface__["data"][0])


def numbers_at(place, lane: int) -> Floats:
    """The numbers of one lane of the array at this place."""
    address, width = map(int, place)
    kind = ctypes.c_double * width
    return np.ctypeslib.as_array(kind.from_address(address + ctypes.sizeof(kind) * lane))


def vectors_of(stacked, places, first: int, lane: int) -> Any:
    """The vectors of one lane, as many as are stacked, from the first place on."""
    return tuple(numbers_at(place, lane) for place in places[first : first + len(stacked)])


def dense_traces(stacked, places, first: int, lane: int) -> Any:
    """The same as traces."""
    return tuple(DenseTrace(z) for z in vectors_of(stacked, places, first, lane))


@type_callable(vectors_of)
def _typed_vectors(_) -> Any:
    return lambda stacked, places, first, lane: types.Tuple([NUMBERS] * len(stacked))


@type_callable(dense_traces)
def _typed_traces(_) -> Any:
    return lambda stacked, places, first, lane: types.Tuple([TRACE] * len(stacked))


@lower_builtin(vectors_of, types.BaseTuple, types.Array, types.Integer, types.Integer)
@lower_builtin(dense_traces, types.BaseTuple, types.Array, types.Integer, types.Integer)
def _lowered(context, builder, signature, given) -> Any:
    """Arrays made of addresses and widths, all at once: functions for them take longer to compile."""
    _, places, first, lane = given
    table = context.make_array(signature.args[1])(context, builder, places).data
    word, found = first.type, []
    for k, kind in enumerate(signature.return_type):
        at = builder.mul(builder.add(first, word(k)), word(2))
        address, width = (
            builder.load(builder.gep(table, [builder.add(at, word(n))])) for n in range(2)
        )
        pointer = builder.inttoptr(address, ir.DoubleType().as_pointer())
        array = context.make_array(NUMBERS)(context, builder)
        populate_array(
            array,
            data=builder.gep(pointer, [builder.mul(lane, width)]),
            shape=[width],
            strides=[word(_NUMBER)],
            itemsize=word(_NUMBER),
            meminfo=None,
        )
        value = array._getvalue()
        found.append(context.make_tuple(builder, kind, [value]) if kind == TRACE else value)
    return context.make_tuple(builder, signature.return_type, found)


def traces_of(lanes, places, lane: int) -> Any:
    """The traces of one lane, whose places follow those of vectors; with index lists on CSR rows."""
    if not lanes.active:
        return dense_traces(lanes.traces, places, len(lanes.vectors), lane)
    arrays = vectors_of(lanes.traces, places, len(lanes.vectors), lane)
    return listed_traces(arrays, lanes.active, lanes.size[lane], lane, 0)


def listed_traces(arrays, active, sizes, lane: int, place: int) -> Any:
    """Traces with their index lists."""
    pairs = enumerate(zip(arrays, active, strict=False), place)
    return tuple(SparseTrace(z, own[lane], sizes, k) for k, (z, own) in pairs)


@overload(traces_of)
def _traces_of(lanes, places, lane):
    if len(lanes.types[lanes.fields.index("active")]) == 0:
        return lambda lanes, places, lane: dense_traces(
            lanes.traces, places, len(lanes.vectors), lane
        )

    def listed(lanes, places, lane):
        arrays = vectors_of(lanes.traces, places, len(lanes.vectors), lane)
        return listed_traces(arrays, lanes.active, lanes.size[lane], lane, 0)

    return listed


@overload(listed_traces)
def _listed_traces(arrays, active, sizes, lane, place):
    if len(arrays) == 0:
        return lambda arrays, active, sizes, lane, place: ()
    return lambda arrays, active, sizes, lane, place: (
        SparseTrace(arrays[0], active[0][lane], sizes, place),
        *listed_traces(arrays[1:], active[1:], sizes, lane, place + 1),
    )


def keep(kept: Kept, lane: int) -> None:
    """Save the state of a lane, except for its index lists."""
    for place, own in zip(kept.places, kept.state, strict=True):
        own[: place[1]] = numbers_at(place, lane)


@overload(keep)
def _keep(kept, lane):
    def compiled(kept, lane):
        for k in range(len(kept.places)):
            address, width = kept.places[k, 0], kept.places[k, 1]
            for j in range(width):
                kept.state[k, j] = peek(address, lane * width + j)

    return compiled


def calm(places, lane: int) -> bool:
    """Whether a lane's own state, without `CARRIED`, sums to less than `HUGE` in absolute value."""
    *arrays, scalars = (np.abs(numbers_at(place, lane)) for place in places)
    total = scalars[len(CARRIED) :].sum() + sum(array.sum() for array in arrays)
    return bool(total < HUGE)


@overload(calm, jit_options={"fastmath": FASTMATH})
def _calm(places, lane):
    carried = len(CARRIED)

    def compiled(places, lane):
        total = 0.0
        for k in range(len(places)):
            address, width = places[k, 0], places[k, 1]
            for j in range(carried if k == len(places) - 1 else 0, width):
                total += abs(peek(address, lane * width + j))
        return total < HUGE

    return compiled


def keep_lists(active, size, lane: int, kept) -> None:
    """Save the index lists of a lane's traces, if there are any."""
    for k, array in enumerate(active):
        kept.active[k] = array[lane]
    kept.size[:] = size[lane]


@overload(keep_lists)
def _keep_lists(active, size, lane, kept):
    if len(active) == 0:
        return lambda active, size, lane, kept: None

    def listed(active, size, lane, kept):
        for k in range(len(active)):
            array = active[k]
            for j in range(array.shape[1]):
                rolled()
                kept.active[k, j] = array[lane, j]
            kept.size[k] = size[lane, k]

    return listed

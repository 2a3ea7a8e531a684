"""The driver of steps written for one row: it passes rows, records theta and detects divergence.

A learner that diverges keeps the state from before the row that made a number too large. A step need
not check for that: the state is saved at the beginning of a stretch of rows, and a stretch that ends
with a number beyond `HUGE` is repeated in halves until the row is found.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from numba.core.registry import CPUDispatcher
from numba.extending import overload

from o2td.arrays import Floats
from o2td.compiled import njit
from o2td.kernels import access, fused
from o2td.kernels.access import DenseFeatures, DenseTrace, SparseFeatures, SparseTrace
from o2td.kernels.ring_buffer import append
from o2td.kernels.settle import (
    average,
    averages_only,
    close_lane,
    open_lane,
    remember,
    settle_all,
    settle_row,
)
from o2td.kernels.weighted import FASTMATH, HUGE

__all__ = ["Row", "StepLanes", "driver_of"]

LARGE = 1e100  # after a larger ratio, a lane is checked at once
CARRIED = ("steps", "before", "rho_before")  # scalars that the driver carries from row to row


class Row(NamedTuple):
    """A row as a step sees it; read `phi` and `next_phi` with the functions of `kernels.access`."""

    phi: Any
    next_phi: Any
    """Has no entries where discount is 0."""
    reward: float
    discount: float
    """gamma_{t+1}, the discount of this transition."""
    rho: float
    start: bool
    """Whether a trajectory starts here."""
    alpha: float
    """The step size."""
    alpha_w: float
    """The second step size."""
    decay: float
    """The factor that the trace keeps: lambda c_{t-1} gamma_t, 0 at a start."""
    before: float
    """gamma_t, the discount of the previous row; 0 at a start."""
    rho_before: float
    """rho_{t-1}, the ratio of the previous row."""
    emphasis: float
    """M_t, the weight of this row."""
    interest: float
    target_prob: float
    behavior_prob: float


class StepLanes(NamedTuple):
    """Lanes of one step: columns are (streams, n), row arrays (lanes, n), parameters are records."""

    source: npt.NDArray[np.int64]
    reward: Floats
    discount: Floats
    rho: Floats
    start: npt.NDArray[np.bool_]
    interest: Floats
    target_prob: Floats
    behavior_prob: Floats
    alpha: Floats
    alpha_w: Floats
    decay: Floats
    emphasis: Floats
    parameters: Any
    scalars: Any
    numbers: Floats
    """The same scalars, (lanes, count)."""
    vectors: tuple[Floats, ...]
    traces: tuple[Floats, ...]
    all: tuple[Floats, ...]
    """Vectors, then traces."""
    active: tuple[npt.NDArray[np.int32], ...]
    size: npt.NDArray[np.int64]

    @property
    def theta(self) -> Floats:
        """The first vector."""
        return self.vectors[0]


def values_of(rows: Any) -> Floats:
    """The numbers of all rows, flattened."""
    found: Floats = rows.matrix.reshape(-1) if hasattr(rows, "matrix") else rows.data
    return found


@overload(values_of)
def _values_of(rows):  # type: ignore[no-untyped-def]
    if "matrix" in rows.fields:
        return lambda rows: rows.matrix.ravel()
    return lambda rows: rows.data


def features_at(rows: Any, values: Floats, t: int, present: bool) -> Any:
    """Row t of `values_of(rows)` as `access` reads it; it has no entries if it is not present."""
    i = rows.at[t]
    if hasattr(rows, "matrix"):
        d = rows.matrix.shape[1]
        return DenseFeatures(values, i * d, d if present else 0)
    low, high = rows.indptr[i], rows.indptr[i + 1]
    return SparseFeatures(values, rows.indices, low, high - low if present else 0)


@overload(features_at, jit_options={"forceinline": True})
def _features_at(rows, values, t, present):  # type: ignore[no-untyped-def]
    if "matrix" in rows.fields:

        def dense(rows, values, t, present):  # type: ignore[no-untyped-def]
            d = rows.matrix.shape[1]
            return DenseFeatures(values, rows.at[t] * d, d if present else 0)

        return dense

    def sparse(rows, values, t, present):  # type: ignore[no-untyped-def]
        low, high = rows.indptr[rows.at[t]], rows.indptr[rows.at[t] + 1]
        return SparseFeatures(values, rows.indices, low, high - low if present else 0)

    return sparse


def vectors_of(stacked: Any, lane: int) -> Any:
    """The vectors of one lane."""
    return tuple(array[lane] for array in stacked)


@overload(vectors_of)
def _vectors_of(stacked, lane):  # type: ignore[no-untyped-def]
    if len(stacked) == 1:
        return lambda stacked, lane: (stacked[0][lane],)
    half = len(stacked) // 2  # halving keeps the recursion shallow if there are many vectors
    return lambda stacked, lane: vectors_of(stacked[:half], lane) + vectors_of(stacked[half:], lane)


def traces_of(rows: Any, stacked: Any, active: Any, sizes: Any, lane: int, place: int) -> Any:
    """The traces of one lane, with their index lists if rows are CSR."""
    if hasattr(rows, "matrix"):
        return tuple(DenseTrace(array[lane]) for array in stacked)
    pairs = zip(stacked, active, strict=False)
    return tuple(SparseTrace(z[lane], a[lane], sizes, k) for k, (z, a) in enumerate(pairs))


@overload(traces_of)
def _traces_of(rows, stacked, active, sizes, lane, place):  # type: ignore[no-untyped-def]
    if len(stacked) == 0:
        return lambda rows, stacked, active, sizes, lane, place: ()
    if "matrix" in rows.fields:
        return lambda rows, stacked, active, sizes, lane, place: (
            DenseTrace(stacked[0][lane]),
            *traces_of(rows, stacked[1:], active[1:], sizes, lane, place + 1),
        )
    return lambda rows, stacked, active, sizes, lane, place: (
        SparseTrace(stacked[0][lane], active[0][lane], sizes, place),
        *traces_of(rows, stacked[1:], active[1:], sizes, lane, place + 1),
    )


class Kept(NamedTuple):
    """The saved state of one lane: vectors and traces (k, d), index lists (traces, d), and scalars."""

    vectors: Floats
    active: npt.NDArray[np.int32]
    size: npt.NDArray[np.int64]
    numbers: Floats

    @classmethod
    def room(cls, lanes: Any) -> Kept:
        """Memory for one of these lanes."""
        return cls(
            np.empty((len(lanes.all), max(array.shape[1] for array in lanes.all))),
            np.empty((len(lanes.active), lanes.active[0].shape[1]), dtype=np.int32),
            np.empty_like(lanes.size[0]),
            np.empty_like(lanes.numbers[0]),
        )


@njit(cache=True, nogil=True)
def copy(source: Any, into: Any) -> None:
    """Copy element by element, which compiles quickly; `into` may be larger."""
    for j in range(len(source)):
        into[j] = source[j]


@njit(cache=True, nogil=True)
def keep(lanes: Any, lane: int, kept: Any) -> None:
    """Save the state of a lane."""
    for k in range(len(lanes.all)):
        copy(lanes.all[k][lane], kept.vectors[k])
    for k in range(len(lanes.active)):
        copy(lanes.active[k][lane], kept.active[k])
    copy(lanes.size[lane], kept.size)
    copy(lanes.numbers[lane], kept.numbers)


@njit(cache=True, nogil=True)
def restore(lanes: Any, lane: int, kept: Any) -> None:
    """Restore the saved state of a lane."""
    for k in range(len(lanes.all)):
        copy(kept.vectors[k, : lanes.all[k].shape[1]], lanes.all[k][lane])
    for k in range(len(lanes.active)):
        copy(kept.active[k], lanes.active[k][lane])
    copy(kept.size, lanes.size[lane])
    copy(kept.numbers, lanes.numbers[lane])


def moves_all(s: Any) -> bool:
    """Whether the next step moves all of theta: where there is a scalar `due`, from that row on."""
    return "due" in s.dtype.names and bool(s.steps >= s.due)


@overload(moves_all)
def _moves_all(s):  # type: ignore[no-untyped-def]
    if "due" in s.fields:
        return lambda s: s.steps >= s.due
    return lambda s: False


@njit(cache=True, nogil=True)
def calm(lanes: Any, lane: int) -> bool:
    """Whether a lane's own state, without `CARRIED`, sums to less than `HUGE` in absolute value."""
    total = sizes(lanes.numbers[lane, len(CARRIED) :])
    for k in range(len(lanes.all)):
        total += sizes(lanes.all[k][lane])
    return bool(total < HUGE)


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def sizes(x: Any) -> float:
    """`sum_j |x_j|`."""
    total = 0.0
    for j in range(len(x)):
        total += abs(x[j])
    return total


def step(*arguments: Any) -> None:
    """Placeholder for the learner's own step in `drive_steps`."""
    raise NotImplementedError


def drive_steps(
    rows: Any,
    following: Any,
    lanes: Any,
    settle: Any,
    kept: Any,
    diverged: Any,
    n: int,
    first: int,
    every: int,
    ring: Any,
) -> None:
    """As `lanes.drive`, with a step for one row: a template in which `step` is replaced."""
    lo, here, there = min(0, n), values_of(rows), values_of(following)
    while lo < n:
        hi = min(n, lo + every - (first + lo) % every) if every > 0 else n
        for lane in range(len(diverged)):
            if diverged[lane] >= 0:
                continue
            k = lanes.source[lane]
            vectors = vectors_of(lanes.vectors, lane)
            traces = traces_of(rows, lanes.traces, lanes.active, lanes.size[lane], lane, 0)
            p, s = lanes.parameters[lane], lanes.scalars[lane]
            keep(lanes, lane, kept)
            lazy, averaged = settle.active and settle.lazy, averages_only(settle, lane)
            mean = settle.mean[lane] if settle.active else vectors[0]
            weight = settle.average[lane] if settle.active else 0.0
            low, unit = lo, hi - lo
            while low < hi:
                high = min(hi, low + unit)
                open_lane(settle, vectors[0], lane)
                for t in range(low, high):
                    whole = lazy and moves_all(s)
                    if whole:
                        copy(vectors[0], settle.old)
                    elif lazy:
                        remember(rows, following, lanes, settle, vectors[0], lane, t)
                    gamma, start = lanes.discount[k, t], lanes.start[k, t]
                    row = Row(
                        features_at(rows, here, t, True),
                        features_at(following, there, t, gamma != 0.0),
                        lanes.reward[k, t],
                        gamma,
                        lanes.rho[k, t],
                        start,
                        lanes.alpha[lane, t],
                        lanes.alpha_w[lane, t],
                        lanes.decay[lane, t],
                        0.0 if start else s.before,
                        s.rho_before,
                        lanes.emphasis[lane, t],
                        lanes.interest[k, t],
                        lanes.target_prob[k, t],
                        lanes.behavior_prob[k, t],
                    )
                    step(row, p, s, *vectors, *traces)
                    s.steps += 1.0
                    s.before = gamma
                    s.rho_before = lanes.rho[k, t]
                    if lanes.rho[k, t] > LARGE and not calm(lanes, lane):
                        vectors[0][:] = np.nan  # or a trace that the next row resets would hide it
                    if whole:
                        settle_all(settle, vectors[0], lane)
                    if averaged:
                        average(mean, vectors[0], weight, s.steps - 1.0)
                    elif settle.active:
                        settle_row(rows, following, lanes, settle, vectors[0], lane, t)
                close_lane(settle, vectors[0], lane)
                if calm(lanes, lane):
                    low = high
                    if low < hi:
                        keep(lanes, lane, kept)
                elif high - low > 1:
                    restore(lanes, lane, kept)
                    unit = (high - low) // 2
                else:
                    restore(lanes, lane, kept)
                    diverged[lane] = first + low
                    break
        if every > 0 and (first + hi) % every == 0:
            append(settle.mean if settle.active else lanes.vectors[0], False, ring)
        lo = hi


Drive = Callable[..., None]
_DRIVERS: WeakKeyDictionary[Any, dict[tuple[str, ...], Drive]] = WeakKeyDictionary()


def driver_of(own: Any, names: tuple[str, ...]) -> Drive:
    """`drive_steps` with this step filled in: compiled if the step is, else plain Python.

    There is one for each list of parameter names, because Numba confuses records that begin alike.
    """
    known = _DRIVERS.setdefault(own, {})
    if names not in known:
        compiled = isinstance(own, CPUDispatcher)
        known[names] = _compiled(own, names) if compiled else _filled(own, drive_steps.__code__)
    return known[names]


def _filled(own: Any, code: Any) -> FunctionType:
    return FunctionType(code, {**drive_steps.__globals__, "step": own}, code.co_name)


def _compiled(own: Any, names: tuple[str, ...]) -> Drive:
    """The compiled driver, cached on disk beside the step's own file, so that its changes are noticed.

    The driver's name contains a digest of the files that Numba does not check.
    """
    digest = hashlib.sha256(",".join(names).encode())
    for file in (__file__, access.__file__, fused.__file__):
        digest.update(Path(file).read_bytes())
    function = own.py_func
    code = drive_steps.__code__.replace(
        co_filename=function.__code__.co_filename,
        co_firstlineno=function.__code__.co_firstlineno,
        co_name=f"drive_{function.__name__}_{digest.hexdigest()[:12]}",
    )
    options = {**own.targetoptions, "forceinline": True}
    options.pop("nopython", None)
    inlined = njit(**options)(function)
    filled = _filled(inlined, code)
    filled.__qualname__ = code.co_name  # the cache's key
    made: Drive = njit(cache=True, nogil=True, fastmath=FASTMATH)(filled)
    return made

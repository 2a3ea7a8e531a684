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

from o2td import load_store
from o2td.arrays import Floats
from o2td.compiled import njit
from o2td.kernels import access, fused, kept, pending, settle
from o2td.kernels.access import features_at, values_of
from o2td.kernels.kept import Kept, calm, keep, keep_lists, traces_of, vectors_of
from o2td.kernels.pending import before, closed, follow, handed, opened
from o2td.kernels.ring_buffer import append
from o2td.kernels.settle import After, average, confine
from o2td.kernels.weighted import FASTMATH
from o2td.linked import CalledCompiler, LinkedCompiler
from o2td.load_store import peek

__all__ = ["COLUMNS", "STREAMED", "Row", "StepLanes", "driver_of", "run_steps"]

LARGE = 1e100  # after a larger ratio, a lane is checked at once
STREAMED = ("reward", "discount", "rho", "interest", "target_prob", "behavior_prob")
COLUMNS = (*STREAMED, "alpha", "alpha_w", "decay", "emphasis")
REWARD, DISCOUNT, RHO, INTEREST, TARGET, BEHAVIOR, ALPHA, ALPHA_W, DECAY, EMPHASIS = range(10)
Drive = Callable[..., Any]


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
    """Lanes of one step; parameters and scalars are records, one a lane.

    Every array that compiled code takes out of a tuple costs a hundredth of a second at the first
    use, so the numbers of rows are given by their addresses, and vectors and traces by `Kept.places`.
    """

    source: npt.NDArray[np.int64]
    start: npt.NDArray[np.bool_]
    """(streams, n)"""
    columns: npt.NDArray[np.int64]
    """(lanes, 10): where the numbers `COLUMNS` of a lane's rows begin."""
    held: Any
    """The arrays that they are in, which must not be freed."""
    parameters: Any
    scalars: Any
    theta: Floats
    vectors: tuple[Any, ...]
    """Arrays (lanes, width), of which the driver sees only the number."""
    traces: tuple[Any, ...]
    """The same."""
    active: tuple[npt.NDArray[np.int32], ...]
    """The index lists of traces; none on dense rows."""
    size: npt.NDArray[np.int64]

    def counted(self) -> StepLanes:
        """What the driver sees."""
        vectors, traces = (None,) * len(self.vectors), (None,) * len(self.traces)
        return self._replace(held=None, vectors=vectors, traces=traces)


def step(*arguments: Any) -> None:
    """Placeholder for the learner's own step in `drive_steps`."""
    raise NotImplementedError


def drive_steps(
    rows,
    following,
    lanes,
    settle,
    ball,
    lazy,
    kept,
    diverged,
    low: int,
    high: int,
    begin: int,
    first: int,
    every: int,
    ring,
) -> tuple[int, int]:
    """As `lanes.drive`, with a step for one row: a template in which `step` is replaced.

    If a lane diverges between two records, it ends there and returns the lane and the row of the
    first of them; `kept` then is the lane's state at that row. Else the lane is -1. It begins with
    lane `begin` at row `low`.
    """
    lo, here, there = low, values_of(rows)[0], values_of(following)[0]
    while lo < high:
        hi = lo + every - (first + lo) % every if every > 0 else high
        hi = high if hi > high else hi
        for lane in range(begin, len(diverged)):
            if diverged[lane] >= 0:
                continue
            keep(kept, lane)
            keep_lists(lanes.active, lanes.size, lane, kept)
            k, places = lanes.source[lane], lanes.columns[lane]
            reward, discount, rho = places[REWARD], places[DISCOUNT], places[RHO]
            interest, target, behavior = places[INTEREST], places[TARGET], places[BEHAVIOR]
            alpha, alpha_w = places[ALPHA], places[ALPHA_W]
            decay, emphasis = places[DECAY], places[EMPHASIS]
            vectors = vectors_of(lanes.vectors, kept.places, 0, lane)
            traces = traces_of(lanes, kept.places, lane)
            p, s, theta = lanes.parameters[lane], lanes.scalars[lane], vectors[0]
            if settle is not None:
                mean, weight = settle.mean[lane], settle.average[lane]
            given = handed(traces, settle, lane, lazy)
            t = lo
            while t < hi:
                if lazy is not None:
                    opened(vectors, given, mean, lazy)
                ratio = 0.0
                while t < hi and not ratio > LARGE:
                    gamma, ratio = peek(discount, t), peek(rho, t)
                    row = Row(
                        features_at(rows, here, t, True),
                        features_at(following, there, t, gamma != 0.0),
                        peek(reward, t),
                        gamma,
                        ratio,
                        lanes.start[k, t],
                        peek(alpha, t),
                        peek(alpha_w, t),
                        peek(decay, t),
                        0.0 if lanes.start[k, t] else s.before,
                        s.rho_before,
                        peek(emphasis, t),
                        peek(interest, t),
                        peek(target, t),
                        peek(behavior, t),
                    )
                    if lazy is not None:
                        before(row, given, theta, mean, weight, s.steps, lazy)
                    step(row, p, s, *vectors, *given)
                    s.steps += 1.0
                    s.before = gamma
                    s.rho_before = ratio
                    if settle is not None:
                        if ball is not None:
                            confine(theta, ball.alpha[lane, t] * ball.l1[lane], ball.radius[lane])
                        if lazy is None:
                            average(mean, theta, weight, s.steps - 1.0)
                        else:
                            follow(row, given, theta, mean, weight, s.steps - 1.0, lazy)
                    t += 1
                if lazy is not None:
                    closed(vectors, given, mean, lazy)
                if not calm(kept.places, lane):
                    return lane, lo  # at once: the next row may reset a trace and hide it
        if every > 0 and (first + hi) % every == 0:
            append(lanes.theta if settle is None else settle.mean, False, ring)
        lo, begin = hi, 0
    return -1, lo


def run_steps(
    drive: Drive,
    rows,
    following,
    lanes,
    after: After,
    diverged,
    n: int,
    first: int,
    every: int,
    ring,
) -> None:
    """Drive all lanes over n rows; a stretch in which a lane diverges is repeated in halves."""
    numbers = lanes.scalars.view(np.float64).reshape(len(lanes.scalars), -1)
    mean = () if after.settle is None else (after.settle.mean,)
    state = (*lanes.vectors, *lanes.traces, *mean, numbers)
    kept = Kept.room(state, lanes)
    given = (rows, following, lanes.counted(), *after, kept)
    lane, lo = drive(*given, diverged, 0, n, 0, first, every, ring)
    while lane >= 0:
        only = np.zeros_like(diverged)
        only[lane] = -1  # the others are skipped
        low, hi = lo, min(n, lo + every - (first + lo) % every) if every > 0 else n
        unit = hi - lo
        kept.restore(state, lanes, lane)
        while low < hi:
            high = min(hi, low + unit)
            if drive(*given, only, low, high, lane, first, 0, ring)[0] < 0:
                low = high
                continue
            kept.restore(state, lanes, lane)
            if high - low == 1:
                diverged[lane] = first + low
                break
            unit = (high - low) // 2
        lane, lo = drive(*given, diverged, lo, n, lane + 1, first, every, ring)


_DRIVERS: WeakKeyDictionary[Any, dict[tuple[str, ...], Drive]] = WeakKeyDictionary()


def driver_of(own, names: tuple[str, ...]) -> Drive:
    """`drive_steps` with this step filled in: compiled if the step is, else plain Python.

    There is one for each list of parameter names, because Numba confuses records that begin alike.
    """
    known = _DRIVERS.setdefault(own, {})
    if names not in known:
        compiled = isinstance(own, CPUDispatcher)
        known[names] = _compiled(own, names) if compiled else _filled(own, drive_steps.__code__)
    return known[names]


def _filled(own, code) -> FunctionType:
    return FunctionType(code, {**drive_steps.__globals__, "step": own}, code.co_name)


def _compiled(own, names: tuple[str, ...]) -> Drive:
    """The compiled driver, cached on disk beside the step's own file, so that its changes are noticed.

    The driver's name contains a digest of the files that Numba does not check.
    """
    digest = hashlib.sha256(",".join(names).encode() + Path(__file__).read_bytes())
    for module in (access, fused, kept, load_store, pending, settle):
        digest.update(Path(str(module.__file__)).read_bytes())
    function = own.py_func
    code = drive_steps.__code__.replace(
        co_filename=function.__code__.co_filename,
        co_firstlineno=function.__code__.co_firstlineno,
        co_name=f"drive_{function.__name__}_{digest.hexdigest()[:12]}",
    )
    options = {**own.targetoptions, "forceinline": True, "no_cpython_wrapper": True}
    allocates = options.pop("_nrt", True)
    options.pop("nopython", None)
    options["pipeline_class"] = LinkedCompiler if allocates else CalledCompiler
    inlined = njit(allocates=allocates, **options)(function)
    filled = _filled(inlined, code)
    filled.__qualname__ = code.co_name  # the cache's key
    made: Drive = njit(cache=True, nogil=True, fastmath=FASTMATH, allocates=allocates)(filled)
    return made

"""`sweep`: run many lanes over one or more streams and record metrics inside compiled code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from math import gcd
from threading import Event
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arguments import listed, shown, whole
from o2td.arrays import Floats, as_array, as_numbers, freeze
from o2td.errors import InputError
from o2td.kernels.lanes import CACHED_ROWS
from o2td.kernels.metric_values import is_upper, metric_values
from o2td.kernels.ring_buffer import RingBuffer
from o2td.kernels.vectors import WIDTH
from o2td.learners.base import Learner
from o2td.learners.family import parts
from o2td.learners.group import Group
from o2td.learners.metrics_thread import MetricsThread, spare
from o2td.transitions import Transitions

Measure = tuple[Floats, Floats, float, int]  # R, center, constant, and which of the metrics it is
PARTS = ("R", "center", "constant")
LANE_ROWS = 1 << 18  # rows times lanes prepared at a time
SPAN = 1 << 15  # rows prepared at a time
OVERLAP = 1 << 23  # metric operations from which a thread of their own pays off
PIECE = 1 << 22  # metric operations done at a time
BUFFERED = 1 << 20  # numbers of theta buffered until their metrics are computed


@dataclass(frozen=True, eq=False)
class Lane:
    """A learner with its own target: its ratios, rewards or discounts replace the stream's.

    Parameters
    ----------
    learner : Learner
        The learner to run.
    rho, reward, discount : (n,) array, optional
        Replace the stream's own; with several streams (streams, n), or one number for all.
    """

    learner: Learner
    rho: Any = None
    reward: Any = None
    discount: Any = None

    def _of(self, stream: int, streams: int) -> Lane:
        """The lane on one of several streams, with that stream's values of each field."""
        own: dict[str, Any] = {}
        for name in ("rho", "reward", "discount"):
            value = getattr(self, name)
            array = np.zeros(()) if value is None else as_array(f"{name} of a lane", value)
            if array.ndim == 0 or (streams == 1 and array.ndim == 1):
                own[name] = value
            elif array.ndim == 2 and len(array) == streams:
                own[name] = array[stream]
            else:
                raise InputError(
                    f"a lane has {name} of shape {array.shape}, and there are {streams} streams:"
                    " give one row of numbers per stream, or one number for all"
                )
        return Lane(self.learner, **own)

    def seen(self, batch: Transitions) -> Transitions:
        """The stream as this lane sees it."""
        if self.rho is None and self.reward is None and self.discount is None:
            return batch
        if self.rho is not None or self.discount is not None:
            self.learner._check_retargeted(batch)
        return batch.retargeted(rho=self.rho, reward=self.reward, discount=self.discount)


@dataclass(frozen=True, eq=False)
class SweepResult:
    """What a sweep recorded.

    `values[name]` is (lanes, records): the metric after `steps[k]` steps, infinite from the step at
    which a lane diverged; `diverged[lane]` is that step, or -1; `theta` is (d, lanes). For several
    streams, each of these has a leading axis of streams, and `learners` is a list of lists.
    `metrics` lists the names of the metrics.
    """

    learners: list[Any]
    steps: npt.NDArray[np.int64]
    values: dict[str, Floats]
    theta: Floats
    diverged: npt.NDArray[np.int64]
    metrics: tuple[str, ...] = field(default=())


def sweep(
    learners: Sequence[Learner | Lane],
    batch: Transitions | Sequence[Transitions],
    metrics: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    every: int | None = None,
    workers: int = 1,
) -> SweepResult:
    """Run every learner over the same rows and record metrics every `every` steps.

    With twelve or more lanes, those of one family that read the same dense rows run sixteen at a
    time in SIMD registers; results equal those of `partial_fit` up to rounding. Metrics that take
    long are computed in a separate thread while the next rows are learned.

    Parameters
    ----------
    learners : learners or `Lane`s
        They are left unchanged; the result holds trained copies.
    batch : Transitions, or several of the same length
        One stream, or one per run.
    metrics : mapping of name to a metric of `o2td.metrics`, or one such mapping per stream
        Anything with arrays `R` (d, d) upper triangular, `center` and `constant`.
    every : int, optional
        Recording interval; None records once, at the end.
    workers : int
        Number of threads over streams; compiled code runs in parallel.

    Examples
    --------
    >>> import o2td
    >>> problem = o2td.domains.random_walk()
    >>> lanes = [o2td.TD(step_size=a) for a in (0.01, 0.1)]
    >>> result = o2td.sweep(lanes, problem.sample(1000, seed=0), every=500,
    ...                     metrics={"rmse": o2td.metrics.RMSE(problem)})
    >>> result.values["rmse"].shape, result.steps.tolist()
    ((2, 2), [500, 1000])
    """
    lanes = _lanes(learners)
    if isinstance(batch, Transitions):
        if isinstance(metrics, Sequence):
            raise InputError("one stream takes one mapping of metrics, not several")
        return _one_stream(lanes, batch, metrics, every)
    if not isinstance(batch, Sequence) or not all(isinstance(b, Transitions) for b in batch):
        raise InputError("sweep takes Transitions, or a list of them, one per stream")
    workers = whole("workers", workers, 1)
    measured: list[Any] = [metrics] * len(batch)
    if isinstance(metrics, Sequence):
        measured = listed("metrics", metrics, "mappings")
    if not all(one is None or isinstance(one, Mapping) for one in measured):
        raise InputError(f"metrics must be a mapping of names to metrics, got {shown(metrics)}")
    if not batch or len(measured) != len(batch) or len({(len(b), b.d) for b in batch}) != 1:
        raise InputError(
            f"sweep takes streams of one length and one mapping of metrics each; got {len(batch)}"
            f" streams of {sorted({len(b) for b in batch})} rows and {sorted({b.d for b in batch})}"
            f" features, {len(measured)} mappings"
        )
    if len({tuple(one or ()) for one in measured}) != 1:
        raise InputError("the mappings of metrics must have the same names for every stream")
    count = len(batch)
    own = [[lane._of(k, count) for lane in lanes] for k in range(count)]
    if workers == 1:  # here, where an interrupt ends it
        parts = list(map(partial(_one_stream, every=every), own, batch, measured))
    else:
        parts = _side_by_side(int(workers), own, batch, measured, every)
    first = parts[0]
    return SweepResult(
        [part.learners for part in parts],
        first.steps,
        {name: np.stack([part.values[name] for part in parts]) for name in first.metrics},
        np.stack([part.theta for part in parts]),
        np.stack([part.diverged for part in parts]),
        first.metrics,
    )


def _side_by_side(
    workers: int,
    lanes: list[list[Lane]],
    batches: Sequence[Transitions],
    metrics: Sequence[Mapping[str, Any] | None],
    every: int | None,
) -> list[SweepResult]:
    """Run streams in separate threads; an interrupt or an error here also ends the others."""
    stop = Event()
    run = partial(_one_stream, every=every, stop=stop)
    with ThreadPoolExecutor(max_workers=workers) as pool:
        streams = [pool.submit(run, *each) for each in zip(lanes, batches, metrics, strict=True)]
        try:
            return [stream.result() for stream in streams]
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _lanes(learners: Sequence[Learner | Lane]) -> list[Lane]:
    if not isinstance(learners, Sequence) or not learners:
        raise InputError("sweep needs at least one learner, in a list")
    lanes = []
    for k, one in enumerate(learners):
        lane = one if isinstance(one, Lane) else Lane(one)
        if not isinstance(lane.learner, Learner):  # fail at the first: a range has many
            raise InputError(f"lane {k} of the sweep is {shown(lane.learner)}, not a learner")
        lanes.append(lane)
    return lanes


def _one_stream(
    lanes: list[Lane],
    batch: Transitions,
    metrics: Mapping[str, Any] | None,
    every: int | None,
    stop: Event | None = None,
) -> SweepResult:
    every = max(batch.n, 1) if every is None else whole("every", every, 1)
    every = min(every, batch.n + 1)
    measured = _checked(metrics, batch.d)
    names = tuple(metrics or ())
    trained = [lane.learner._untrained() for lane in lanes]
    seen = [lane.seen(batch) for lane in lanes]
    steps = np.arange(every, batch.n + 1, every)
    values = np.full((len(lanes) + 1, len(names), len(steps)), np.inf)  # the last for replicates
    for members in _families(trained, batch, seen):
        _run(members, trained, seen, batch, every, measured, values, stop)
    return SweepResult(
        trained,
        steps,
        {name: values[:-1, k] for k, name in enumerate(names)},
        np.stack([learner._predicting for learner in trained], axis=1),
        np.array([int(learner._diverged[0]) for learner in trained]),
        names,
    )


def _run(
    members: list[int],
    trained: list[Learner],
    seen: list[Transitions],
    batch: Transitions,
    every: int,
    metrics: list[Measure],
    values: Floats,
    stop: Event | None,
) -> None:
    """Run one family over the stream; errors are computed while the next rows are learned."""
    group = Group([trained[k] for k in members])
    lanes = np.full(len(group.owners), len(values) - 1)
    lanes[group.firsts] = members
    streams = {id(seen[k]): seen[k] for k in members}
    total, each = batch.n // every, max(1, len(metrics) * group.stride * batch.d**2)
    beside = bool(metrics) and total * each > OVERLAP and spare() > 0
    held = max(1, BUFFERED // (group.stride * batch.d)) if metrics else LANE_ROWS
    spans = list(_spans(batch.n, every, min(max(1, LANE_ROWS // len(lanes)), SPAN), held))
    most = max((high // every - low // every for low, high in spans if metrics), default=0)
    ring = RingBuffer.room(min(total, 2 * most) if beside else most, group.stride, batch.d)

    def work(low: int, high: int) -> None:
        for metric in metrics:
            metric_values(ring, low, high, lanes, *metric, values)

    unit = WIDTH // gcd(group.stride, WIDTH)  # records that fill vectors
    with MetricsThread(
        work, lambda: int(ring.written[0]), total, PIECE // each, unit
    ) as metrics_thread:
        if beside:
            metrics_thread.start()
        for low, high in spans:
            if stop is not None and stop.is_set():
                raise CancelledError  # nobody waits for this stream anymore
            metrics_thread.finish(high // every - len(ring.turned))  # whose memory is written now
            cut = {key: stream[low:high] for key, stream in streams.items()}
            own = [cut[id(seen[k])] for k in members]
            group.advance(batch[low:high], own, low, every, ring)
        metrics_thread.finish(total)
    for lane, step in zip(members, group.diverged[group.firsts], strict=True):
        if step >= 0:
            values[lane, :, step // every :] = np.inf


def _spans(n: int, every: int, rows: int, records: int) -> Iterator[tuple[int, int]]:
    """Spans of about `rows` rows and at most `records` records.

    They end where the kernels end a block of rows anyway, so results do not depend on them.
    """
    low, whole = 0, max(1, rows // CACHED_ROWS) * CACHED_ROWS
    while low < n:
        if every > whole:
            high = min(n, low + whole, (low // every + 1) * every)
        else:
            high = min(n, low + every * min(records, whole // every))
        yield low, high
        low = high


def _families(
    trained: list[Learner], batch: Transitions, seen: list[Transitions]
) -> list[list[int]]:
    groups: dict[Any, list[int]] = {}
    for k, learner in enumerate(trained):
        learner._check(seen[k])
        family = learner.family
        kind = family, learner._settles, learner._width > 1, family.kind(learner, batch)
        groups.setdefault(kind, []).append(k)
    return [part for members in groups.values() for part in parts(members)]


def _checked(metrics: Mapping[str, Any] | None, d: int) -> list[Measure]:
    """Every metric in the form that the kernel reads."""
    measured: list[Measure] = []
    if metrics is not None and not isinstance(metrics, Mapping):
        raise InputError(f'metrics are a mapping such as {{"rmse": metric}}, not {metrics!r}')
    for name, metric in (metrics or {}).items():
        if not all(hasattr(metric, part) for part in PARTS):
            raise InputError(f"metric {name!r} is {metric!r}; take one of o2td.metrics")
        R, center, constant = (
            as_numbers(f"{part} of metric {name!r}", getattr(metric, part)) for part in PARTS
        )
        if (R.shape, center.shape, constant.shape) != ((d, d), (d,), ()):
            raise InputError(
                f"metric {name!r} has R {R.shape}, center {center.shape} and constant"
                f" {constant.shape}, for {d} features they must be {(d, d)}, {(d,)} and a number"
            )
        if not all(np.isfinite(x).all() for x in (R, center, constant)):
            raise InputError(f"metric {name!r} has numbers that are not finite")
        # Frozen, so that compiled code sees one array type, whatever is given.
        R, center = (freeze(np.ascontiguousarray(x)) for x in (R, center))
        if not is_upper(R):
            raise InputError(
                f"R of metric {name!r} is not upper triangular: give numpy.linalg.qr(R)[1]"
            )
        measured.append((R.reshape(-1), center, float(constant), len(measured)))
    return measured

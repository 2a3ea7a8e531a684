"""Passes over a log on a Dask cluster: every file's episodes where a worker is, merged here in order.

A pass is an accumulator with `add(block)`. Each worker gets an empty copy, takes in the blocks of
some files (and of the episodes that go on in the next ones), and sends it back; `merge` appends what
it holds to what came before. Sums are those of one machine up to the order of additions, and all
draws depend on episodes' keys alone, so the answer is the same.
"""

from __future__ import annotations

import logging
from copy import deepcopy
from functools import singledispatch
from types import TracebackType
from typing import Any

import numpy as np

from o2td.errors import O2TDError, import_extra
from o2td.evaluation.blocks import Floats, Log, whole_episodes
from o2td.evaluation.cells import CellSystem
from o2td.evaluation.fitting import Fitting, Influences
from o2td.evaluation.histories import Horizon
from o2td.evaluation.importance import Weighed
from o2td.evaluation.moments import Moments
from o2td.evaluation.scheduler import check_scheduler
from o2td.evaluation.survey import Sample, Survey
from o2td.evaluation.systems import System
from o2td.sources import LogSource
from o2td.sources.stream import Tally

__all__ = ["DaskLog", "merge"]

_LOGGERS = ("distributed", "distributed.client", "distributed.comm", "tornado.application")
_TIMEOUT = 10  # seconds to be let in by the scheduler


class DaskLog(Log):
    """A log whose passes run on the workers of a Dask scheduler; files must be there too."""

    def __init__(self, source: LogSource, address: str) -> None:
        super().__init__(source)
        self.address = address
        distributed = import_extra("distributed", "dask")
        for name in _LOGGERS:  # what matters is said in one sentence
            logging.getLogger(name).setLevel(logging.CRITICAL)
        check_scheduler(address)
        try:
            self._client = distributed.Client(address, timeout=_TIMEOUT, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise O2TDError(
                f"--dask {address}: the scheduler lets nobody in ({type(error).__name__}); look at its"
                " log, or start another one"
            ) from error
        self._parts = source.partitions()

    def __enter__(self) -> DaskLog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def collect(self, accumulator: Any) -> Any:
        """One pass: every part on a worker, merged in the order of the files."""
        self.passes += 1
        distributed = import_extra("distributed", "dask")
        try:
            (empty,) = self._client.scatter([accumulator], broadcast=True)
            futures = self._client.map(_pass, self._parts, accumulator=empty, pure=False)
            tally = Tally()
            for future in futures:
                part, counted = future.result()
                merge(accumulator, part)
                merge(tally, counted)
                future.release()
        except (distributed.KilledWorker, OSError, TimeoutError) as error:
            raise O2TDError(
                f"--dask {self.address}: its workers are gone ({type(error).__name__}); start some"
                " and run the command again"
            ) from error
        self.source._tally = tally
        return accumulator


def _pass(part: LogSource, accumulator: Any) -> tuple[Any, Tally]:
    """What one worker does: its own copy of the accumulator, filled with one part."""
    mine = deepcopy(accumulator)  # a worker may hand the same object to several parts
    for block in whole_episodes(part.chunks()):
        mine.add(block)
    return mine, part._tally or Tally()


# -- merging ---------------------------------------------------------------------------------------


@singledispatch
def merge(held: Any, more: Any) -> None:
    """Append what `more` has accumulated to `held`."""
    raise TypeError(f"{type(held).__name__} cannot be merged")


@merge.register
def _(held: Tally, more: Tally) -> None:
    held.rows += more.rows
    held.transitions += more.transitions
    held.episodes += more.episodes
    held.dropped.update(more.dropped)
    held.notes.update(more.notes)


@merge.register
def _(held: Moments, more: Moments) -> None:
    held.merge(more)


@merge.register
def _(held: Horizon, more: Horizon) -> None:
    for name in ("weight", "square", "number", "ended", "ended_square"):
        setattr(held, name, _sum(getattr(held, name), getattr(more, name)))


@merge.register
def _(held: Weighed, more: Weighed) -> None:
    merge(held.horizon, more.horizon)
    merge(held.moments, more.moments)
    held.totals.add(**vars(more.totals))
    held.top.add(more.top.sorted())
    held.lengths += more.lengths
    held.lone += more.lone
    held.largest = max(held.largest, more.largest)


@merge.register
def _(held: Sample, more: Sample) -> None:
    """Both at the smaller threshold, then as if the blocks had come one after the other."""
    held.threshold = min(held.threshold, more.threshold)
    held.full |= more.full
    blocks, held.blocks, held.rows = [*held.blocks, *more.blocks], [], 0
    for block in blocks:
        held.add(block)


@merge.register
def _(held: Survey, more: Survey) -> None:
    merge(held.weighed, more.weighed)
    merge(held.sample, more.sample)
    held.rows, held.zero = held.rows + more.rows, held.zero + more.zero
    held.highest, held.lowest = max(held.highest, more.highest), min(held.lowest, more.lowest)
    held.largest_discount = max(held.largest_discount, more.largest_discount)
    held.smallest_discount = min(held.smallest_discount, more.smallest_discount)
    held.n_actions = max(held.n_actions, more.n_actions)
    held.unknown += more.unknown
    if more.low is not None:
        held.widen(more.low, more.high)
    held.taken = np.stack([_sum(a, b) for a, b in zip(held.taken, more.taken, strict=True)])


@merge.register
def _(held: System, more: System) -> None:
    if not more.d:
        return
    if not held.d:
        vars(held).update({k: v for k, v in vars(more).items() if k != "basis"})
        return
    held.opened += more.opened
    held.folds += more.folds
    held.starts += more.starts
    if held.lanes is not None and more.lanes is not None:
        held.lanes += more.lanes
        held.lane_starts += more.lane_starts


@merge.register
def _(held: CellSystem, more: CellSystem) -> None:
    if not more.d:
        return
    if not held.d:
        vars(held).update({k: v for k, v in vars(more).items() if k != "basis"})
        return
    width = min(held.sums.shape[2], more.sums.shape[2])  # one may have given up its lanes
    for one in (held, more):
        one.sums, one.flow = one.sums[:, :, :width], one.flow[:, :width]
    held._grow(more.cell)
    held.sums[held._place(more.cell)] += more.sums
    held._merge(more.pair, more.flow)
    held._check()


@merge.register
def _(held: Influences, more: Influences) -> None:
    merge(held.moments, more.moments)


@merge.register
def _(held: Fitting, more: Fitting) -> None:
    for one, two in zip(held.systems, more.systems, strict=True):
        merge(one, two)


def _sum(one: Floats, two: Floats) -> Floats:
    """Sum of two arrays of different length, the shorter one padded with zeros."""
    total = np.zeros(max(len(one), len(two)))
    total[: len(one)] += one
    total[: len(two)] += two
    return total

"""Passes over a log on a Dask cluster: workers take files, results are merged here in order.

A pass fills a statistic. Each worker gets an empty copy, adds the episodes of some files (with
those that continue in the next ones), and sends it back; `merge` adds it to what came before. Sums
equal those of one machine up to the order of additions, and random draws depend only on episodes'
keys, so the answer is the same.
"""

from __future__ import annotations

from copy import deepcopy
from types import TracebackType
from typing import Any

from o2td.cluster import Cluster
from o2td.errors import O2TDError, import_extra
from o2td.evaluation.episodes import Log, whole_episodes
from o2td.sources import LogSource
from o2td.sources.stream import Tally


class DaskLog(Log):
    """A log whose passes run on the workers of a Dask scheduler, which need the files too."""

    def __init__(self, source: LogSource, address: str) -> None:
        super().__init__(source)
        self.address = address
        self._cluster = Cluster(address)
        self._client = self._cluster.client
        self._parts = source.partitions()

    def __enter__(self) -> DaskLog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._cluster.close()

    def collect(self, statistic: Any) -> Any:
        """Run one pass: every part on a worker, merged in the order of the files."""
        self.passes += 1
        distributed = import_extra("distributed", "dask")
        try:
            (empty,) = self._client.scatter([statistic], broadcast=True)
            futures = self._client.map(_pass, self._parts, statistic=empty, pure=False)
            tally = Tally()
            for future in futures:
                part, counted = future.result()
                statistic.merge(part)
                _count(tally, counted)
                future.release()
        except (distributed.KilledWorker, OSError, TimeoutError) as error:
            raise O2TDError(
                f"--dask {self.address}: its workers are gone ({type(error).__name__}); start some"
                " and run the command again"
            ) from error
        self.source._tally = tally
        return statistic


def _pass(part: LogSource, statistic: Any) -> tuple[Any, Tally]:
    """Fill a worker's own copy of the statistic with one part of the log."""
    mine = deepcopy(statistic)  # a worker may hand the same object to several parts
    for block in whole_episodes(part.chunks()):
        mine.add(block)
    return mine, part._tally or Tally()


def _count(held: Tally, more: Tally) -> None:
    """Add the counts of another part of the log."""
    held.rows += more.rows
    held.transitions += more.transitions
    held.episodes += more.episodes
    held.dropped.update(more.dropped)
    held.notes.update(more.notes)

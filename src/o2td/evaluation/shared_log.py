"""One log under several targets: blocks of the same episodes that differ only in their ratios.

Files are read once for all targets, and equal arrays are kept once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from o2td.evaluation.episodes import HELD, Episodes, Log, whole_episodes
from o2td.evaluation.horizon import ended
from o2td.evaluation.plan import Together
from o2td.evaluation.statistic import Passes, Statistic
from o2td.sources import LogSource
from o2td.sources.log_rows import ARRAYS
from o2td.sources.several import chunks_of_all


class Several(Protocol):
    """Several views of one log: what `run_together` needs."""

    def collect(self, wanted: Mapping[int, Sequence[Statistic]]) -> None:
        """Run one pass; statistics are keyed by the number of their view."""


class SharedLog:
    """A log under several targets; `views` has one log per target."""

    def __init__(
        self, sources: Sequence[LogSource], steps: int | None = None, held: int = HELD
    ) -> None:
        self.views = [Log(source) for source in sources]
        self._sources, self._steps, self._budget = list(sources), steps, held
        self._held: list[list[Episodes]] | None = None

    def blocks(self) -> Iterator[list[Episodes]]:
        """Block by block, the same episodes for each target."""
        if self._held is not None:
            yield from self._held
            return
        for view in self.views:
            view.passes += 1
        kept: list[list[Episodes]] | None = []
        size = 0
        streams, reading = chunks_of_all(self._sources)
        with reading:
            for blocks in zip(*(whole_episodes(stream) for stream in streams), strict=True):
                shared = _shared(blocks)
                if self._steps is not None:
                    shared = [ended(block, self._steps) for block in shared]
                if kept is not None:
                    kept.append(shared)
                    size += _bytes(shared)
                    kept = kept if size <= self._budget else None
                yield shared
        self._held = kept

    def collect(self, wanted: Mapping[int, Sequence[Statistic]]) -> None:
        """Run one pass; statistics are keyed by the number of their target, joint ones last."""
        for blocks in self.blocks():
            for target in sorted(wanted):
                Together(list(wanted[target])).add(blocks[min(target, len(blocks) - 1)])


def run_together(log: Several, jobs: Sequence[Passes]) -> None:
    """Advance one job per target, and then a joint one, until none asks for a pass."""
    waiting = dict(enumerate(jobs))
    while waiting:
        asked = {place: next(job, None) for place, job in waiting.items()}
        waiting = {place: waiting[place] for place, found in asked.items() if found is not None}
        wanted = {place: found for place, found in asked.items() if found}
        if wanted:
            log.collect(wanted)


def _shared(blocks: Sequence[Episodes]) -> list[Episodes]:
    """The same blocks, in which arrays equal to the first target's are shared with it."""
    first = blocks[0]
    made = [first]
    for block in blocks[1:]:
        same: dict[str, Any] = {}
        for name in ARRAYS:
            one, own = getattr(first.rows, name), getattr(block.rows, name)
            if own is not None and one is not None and _equal(one, own):
                same[name] = one
        made.append(replace(block, rows=replace(block.rows, **same), first=first.first))
    return made


def _equal(one: Any, two: Any) -> bool:
    return one.dtype == two.dtype and bool(np.array_equal(one, two))


def _bytes(blocks: Sequence[Episodes]) -> int:
    arrays = {
        id(array): array.nbytes
        for block in blocks
        for name in ARRAYS
        if (array := getattr(block.rows, name)) is not None
    }
    return sum(arrays.values())

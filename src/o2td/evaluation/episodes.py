"""A log as blocks of whole episodes, read as often as needed and kept in memory if small.

Every statistic is about episodes, so chunks are joined until an episode is complete. An
episode longer than `LONGEST` rows is cut into pieces of that length, so that memory stays bounded;
only its first piece opens with a start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arrays import Bools, Floats, Ints
from o2td.errors import InputError
from o2td.sources import LogRows, Source, open_logs
from o2td.sources.log_rows import LoneStarts

Keys = npt.NDArray[np.uint64]

LONGEST = 1 << 17  # rows of an episode that are kept together
HELD = 1 << 27  # a log up to this many bytes is kept in memory instead of being read again
_OPTIONS = ("target", "columns", "behavior", "sort", "densities", "actions", "value_model")
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Episodes:
    """Whole episodes: rows, where each begins, its key, and whether its start was seen.

    `rows` are `sources.LogRows`, `first` (episodes + 1) says where each episode begins, `opens`
    whether its start was seen, `key` is a hash of its name. A long episode may come in several
    consecutive parts; `within` says that the first row continues the part before. `lone` are
    episodes with a start but no rows.
    """

    rows: LogRows
    first: Ints  # (episodes + 1,)
    opens: Bools
    key: Keys  # of each episode; pieces of a cut one have their own keys
    within: bool = False
    lone: LoneStarts | None = None

    @property
    def count(self) -> int:
        """Number of episodes (or pieces)."""
        return len(self.opens)

    @cached_property
    def _unit(self) -> Ints:
        return np.repeat(np.arange(self.count), np.diff(self.first))

    def unit(self) -> Ints:
        """Number of the episode of each row, from 0 in the block."""
        return self._unit

    @cached_property
    def elsewhere(self) -> Ints:
        """Rows whose successor is not the next row."""
        return self.rows.elsewhere()

    @property
    def begin(self) -> Bools:
        """Whether each row is the first of an episode or piece, where traces begin."""
        marks = np.zeros(len(self.rows), dtype=np.bool_)
        marks[self.first[:-1]] = True
        return marks

    def sums(self, values: Floats) -> Floats:
        """Sums over each episode's rows."""
        return np.add.reduceat(values, self.first[:-1], axis=0)

    def ordered(self, order: Ints) -> Episodes:
        """Episodes by number, in any order and with repetitions."""
        length = np.diff(self.first)[order]
        first = np.concatenate([[0], np.cumsum(length)])
        rows = np.arange(first[-1]) + np.repeat(self.first[order] - first[:-1], length)
        return Episodes(
            self.rows.take(rows), first, self.opens[order], self.key[order], lone=self.lone
        )

    def parts(self, limit: int) -> Iterator[Episodes]:
        """Consecutive parts of at most `limit` rows, cut inside an episode only if it is longer."""
        low = 0
        while low < self.count:
            begin = int(self.first[low])
            high = int(np.searchsorted(self.first, begin + limit, side="right")) - 1
            if high > low:
                yield self._part(low, high, begin, int(self.first[high]))
                low = high
                continue
            low, end = low + 1, int(self.first[low + 1])
            for cut in range(begin, end, limit):
                yield self._part(low - 1, low, cut, min(cut + limit, end))

    def _part(self, low: int, high: int, begin: int, end: int) -> Episodes:
        """The rows `begin` to `end` of the episodes `low` to `high`; arrays are views."""
        within = begin > int(self.first[low])
        first = np.clip(self.first[low : high + 1], begin, end) - begin
        opens = self.opens[low:high] & (not within)
        lone = None if begin else self.lone
        rows = self.rows.take(slice(begin, end))
        return Episodes(rows, first, opens, self.key[low:high], within, lone)

    def shortened(self, longest: int) -> Episodes:
        """The first `longest` rows of each episode."""
        length = np.diff(self.first)
        if length.max() <= longest:
            return self
        step = np.arange(len(self.rows)) - np.repeat(self.first[:-1], length)
        first = np.concatenate([[0], np.cumsum(np.minimum(length, longest))])
        return Episodes(self.rows.take(step < longest), first, self.opens, self.key, lone=self.lone)

    def pick(self, episodes: Bools, lone: Any = None) -> Episodes:
        """Some of the episodes, and of the starts without rows (none by default)."""
        starts = None if self.lone is None or lone is None else self.lone.take(lone)
        length = np.diff(self.first)[episodes]
        rows = self.rows.take(np.repeat(episodes, np.diff(self.first)))
        return Episodes(
            *(rows, np.concatenate([[0], np.cumsum(length)])),
            *(self.opens[episodes], self.key[episodes]),
            lone=starts,
        )


class Log:
    """A source as blocks of whole episodes; a small one is read once and kept."""

    def __init__(self, source: Source, held: int = HELD) -> None:
        self.source = source
        self.passes = 0
        self._budget = held
        self._held: list[Episodes] | None = None

    def blocks(self) -> Iterator[Episodes]:
        """All blocks in order."""
        if self._held is not None:
            yield from self._held
            return
        self.passes += 1
        kept: list[Episodes] | None = []
        size = 0
        alone = self.source.mapped.one("user") is None
        for block in whole_episodes(self.source.chunks(), alone=alone):
            if kept is not None:
                kept.append(block)
                size += block.rows.nbytes
                kept = kept if size <= self._budget else None
            yield block
        self._held = kept

    def collect(self, accumulator: Any) -> Any:
        """Run one pass: give every block to `accumulator.add`, and return it."""
        for block in self.blocks():
            accumulator.add(block)
        return accumulator

    @classmethod
    def of(cls, logs: Any, discount: float | None, target: Any, **options: Any) -> Log:
        """A log from a source, or from whatever `open_logs` takes."""
        check_options({"target": target, **options}, isinstance(logs, (Log, Source)))
        if isinstance(logs, Log):
            return logs
        if isinstance(logs, Source):
            if discount is not None and logs.discount != discount:
                own = logs.discount
                said = f"column {logs.mapped.one('discount')}" if own is None else own
                raise InputError(
                    f"discount: {discount}, but the source was opened with {said};"
                    " pass the same, or leave it out"
                )
            return cls(logs)
        return cls(open_logs(logs, discount=discount, target=target, **options))


def check_options(given: dict[str, Any], opened: bool) -> None:
    """Refuse an option that `open_logs` does not have, and any option for an open source."""
    for name, value in given.items():
        if name not in _OPTIONS:
            raise InputError(
                f"{name}: evaluate has no such option; there are {', '.join(_OPTIONS)}"
            )
        if opened and value is not None and value is not False:
            raise InputError(
                f"{name}: the source was opened without it; pass it to o2td.sources.open_logs, or"
                " pass the logs themselves"
            )


def whole_episodes(
    chunks: Iterator[LogRows], longest: int = LONGEST, alone: bool = True
) -> Iterator[Episodes]:
    """Join and cut chunks so that each block holds whole episodes.

    Pieces of long episodes are resampled each on its own if `alone`, else with their user.
    """
    rest: LogRows | None = None
    opens, piece = True, 0
    lone: LoneStarts | None = None
    for chunk in chunks:
        if not len(chunk):
            continue
        lone = LoneStarts.joined([lone, chunk.lone])
        rows = chunk if rest is None else LogRows.joined([rest, chunk])
        starts = np.flatnonzero(rows.start)
        stop = int(starts[-1]) if len(starts) else 0
        if len(rows) - stop >= longest and stop == 0:
            yield _block(rows, opens, piece * alone, lone)
            rest, opens, piece, lone = None, False, piece + 1, None
            continue
        if stop:
            yield _block(rows.take(slice(0, stop)), opens, piece * alone, lone)
            opens, piece, lone = True, 0, None
        rest = rows.take(slice(stop, None))
    if rest is not None:
        yield _block(rest, opens, piece * alone, lone)


def _block(rows: LogRows, opens: bool, piece: int, lone: LoneStarts | None) -> Episodes:
    begin = rows.start.copy()
    begin[0] = True
    first = np.append(np.flatnonzero(begin), len(rows))
    seen = np.ones(len(first) - 1, dtype=np.bool_)
    seen[0] = opens or bool(rows.start[0])
    key = rows.key[first[:-1]].astype(np.uint64)
    if piece and not rows.start[0]:
        with np.errstate(over="ignore"):
            key[0] += np.uint64(piece) * _MIX
    return Episodes(rows, first, seen, key, lone=lone)


def joined(blocks: list[Episodes]) -> Episodes:
    """Several blocks as one."""
    lengths = np.concatenate([np.diff(block.first) for block in blocks])
    return Episodes(
        LogRows.joined([block.rows for block in blocks]),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([block.opens for block in blocks]),
        np.concatenate([block.key for block in blocks]),
        lone=LoneStarts.joined([block.lone for block in blocks]),
    )

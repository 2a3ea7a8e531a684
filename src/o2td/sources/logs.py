"""Logs in files and frames as a source: `open_logs`."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from o2td.errors import InputError, O2TDError
from o2td.sources.ahead import ahead
from o2td.sources.blocks import Block, Where
from o2td.sources.columns import Columns, Mapped, find_columns
from o2td.sources.decode import Decoder
from o2td.sources.partition import owned
from o2td.sources.paths import PathLike, expand
from o2td.sources.ratio import Ratio
from o2td.sources.readers import FileReader, FrameReader, Reader, frame_kind
from o2td.sources.schema import check_schema, drop_unreadable, kinds_of
from o2td.sources.sort import PART, ROW, sorted_file
from o2td.sources.source import Source
from o2td.sources.stream import Tally

_AHEAD = 1024  # rows of a batch that are worth a thread

_PATHS = (str, os.PathLike, Iterable)

__all__ = ["LogSource", "open_logs"]


def open_logs(
    logs: Any,
    columns: Columns | Mapping[str, Any] | PathLike | None = None,
    discount: float | None = None,
    *,
    target: Any = None,
    behavior: Any = None,
    sort: bool = False,
    densities: bool = False,
) -> LogSource:
    """A log as a stream of transitions; nothing but the headers is read yet.

    Parameters
    ----------
    logs
        A path, folder or glob, or several: parquet, CSV, NDJSON, Arrow or Feather files. Or a
        pandas, polars (also lazy) or pyarrow frame or dataset.
    columns
        Roles and their columns: a mapping, a `Columns`, or the path of a TOML file. What is not
        named is found by its default name or a usual synonym.
    discount
        Gamma, of every transition that does not terminate.
    target
        The policy to evaluate: a callable from a batch of observations (or states) to (n, A)
        probabilities, an (S, A) array, or "behavior" for the policy that made the log. None: the
        log's columns say.
    behavior
        The policy that made the log, in the same forms, or a `BehaviorModel`. None: the log's
        columns, else a model is estimated from the log.
    sort
        Sort the rows by episode and step first, in a temporary file.
    densities
        Actions are continuous and the probabilities are densities, which may exceed 1.

    Examples
    --------
    >>> import pandas as pd
    >>> from o2td import sources
    >>> log = pd.DataFrame(
    ...     {"episode": [0, 0, 1], "state": [0, 1, 0], "reward": [0.0, 1.0, 2.0],
    ...      "terminated": [False, True, False], "rho": [1.0, 2.0, 0.5]})
    >>> source = sources.open_logs(log, discount=0.9)
    >>> [chunk.reward.tolist() for chunk in source.chunks()]
    [[0.0, 1.0]]
    >>> source.info.dropped
    {'no final observation': 1}
    """
    reader: Reader
    if frame_kind(logs) is not None:
        reader = FrameReader(logs)
    elif isinstance(logs, _PATHS) and not (isinstance(logs, Mapping) or hasattr(logs, "dtype")):
        reader = FileReader(expand(logs))
    else:
        raise InputError(
            f"logs: {type(logs).__name__} is not a path or a frame of pandas, polars or pyarrow;"
            " name a file, or make a frame of it"
        )
    chosen = Columns.make(columns)
    first = reader.schema(0)
    name = reader.names[0]
    found = find_columns(_unique(first.names, name), chosen, name)
    mapped = drop_unreadable(found, first, chosen)
    names = None if "action" in mapped.roles else found.one("action")
    ratio = Ratio(mapped, target, behavior, densities, names)
    return LogSource(reader, ratio, discount, sort)


def _unique(names: list[str], where: str) -> list[str]:
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{where}: two columns are called {twice}; rename one")
    return names


class LogSource(Source):
    """A log in files or a frame; made by `open_logs`."""

    def __init__(
        self,
        reader: Reader,
        ratio: Ratio,
        discount: float | None,
        sort: bool = False,
        parts: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(ratio, discount)
        self._reader = reader
        self._sort = sort
        self._parts = (0, len(reader.names)) if parts is None else parts
        self._from_flags = _check_needed(self.mapped, reader.names[0], sort)
        self._kinds = kinds_of(self.mapped)
        self._sorted: FileReader | None = None
        self._checked: set[int] = set()
        self._open: tuple[str, ...] | None = None

    def partitions(self, count: int | None = None) -> list[LogSource]:
        """At most `count` sources (default: one a file) that together give every row once.

        Each holds consecutive files and the whole of every episode that starts in them, reading
        into the next files where an episode goes on there. Episodes count from 0 in each.
        """
        files = len(self._reader.names)
        if self._sort:
            raise InputError("partitions: a log that needs sorting is one part; sort and write it")
        count = files if count is None else max(1, min(count, files))
        cuts = [files * k // count for k in range(count + 1)]
        if self._ratio.estimate and self._ratio.behavior is None:
            next(self.chunks(), None)  # one model for all parts
        return [
            LogSource(self._reader, self._ratio, self.discount, parts=(low, high))
            for low, high in pairwise(cuts)
        ]

    # -- reading -----------------------------------------------------------------------------------

    def _blocks(self, rows: int) -> Iterator[Block]:
        low, high = self._parts
        files = len(self._reader.names)
        middle = low > 0
        decoder = Decoder(self.mapped, self._ratio.discrete, self._from_flags, middle)
        batches: Any = self._sorted_batches(rows) if self._sort else self._batches(low, files, rows)
        if rows >= _AHEAD:
            batches = ahead(batches)
        blocks = ((part, decoder.decode(batch, where)) for part, batch, where in batches)
        found = False
        whole = (low, high) == (0, files)
        with closing(batches):  # an error below ends the thread and lets go of the file
            for block in (one for _, one in blocks) if whole else owned(blocks, low, high):
                found = True
                yield block
        if not found and whole:
            raise InputError(f"{self._reader.names[0]}: has no rows; write some, or leave it out")

    def _batches(self, low: int, high: int, rows: int) -> Iterator[tuple[int, Any, Where]]:
        names = self._reader.names
        for part in range(low, high):
            self._check(part)
            first = 0
            for batch in self._reader.batches(part, self._kinds, rows):
                if batch.num_rows:
                    yield part, batch, Where(names, part, first)
                first += batch.num_rows

    def _check_some(self, tally: Tally) -> None:
        if self._parts == (0, len(self._reader.names)):  # a part of a log may be empty
            super()._check_some(tally)

    def _check(self, part: int) -> None:
        if part not in self._checked:
            check_schema(self._reader, part, self.mapped, self._kinds)
            self._checked.add(part)

    def _sorted_batches(self, rows: int) -> Iterator[tuple[int, Any, Where]]:
        if self._sorted is None:
            for part in range(len(self._reader.names)):
                self._check(part)
            folder = Path(tempfile.mkdtemp(prefix="o2td-sort-"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            order = self.mapped.one("step") or self.mapped.one("time")
            episode = self.mapped.one("episode") or ""
            try:
                file = sorted_file(self._reader, self._kinds, episode, order, folder)
            except OSError as error:
                shutil.rmtree(folder, ignore_errors=True)
                why = os.strerror(error.errno) if error.errno else str(error)
                raise O2TDError(
                    f"{folder.parent}: the sorted log cannot be written there ({why}); make room, or"
                    " set TMPDIR to a folder on another disk"
                ) from error
            self._sorted = FileReader([file])
        kinds = {**self._kinds, PART: "int", ROW: "int"}
        for batch in self._sorted.batches(0, kinds, rows):
            part, row = batch.column(PART).to_numpy(), batch.column(ROW).to_numpy()
            yield 0, batch, Where(self._reader.names, part.astype(np.int64), row)

    # -- account -----------------------------------------------------------------------------------

    def _files(self) -> tuple[str, ...]:
        return tuple(self._reader.names[slice(*self._parts)])

    def _unverified(self) -> tuple[str, ...]:
        if self._open is None:
            columns = set(self._kinds)
            self._open = tuple(
                self._reader.names[part]
                for part in range(*self._parts)
                if not self._reader.verified(part, columns)
            )
        return self._open

    def _remarks(self) -> tuple[str, ...]:
        remarks = []
        done, named = self.mapped.one("done"), self.mapped.one("terminated")
        unsaid = self.mapped.one("truncated") is None and "truncated" not in self.mapped.never
        if done and unsaid and (named or "terminated" in self.mapped.never):
            where = f" where {named} is false" if named else ""
            remarks.append(f"column {done} is read as truncated{where}")
        elif done and unsaid:
            remarks.append(
                f"column {done} is read as terminated: if it also marks time limits, add a column"
                " truncated"
            )
        if self.mapped.many("observation") and self.mapped.one("state"):
            state = self.mapped.one("state")
            remarks.append(
                f"values are of observations; for those of column {state} instead, name it as state"
            )
        if self._from_flags:
            remarks.append("episodes end where terminated or truncated is true")
        if self.mapped.one("step") is None and self.mapped.one("time") is None:
            remarks.append("no column for step: rows are taken to be in order, without gaps")
        return tuple(remarks)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the temporary file here: another process sorts for itself."""
        return {**self.__dict__, "_sorted": None}


def _check_needed(mapped: Mapped, name: str, sort: bool) -> bool:
    """Refuse a log without the needed columns; tell whether episodes come from the flags."""
    has = mapped.roles.__contains__
    if not has("reward"):
        raise InputError(
            f'{name}: no column for reward; add it, or name it, columns={{"reward": …}}'
        )
    if not (has("observation") or has("state")):
        raise InputError(
            f"{name}: no observations; add columns obs_0, obs_1, … or one integer state"
        )
    if not (has("terminated") or has("done") or "terminated" in mapped.never):
        raise InputError(
            f'{name}: no column for terminated; add it, or pass columns={{"terminated": False}} if'
            " no episode ever ends"
        )
    wide, narrow = mapped.many("next_observation"), mapped.many("observation")
    if wide and narrow and len(wide) != len(narrow):
        raise InputError(
            f"{name}: {len(narrow)} columns of observations ({narrow[0]} …) and {len(wide)} of next"
            f" observations ({wide[0]} …); they must agree"
        )
    both, one = mapped.many("next_target_probs"), mapped.many("target_probs")
    if both and one and len(both) != len(one):
        raise InputError(
            f"{name}: {len(one)} target probabilities now and {len(both)} at the next step"
        )
    if has("episode") or (has("start") and not sort):
        return False
    if sort:
        raise InputError(f"{name}: no column for episode, so the rows cannot be sorted; add it")
    if has("done") or (has("terminated") and has("truncated")):
        return True
    raise InputError(
        f"{name}: no column for episode; add it, or start marks, or both terminated and truncated"
    )

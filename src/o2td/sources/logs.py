"""A log in one or more files, or one object, as a source."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from o2td.arguments import whole
from o2td.errors import InputError, O2TDError, option
from o2td.sources.coding import Codings
from o2td.sources.decode import Decoded, Decoder
from o2td.sources.log_rows import LogRows
from o2td.sources.mapping import Mapped, Roles, about_target
from o2td.sources.partition import owned
from o2td.sources.parts import Part, files_of
from o2td.sources.places import Where, named
from o2td.sources.prefetch import prefetch
from o2td.sources.ratio import RatioRule
from o2td.sources.schema import check_schema, kinds_of
from o2td.sources.sort import PART, ROW, sorted_file
from o2td.sources.source import Source
from o2td.sources.stream import Tally

_AHEAD = 1024  # rows of a batch that are worth a thread


class LogSource(Source):
    """A log in one or more files, or one object. Made by `open_logs`, `minari` and `rollouts`."""

    def __init__(
        self,
        parts: Sequence[Part],
        ratio: RatioRule,
        discount: float | None,
        sort: bool = False,
        own: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(ratio, discount)
        self._parts = parts
        self._names = [part.label for part in parts]
        self._sort = sort
        self._own = (0, len(parts)) if own is None else own
        self._from_flags = _check_needed(self.mapped, self._names[0], sort)
        self._kinds = kinds_of(self.mapped)
        self._sorted: Part | None = None
        self._checked: set[int] = set()
        self._rows: dict[int, int] = {}  # of each part that was read to its end
        self._open: tuple[str, ...] | None = None

    def partitions(self, count: int | None = None) -> list[LogSource]:
        """At most `count` sources (default: one per file) that together yield every row once.

        Each holds consecutive files and all of every episode that starts in them, reading on into
        the next files if an episode continues there. Episodes count from 0 in each.
        """
        files = len(self._parts)
        if self._sort:
            raise InputError("partitions: a log that needs sorting is one part; sort and write it")
        count = files if count is None else min(whole("count", count, 1), files)
        cuts = [files * k // count for k in range(count + 1)]
        if self._ratio.estimate and self._ratio.behavior is None:
            next(self.chunks(), None)  # one model for all parts
        made = [
            LogSource(self._parts, self._ratio, self.discount, own=(low, high))
            for low, high in pairwise(cuts)
        ]
        for one in made:
            one._horizon = self._horizon
        return made

    def _retargeted(self, target: Any, theirs: Roles | None = None) -> LogSource:
        """The same log for another target: a policy or, if None, columns by role."""
        old, mapped = self._ratio, about_target(self.mapped, theirs)
        ratio = RatioRule(
            *(mapped, target, old.behavior, old.densities, old.actions, old.log, old.values),
            ordered=old.ordered,
        )
        return LogSource(self._parts, ratio, self.discount, self._sort, self._own)

    @property
    def _first_part(self) -> Part:
        """The first file or object, whose columns are those of all."""
        return self._parts[0]

    # -- reading -----------------------------------------------------------------------------------

    def _chunks_from(
        self, batches: Generator[tuple[int, Any, Where]], rows: int
    ) -> Iterator[LogRows]:
        """The log's chunks, of batches that `read` of this source or of one like it gave."""
        return self._pass(self._ratio, rows, self._decode(batches))

    def _share_behavior(self, other: LogSource) -> None:
        """Take the behaviour that another source of the same log has estimated."""
        if self._ratio.estimate and other._ratio.estimate:
            self._ratio.behavior = other._ratio.behavior
        self._know_behavior()

    def _decoded(self, rows: int) -> Iterator[tuple[Where, Decoded]]:
        return self._decode(self._read(rows, [self]))

    def _read(self, rows: int, readers: Sequence[LogSource]) -> Generator[tuple[int, Any, Where]]:
        """Batches of what any of the `readers` wants, sources of the same files as this one."""
        kinds = {name: kind for one in readers for name, kind in one._kinds.items()}
        batches: Any
        if self._sort:
            batches = self._sorted_batches(rows, kinds, readers)
        else:
            batches = self._batches(self._own[0], len(self._parts), rows, kinds, readers)
        if rows >= _AHEAD and all(part.format.threads for part in self._parts):
            batches = prefetch(batches)
        with closing(batches):
            yield from batches

    def _decode(
        self, batches: Generator[tuple[int, Any, Where]]
    ) -> Iterator[tuple[Where, Decoded]]:
        """The columns of batches that were read."""
        low, high = self._own
        decoder = Decoder(self.mapped, self._ratio.numbered, self._from_flags, middle=low > 0)
        decoded = ((part, where, decoder.decode(batch, where)) for part, batch, where in batches)
        found = False
        whole = (low, high) == (0, len(self._parts))
        mine = ((where, one) for _, where, one in decoded) if whole else owned(decoded, low, high)
        with closing(batches):  # an error below ends the thread and lets go of the file
            for columns in mine:
                found = True
                yield columns
        if not found and whole:
            raise InputError(f"{self._names[0]}: has no rows; write some, or leave it out")

    def _batches(
        self,
        low: int,
        high: int,
        rows: int,
        kinds: dict[str, str],
        readers: Sequence[LogSource],
    ) -> Iterator[tuple[int, Any, Where]]:
        for part in range(low, high):
            first = 0
            for one in readers:
                one._check(part)
            for batch in self._parts[part].batches(kinds, rows):
                if batch.num_rows:
                    yield part, batch, Where(self._names, part, first)
                first += batch.num_rows
            for one in readers:
                one._rows[part] = first

    def _check_some(self, tally: Tally) -> None:
        if self._own == (0, len(self._parts)):  # a part of a log may be empty
            super()._check_some(tally)

    def _check(self, part: int) -> None:
        if part not in self._checked:
            check_schema(self._parts[part], self._parts[0], self.mapped, self._kinds)
            self._checked.add(part)

    def _sorted_batches(
        self, rows: int, kinds: dict[str, str], readers: Sequence[LogSource]
    ) -> Iterator[tuple[int, Any, Where]]:
        if self._sorted is None:
            for part in range(len(self._parts)):
                for one in readers:
                    one._check(part)
            folder = Path(tempfile.mkdtemp(prefix="o2td-sort-"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            order = self.mapped.one("step") or self.mapped.one("time")
            episode = self.mapped.one("episode") or ""
            try:
                file = sorted_file(self._parts, kinds, episode, order, folder)
            except OSError as error:
                shutil.rmtree(folder, ignore_errors=True)
                why = os.strerror(error.errno) if error.errno else str(error)
                raise O2TDError(
                    f"{folder.parent}: the sorted log cannot be written there ({why}); make room, or"
                    " set TMPDIR to a folder on another disk"
                ) from error
            (self._sorted,) = files_of(file)
        kinds = {**kinds, PART: "int", ROW: "int"}
        counts = np.zeros(len(self._parts), dtype=np.int64)
        for batch in self._sorted.batches(kinds, rows):
            part, row = batch.column(PART).to_numpy(), batch.column(ROW).to_numpy()
            counts += np.bincount(part.astype(np.int64), minlength=len(counts))
            yield 0, batch, Where(self._names, part.astype(np.int64), row)
        for one in readers:
            one._rows.update(enumerate(counts.tolist()))

    # -- account -----------------------------------------------------------------------------------

    def _files(self) -> tuple[str, ...]:
        return tuple(self._names[slice(*self._own)])

    def rows_by_file(self) -> dict[str, int | None]:
        """Rows of each file; None if it is not fully read yet, or was read by another process."""
        return {self._names[k]: self._rows.get(k) for k in range(*self._own)}

    def _unverified(self) -> tuple[str, ...]:
        if self._open is None:
            columns = set(self._kinds)
            self._open = tuple(
                part.label for part in self._parts[slice(*self._own)] if not part.verified(columns)
            )
        return self._open

    @property
    def codings(self) -> Codings:
        """How columns that are not numbers are read, by their names."""
        return self._parts[0].codings

    @property
    def assumptions(self) -> tuple[str, ...]:
        """In which order the target has the actions, if nothing says so."""
        if not self._ratio.assumes_order:
            return ()
        names = self._ratio.actions or ()
        shown = ", ".join(map(str, names[:8])) + (", …" if len(names) > 8 else "")
        remedy = option("pass actions=[…]", "name columns of probabilities after the actions")
        return (
            "the target's probabilities are taken to be in alphabetical order of the actions"
            f" ({shown}); if they are not, {remedy}",
        )

    def _remarks(self) -> tuple[str, ...]:
        remarks = list(self.assumptions)
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
                f"values depend on the observations; to use column {state} instead, name it as state"
            )
        if self.own_values is not None:
            remarks.append(
                f"{self.own_values} is corrected by dr and wdr; it needs no cross-fitting if the model"
                " never saw this log, which cannot be checked here"
            )
        if self.behavior_model is not None or self._ratio.estimate:
            remarks.append(
                "the behaviour's probabilities are estimated: intervals allow for the model's noise, but"
                " not for choices that depend on what the log does not record"
            )
        if self.mapped.bandit:
            remarks.append(
                "no column for episodes, steps or ends: each row is one decision (a bandit log)"
            )
            if not self.mapped.context:
                remarks.append(
                    "no column for observations or states: all decisions count as made in one state"
                )
            return tuple(remarks)
        if self._from_flags:
            remarks.append("episodes end where terminated or truncated is true")
        if self.mapped.one("step") is None and self.mapped.one("time") is None:
            remarks.append("no column for step: rows are taken to be in order, without gaps")
        return tuple(remarks)

    def __getstate__(self) -> dict[str, Any]:
        """Omit the temporary file: another process sorts for itself."""
        return {**self.__dict__, "_sorted": None}


def _check_needed(mapped: Mapped, name: str, sort: bool) -> bool:
    """Raise if needed columns are missing; return whether episodes come from the flags."""
    has = mapped.roles.__contains__
    if not has("reward"):
        raise InputError(f"{name}: no column for reward; add it, or name it, {named('reward')}")
    if mapped.bandit:
        return True
    if not mapped.context:
        raise InputError(
            f"{name}: no observations; add columns obs_0, obs_1, … or one integer state, or name"
            f" yours, {named('observation')}"
        )
    never = option('columns={"terminated": False}', "--columns terminated=never")
    if not (has("terminated") or has("done") or "terminated" in mapped.never):
        raise InputError(
            f"{name}: no column for terminated; add it, or pass {never} if no episode ever ends"
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

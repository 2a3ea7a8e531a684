"""Nested columns as flat ones: vectors in lists, named numbers in structs, episodes in lists.

A list of k numbers in each row becomes k columns, `obs_0`, `obs_1`, …; a struct becomes one column
for each field, `obs.speed`. If a row's rewards are a list, the row is a whole episode: each list as
long as the rewards (or one longer, with the final observation) has one value per step, other values
are repeated, and a flag of the whole row belongs to its last step. A list of structs, one per step,
is read as one list per field.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from o2td.arrays import Ints
from o2td.errors import InputError
from o2td.sources.arrow import pa, pc
from o2td.sources.arrow_types import is_list
from o2td.sources.columns import Columns
from o2td.sources.mapping import called
from o2td.sources.places import ROWS

MOST = 1000  # at most this many numbers of a list become columns
EPISODES = 256  # rows read at a time if each is an episode
START = "start"


class Nested:
    """How the columns of one part become flat, learned from its first rows.

    `schema` is that of the flat columns, `source` the column of the file that each comes from, and
    `groups` the flat columns of each column that was spread.
    """

    def __init__(self, schema: Any, first: Any, given: Columns, label: str) -> None:
        self.label = label
        self.groups: dict[str, tuple[str, ...]] = {}
        self._widths: dict[str, int] = {}
        self._given = given
        columns = self._unzipped(first)
        listed = (name for name, one in columns.items() if is_list(one.type))
        self._reward = next((name for name in listed if called(name, "reward", given)), None)
        self._steps: set[str] = set()
        self._mark = False
        if self._reward is not None:
            columns = self._learned(columns)
        self.source: dict[str, str] = {}
        types: dict[str, Any] = {}
        roots = {
            name: root for root in first.schema.names for name in self._unzipped_names(first, root)
        }
        self._root = roots.get(self._reward or "", "")
        for name, column in columns.items():
            flat = dict(self._spread(name, column, 0))
            types |= {one: values.type for one, values in flat.items()}
            self.source |= dict.fromkeys(flat, roots.get(name, self._root))
            if list(flat) != [name]:
                self.groups[name] = tuple(flat)
        for field in schema:
            if field.name not in roots.values():
                self.source[field.name] = field.name
                types[field.name] = field.type
        self.schema = pa.schema(list(types.items()))

    @property
    def episodes(self) -> bool:
        """Whether each row is an episode."""
        return self._reward is not None

    def needed(self, names: list[str]) -> list[str]:
        """The file's columns that these flat ones come from."""
        roots = [self.source[name] for name in names]
        return list(dict.fromkeys([*roots, self._root] if self.episodes else roots))

    def flat(self, batch: Any, names: list[str], first: int, rows: int) -> Iterator[Any]:
        """Flat batches of these columns with at most `rows` rows, unless an episode has more."""
        for piece in self._pieces(batch, rows):
            columns = self._unzipped(piece)
            if self.episodes:
                columns = self._exploded(columns, first)
            found: dict[str, Any] = {}
            for name, column in columns.items():
                found |= dict(self._spread(name, column, first))
            first += piece.num_rows
            yield pa.RecordBatch.from_arrays([found[name] for name in names], names=names)

    def _pieces(self, batch: Any, rows: int) -> Iterator[Any]:
        """The batch, or, if rows are episodes, parts of it with at most `rows` steps."""
        if not self.episodes:
            yield batch
            return
        lengths = self._lengths(self._unzipped(batch)[str(self._reward)]) + 1
        low = 0
        while low < len(lengths):
            fits = int(np.searchsorted(np.cumsum(lengths[low:]), rows, side="right"))
            yield batch.slice(low, max(1, fits))
            low += max(1, fits)

    # -- lists of structs --------------------------------------------------------------------------

    @staticmethod
    def _unzipped_names(batch: Any, name: str) -> list[str]:
        kind = batch.schema.field(name).type
        types = pa.types
        if not (is_list(kind) and types.is_struct(kind.value_type)):
            return [name]
        taken = batch.schema.names
        return [f"{name}.{one.name}" if one.name in taken else one.name for one in kind.value_type]

    def _unzipped(self, batch: Any) -> dict[str, Any]:
        """All columns, with a list of structs as one list per field."""
        found: dict[str, Any] = {}
        for name in batch.schema.names:
            column, names = batch.column(name), self._unzipped_names(batch, name)
            if names == [name]:
                found[name] = column
                continue
            lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
            offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), type=pa.int64())
            for one, values in zip(names, pc.list_flatten(column).flatten(), strict=True):
                found[one] = pa.LargeListArray.from_arrays(offsets, values)
        return found

    # -- rows that are episodes --------------------------------------------------------------------

    @staticmethod
    def _lengths(column: Any) -> Ints:
        """Length of each list; -1 if it is missing, which rewards must not be."""
        lengths: Ints = np.asarray(pc.fill_null(pc.list_value_length(column), -1)).astype(np.int64)
        return lengths

    def _learned(self, columns: dict[str, Any]) -> dict[str, Any]:
        """Which lists hold one value per step, and whether rows must be marked as episodes."""
        steps = self._lengths(columns[str(self._reward)])
        for name, column in columns.items():
            if is_list(column.type):
                more = self._lengths(column) - steps
                if np.mean((more == 0) | (more == 1)) > 0.5:
                    self._steps.add(name)
        named = any(called(name, "episode", self._given) for name in columns)
        self._mark = not named and START not in columns and bool((steps != 1).any())
        return self._exploded(columns, 0)

    def _exploded(self, columns: dict[str, Any], first: int) -> dict[str, Any]:
        """One row per step, and one more if a list has a final entry."""
        lengths = {name: self._lengths(columns[name]) for name in self._steps if name in columns}
        steps = lengths[str(self._reward)]
        for name, found in lengths.items():
            bad = (steps < 0) | ((found >= 0) & (found != steps) & (found != steps + 1))
            if bad.any():
                row = int(np.argmax(bad))
                raise InputError(
                    f"{self.label}: column {name}, row {first + row + 1} ({ROWS}) has"
                    f" {max(0, found[row])} entries and {self._reward} has {max(0, steps[row])};"
                    " write one entry per step"
                )
        rows = np.maximum.reduce(list(lengths.values()))
        parent = np.repeat(np.arange(len(rows)), rows)
        position = np.arange(len(parent)) - np.repeat(np.cumsum(rows) - rows, rows)
        exploded = {
            name: _at(column, lengths[name], parent, position)
            if name in lengths
            else self._repeated(name, column, parent, position == steps[parent] - 1)
            for name, column in columns.items()
        }
        return exploded | ({START: pa.array(position == 0)} if self._mark else {})

    def _repeated(self, name: str, column: Any, parent: Ints, last: Any) -> Any:
        """A value of the whole row at each step, but a flag only at the last step."""
        everywhere = column.take(pa.array(parent))
        flags = ("terminated", "truncated", "done")
        if not any(called(name, role, self._given) for role in flags):
            return everywhere
        return pc.if_else(pa.array(last), everywhere, pa.scalar(0).cast(column.type))

    # -- vectors -----------------------------------------------------------------------------------

    def _spread(self, name: str, column: Any, first: int) -> Iterator[tuple[str, Any]]:
        """The flat columns of one column."""
        kind = column.type
        if pa.types.is_struct(kind):
            for field, values in zip(kind, column.flatten(), strict=True):
                yield from self._spread(f"{name}.{field.name}", values, first)
            return
        lengths = pc.list_value_length(column).drop_null() if is_list(kind) else []
        if len(lengths):
            self._widths.setdefault(name, int(lengths[0].as_py()))
        width = self._widths.get(name, MOST + 1)
        if not is_list(kind) or width > MOST:
            yield name, column
            return
        off = pc.fill_null(pc.not_equal(pc.list_value_length(column), width), False)
        if pc.any(off).as_py():
            row = int(np.argmax(off.to_numpy(zero_copy_only=False)))
            count = len(column[row])
            raise InputError(
                f"{self.label}: column {name}, row {first + row + 1} ({ROWS}) has {count} numbers,"
                f" the first row has {width}; write as many in each"
            )
        for j in range(width):
            yield from self._spread(f"{name}_{j}", pc.list_element(column, j), first)


def _at(column: Any, lengths: Ints, parent: Ints, position: Ints) -> Any:
    """Each step's entry of a column of lists, null after the last one."""
    held = np.maximum(lengths, 0)
    values = pc.list_flatten(column)
    if len(values) == len(parent):
        return values
    index = (np.cumsum(held) - held)[parent] + position
    return values.take(pa.array(index, mask=position >= held[parent]))

"""Columns that are not numbers as numbers: names, categories, times and large ids.

In observations, text becomes one column per value except the first (1 if the row has it), and a
time becomes its seconds since 1970. States and actions are numbered: in the order of the policy or
of the columns of its probabilities if these name them, else in alphabetical order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from o2td.errors import InputError
from o2td.sources.arrow import pa, pc
from o2td.sources.places import ROWS, named

_LEVELS = 50  # at most this many different texts in an observation
_NAMES = 1_000_000  # at most this many different states or actions
_IDS = 10_000_000  # larger whole numbers are names


@dataclass(frozen=True)
class Coding:
    """How one column is read: `kind` is "number", "levels" or "seconds"."""

    column: str
    kind: str
    values: tuple[Any, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it becomes."""
        if self.kind != "levels":
            return (self.column,)
        return tuple(f"{self.column}={value}" for value in self.values[1:] or self.values)

    def __str__(self) -> str:
        shown = [str(value) for value in self.values[:8]] + ["…"] * (len(self.values) > 8)
        if self.kind == "seconds":
            return "seconds since 1970"
        if self.kind == "levels":
            return f"one 0/1 column per value except the first: {', '.join(shown)}"
        return ", ".join(f"{name} = {k}" if name != "…" else name for k, name in enumerate(shown))

    def arrays(self, column: Any, label: str, first: int) -> list[Any]:
        """The numbers of a column of a batch; an unknown value is refused."""
        if self.kind == "seconds":
            return [_seconds(column)]
        column = plain(column)
        known = pa.array(self.values)
        codes = pc.index_in(column, known.cast(column.type) if len(known) else known)
        bad = pc.and_(pc.is_null(codes), pc.is_valid(column)).to_numpy(zero_copy_only=False)
        if bad.any():
            row = int(np.argmax(bad))
            shown = ", ".join(map(str, self.values[:8])) + (", …" if len(self.values) > 8 else "")
            raise InputError(
                f"{label}: column {self.column}, row {first + row + 1} ({ROWS}) is"
                f" {column[row].as_py()!r}, which is none of {shown}; correct it, or name it there"
            )
        if self.kind == "number":
            return [codes.cast(pa.int64())]
        wanted = range(1, len(self.values)) if len(self.values) > 1 else range(len(self.values))
        return [pc.equal(codes, k).cast(pa.float64()) for k in wanted]


Codings = Mapping[str, Coding]


def coded_schema(schema: Any, codings: Codings) -> Any:
    """The types of the coded columns."""
    fields = []
    for field in schema:
        coding = codings.get(field.name)
        kind = pa.int64() if coding and coding.kind == "number" else pa.float64()
        fields += [(name, kind) for name in coding.names] if coding else [field]
    return pa.schema(fields)


def coded(batch: Any, names: Sequence[str], codings: Codings, label: str, first: int) -> Any:
    """A batch with these columns, coded."""
    found: dict[str, Any] = {}
    for name in batch.schema.names:
        coding, column = codings.get(name), batch.column(name)
        if coding is None:
            found[name] = column
        else:
            found |= dict(zip(coding.names, coding.arrays(column, label, first), strict=True))
    return pa.RecordBatch.from_arrays([found[name] for name in names], names=list(names))


def plain(column: Any) -> Any:
    """A column with categories replaced by what they stand for."""
    if pa.types.is_dictionary(column.type):
        return column.dictionary_decode()
    return column


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is text, or categories of text."""
    types = pa.types
    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_time(kind: Any) -> bool:
    """Whether an Arrow type is a time, a date or a duration."""
    return bool(pa.types.is_temporal(kind))


def levels_of(parts: Iterable[Any], column: str, others: Sequence[str]) -> tuple[Any, ...]:
    """The values of a text observation; `others` hold the same, one step later."""
    values = _values(parts, [column, *others], _LEVELS)
    if values is None:
        raise InputError(
            f"logs: column {column} holds more than {_LEVELS} different texts; leave it out of the"
            f" observations, or make it the state, {named('state', column)}"
        )
    return values


def numbers_of(parts: Iterable[Any], columns: Sequence[str], role: str) -> tuple[Any, ...]:
    """The different values of columns with names of states or actions, in order."""
    values = _values(parts, columns, _NAMES)
    if values is None:
        raise InputError(
            f"logs: column {columns[0]} holds more than {_NAMES} different names of {role}s; group"
            " them into fewer"
        )
    return values


def mostly_numbers(part: Any, column: str) -> bool:
    """Whether most texts of the first rows are numbers: then the others are mistakes."""
    batch = next(iter(part.batches({column: "any"}, 1000)), None)
    texts = [] if batch is None else [str(one) for one in plain(batch.column(column)).to_pylist()]
    return sum(map(_is_number, texts)) > len(texts) / 2


def large_ids(part: Any, column: str) -> bool:
    """Whether the first rows hold whole numbers that are too large to be numbered from 0."""
    batch = next(iter(part.batches({column: "any"}, 65_536)), None)
    most = None if batch is None else pc.max(batch.column(column)).as_py()
    return most is not None and most >= _IDS


def _values(parts: Iterable[Any], columns: Sequence[str], most: int) -> tuple[Any, ...] | None:
    """All values of the columns in order, None if there are more than `most`."""
    found: set[Any] = set()
    for part in parts:
        for batch in part.batches(dict.fromkeys(columns, "any"), 65_536):
            for column in columns:
                found.update(plain(batch.column(column)).unique().drop_null().to_pylist())
            if len(found) > most:
                return None
    return tuple(sorted(found))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _seconds(column: Any) -> Any:
    kind = column.type
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        column = column.cast(pa.duration("us") if pa.types.is_duration(kind) else pa.time64("us"))
    else:
        column = column.cast(pa.timestamp("us", getattr(kind, "tz", None)))
    return pc.divide(column.cast(pa.int64()).cast(pa.float64()), 1e6)

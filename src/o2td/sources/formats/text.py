"""What plain-text formats share: types to parse to, and messages about cells that do not fit.

Arrow names neither the file nor, if it reads with several threads, the row. A refused file is read
again here, line by line, only to write a helpful message.
"""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any, ClassVar

from o2td.arguments import brief
from o2td.errors import FormatError, InputError
from o2td.sources.arrow import pa
from o2td.sources.arrow_types import is_list
from o2td.sources.format import Format
from o2td.sources.places import ROWS

TEXT_BLOCK = 1 << 20  # bytes of text parsed at a time; Arrow reads many blocks ahead
_SNIFFED = 1 << 20  # bytes from which types are inferred
_HEAD = 1 << 10  # bytes that show the encoding
_MARKS = (
    *((b"\xff\xfe\0\0", "UTF-32"), (b"\0\0\xfe\xff", "UTF-32")),
    *((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16")),
)
LARGE = "whole numbers go up to 2**63 - 1"
POINT = "write it without a point, as the rows before"
_REFUSED = (OSError, UnicodeDecodeError, MemoryError, OverflowError)


class TextFormat(Format):
    """A plain-text file, possibly compressed; a subclass opens it and names the first bad cell."""

    text = True
    words: ClassVar[bool] = False  # whether flags are written as words
    longest: ClassVar[int]  # characters of a line

    @abstractmethod
    def opened(self, types: dict[str, Any] | None, block: int) -> AbstractContextManager[Any]:
        """Arrow's reader; without types it infers them from the first block."""

    @abstractmethod
    def first_misfit(self, lines: Iterator[str], kinds: Mapping[str, str]) -> str | None:
        """What is wrong with the first line or cell that does not fit `kinds`."""

    def schema(self) -> Any:
        """Names and types, inferred from the first block."""
        self._check_encoding()
        with self._refusing({}), self.opened(None, _SNIFFED) as reader:
            schema = reader.schema
            _ = schema.names  # decode now: a name may not be valid text
            return schema

    def batches(self, columns: Mapping[str, str], rows: int) -> Iterator[Any]:
        """Blocks of the file, converted to the requested kinds."""
        types = self._types(columns)
        digits = {"int": "digits", "any": "any digits"}
        cells = {
            name: digits.get(kind, kind) if str(types[name]) == "int64" else kind
            for name, kind in columns.items()
            if not pa.types.is_nested(types[name])
        }
        cells |= {name: "flag" for name, kind in types.items() if str(kind) == "bool"}
        with self._refusing(cells), self.opened(types, TEXT_BLOCK) as reader:
            for batch in reader:
                self._check_text(batch)
                yield batch

    def _check_encoding(self) -> None:
        """Refuse text of two or four bytes per character, by its mark or its zeros."""
        try:
            with pa.input_stream(str(self.place), compression="detect") as stream:
                head = stream.read(_HEAD)
        except (pa.ArrowException, OSError):
            return  # reading it says what is wrong
        wide = next((name for mark, name in _MARKS if head.startswith(mark)), None)
        if wide is None and b"\0" in head:
            wide = "UTF-16, or not text"
        if wide is not None:
            raise FormatError(f"{self.label}: is in {wide}; save it as UTF-8")

    def _check_text(self, batch: Any) -> None:
        """Refuse text that is not in UTF-8 and was not found to be when it was parsed."""
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid as error:
            raise FormatError(f"{self.label}: {_not_utf_8(error)}") from None

    def bad_cell(self, column: str, kind: str) -> str | None:
        """The first bad cell of this column."""
        return self._first({column: kind})

    def _types(self, columns: Mapping[str, str]) -> dict[str, Any]:
        """The Arrow type that each column is parsed to."""
        sniffed = self.schema()
        types: dict[str, Any] = {}
        for name, kind in columns.items():
            seen = sniffed.field(name).type
            if pa.types.is_nested(seen) or pa.types.is_boolean(seen):
                types[name] = seen if kind == "any" else _widened(seen)
                continue
            missing = pa.types.is_null(seen)
            types[name] = pa.float64() if kind == "float" or missing else seen
            if kind == "int" and not pa.types.is_floating(seen):
                types[name] = pa.int64()
            if kind == "flag" and (self.words or missing):
                types[name] = pa.bool_()
        return types

    @contextmanager
    def _refusing(self, kinds: Mapping[str, str]) -> Iterator[None]:
        """Replace Arrow's message by the first bad cell."""
        try:
            yield
        except (pa.ArrowException, *_REFUSED) as error:
            bad = self._first(kinds)
            if bad is not None:
                raise InputError(bad) from None
            if isinstance(error, UnicodeDecodeError):
                raise FormatError(f"{self.label}: {_not_utf_8(error)}") from None
            raise

    def _first(self, kinds: Mapping[str, str]) -> str | None:
        try:
            with _lines(Path(self.place)) as lines:
                found = self.first_misfit(_bounded(lines, self.longest), kinds)
        except _LongLineError as error:
            return f"{self.label}: {error}"
        except (OSError, EOFError, ImportError, zlib.error) as error:
            return f"{self.label}: cannot be read to its end ({error}); restore it from a copy"
        return None if found is None else f"{self.label}: {found}"


def _not_utf_8(error: Exception) -> str:
    return (
        f"is damaged or not in UTF-8 ({brief(error)}); save it as UTF-8, or restore it from a copy"
    )


class _LongLineError(Exception):
    """A line that would not fit in memory, or not in a block of Arrow's."""


def _bounded(lines: IO[str], longest: int) -> Iterator[str]:
    """The lines, none of them longer than this: a small compressed file may hold enormous ones."""
    number = 0
    while line := lines.readline(longest + 1):
        number += 1
        if len(line) > longest:
            raise _LongLineError(
                f"line {number} is longer than {longest >> 20} MB; write one row per line"
            )
        yield line


def _widened(kind: Any) -> Any:
    """The same nested type with numbers as float64: later rows may have a fraction."""
    if is_list(kind):
        return pa.list_(_widened(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _widened(field.type)) for field in kind])
    return pa.float64() if pa.types.is_integer(kind) or pa.types.is_null(kind) else kind


def _lines(file: Path) -> IO[str]:
    ending = file.suffix.lower()
    if ending == ".gz":
        return gzip.open(file, "rt", encoding="utf-8", errors="replace", newline="")
    if ending == ".zst":
        stream = pa.input_stream(str(file), compression="zstd")
        raw = io.BufferedReader(stream)
        return io.TextIOWrapper(raw, encoding="utf-8", errors="replace", newline="")
    if ending == ".bz2":
        return bz2.open(file, "rt", encoding="utf-8", errors="replace", newline="")
    return file.open(encoding="utf-8", errors="replace", newline="")


def sentence(name: str, row: int, value: Any, why: str) -> str:
    """A sentence with the cell, its place and the remedy."""
    shown = repr(value)
    shown = shown if len(shown) <= 40 else shown[:37] + "…"
    return f"column {name}, row {row} ({ROWS}) is {shown}; {why}"

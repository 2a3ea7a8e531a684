"""NDJSON files: one JSON object per line.

Arrow's own stream reads some thirty blocks ahead and refuses a line that is longer than a block. Here
the file is cut at line ends, and Arrow parses a few blocks' worth of lines at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np

from o2td.errors import FormatError, import_extra
from o2td.sources.arrow import pa
from o2td.sources.formats.text import LARGE, POINT, TextFormat, sentence
from o2td.sources.places import ROWS

_PARSED = 1 << 20  # bytes of text that one thread parses at a time, if no line is longer
_LONGEST = 1 << 28  # bytes of a line
_AT_ONCE = 4 << 20  # bytes of text held at a time, if no line is longer
_DEEPEST = (
    100  # levels of lists and objects; Arrow's parser runs out of stack on a hundred thousand
)
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"')
_ONE_TYPE = "make the whole column one type"


class NdJson(TextFormat):
    """A file with one JSON object per line."""

    name = "ndjson"
    suffixes = (".ndjson", ".jsonl")
    longest = _LONGEST

    @contextmanager
    def opened(self, types: dict[str, Any] | None, block: int) -> Iterator[Any]:
        """Record batches, parsed by Arrow from whole lines."""
        with pa.input_stream(str(self.place)) as source:
            size = block if types is None else _AT_ONCE
            yield Reader(_whole_lines(source, size, self.label), types)

    def first_misfit(self, lines: Iterator[str], kinds: Mapping[str, str]) -> str | None:
        """The first line that is not an object, or cell of the wrong kind."""
        firsts: dict[str, type] = {}
        full = (line for line in lines if line.strip())
        for number, line in enumerate(full, start=1):
            try:
                record = msgspec.json.decode(line)
            except msgspec.DecodeError as error:
                return f"row {number} ({ROWS}) is not JSON ({error}); repair or remove the line"
            if not isinstance(record, dict):
                return f"row {number} ({ROWS}) is not a JSON object; write one object per line"
            for name, kind in (kinds or dict.fromkeys(record, "any")).items():
                value = record.get(name)
                why = None if value is None else _misfit(value, kind, firsts, name)
                if why:
                    return sentence(name, number, value, why)
        return None


class Reader:
    """What Arrow parses from blocks of whole lines; without types it infers them from the first."""

    def __init__(self, blocks: Iterator[bytes], types: dict[str, Any] | None) -> None:
        json = import_extra("pyarrow.json", "logs")
        self._json, self._blocks, self._parse = json, blocks, None
        if types is not None:
            self._parse = json.ParseOptions(
                explicit_schema=pa.schema(list(types.items())), unexpected_field_behavior="ignore"
            )

    @property
    def schema(self) -> Any:
        """Names and types of the first block's columns."""
        return self._table(next(self._blocks, b"")).schema

    def __iter__(self) -> Iterator[Any]:
        return (batch for block in self._blocks for batch in self._table(block).to_batches())

    def _table(self, block: bytes) -> Any:
        size = _PARSED
        if len(block) > size and max(map(len, block.splitlines())) >= size:
            size = len(block)
        options = self._json.ReadOptions(block_size=size)
        return self._json.read_json(pa.BufferReader(block), options, self._parse)


def _whole_lines(source: Any, size: int, label: str) -> Iterator[bytes]:
    """The text in blocks of about `size` bytes that end where a line does; empty ones are left out."""
    begun: list[bytes] = []
    while data := source.read(size):
        cut = data.rfind(b"\n") + 1
        if not cut:
            begun.append(data)
            if len(begun) * size > _LONGEST:
                most = f"{_LONGEST >> 20} MB"
                raise FormatError(
                    f"{label}: a line is longer than {most}; write one object per line"
                )
            continue
        block = b"".join([*begun, data[:cut]])
        begun = [data[cut:]]
        if block.strip():
            yield _shallow(block, label)
    if (block := b"".join(begun)).strip():
        yield _shallow(block, label)


def _shallow(block: bytes, label: str) -> bytes:
    """The block, unless a line of it nests lists and objects too deeply for a parser."""
    # A flat line opens one object, so that most blocks need no look at their characters.
    if block.count(b"[") + block.count(b"{") > block.count(b"\n") + _DEEPEST:
        signs = np.frombuffer(_TEXT.sub(b"", block), dtype=np.uint8)
        opened = np.isin(signs, list(b"[{")).astype(np.int32) - np.isin(signs, list(b"]}"))
        level = np.cumsum(opened, dtype=np.int32)
        if (level - np.minimum.accumulate(level)).max() > _DEEPEST:
            raise FormatError(
                f"{label}: a line nests lists or objects more than {_DEEPEST} levels deep; write one"
                " number per column"
            )
    return block


def _misfit(value: Any, kind: str, firsts: dict[str, type], name: str) -> str | None:
    if isinstance(value, (list, dict)):
        return "write one number per column"
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "float":
        return None if number else "write a number"
    if kind == "any digits" and not number:
        return _ONE_TYPE
    if kind in ("int", "digits", "any digits"):
        if not (number and float(value).is_integer()):
            return "write a whole number"
        if abs(value) >= 2**63:
            return LARGE
        plain = kind == "int" or isinstance(value, int)
        return None if plain else POINT
    sort = float if number else type(value)
    same = firsts.setdefault(name, sort) is sort
    return None if same else _ONE_TYPE

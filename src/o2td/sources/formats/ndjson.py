"""NDJSON files: one JSON object per line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import msgspec

from o2td.errors import import_extra
from o2td.sources.arrow import pa
from o2td.sources.formats.text import LARGE, POINT, Text, sentence
from o2td.sources.places import ROWS


class NdJson(Text):
    """A file with one JSON object per line."""

    name = "ndjson"
    suffixes = (".ndjson", ".jsonl")

    @contextmanager
    def opened(self, types: dict[str, Any] | None, block: int) -> Iterator[Any]:
        """Arrow's reader of JSON."""
        json = import_extra("pyarrow.json", "logs")
        parse = None
        if types is not None:
            parse = json.ParseOptions(
                explicit_schema=pa.schema(list(types.items())), unexpected_field_behavior="ignore"
            )
        options = json.ReadOptions(block_size=block)
        with (
            pa.input_stream(str(self.place)) as source,
            json.open_json(source, read_options=options, parse_options=parse) as reader,
        ):
            yield reader

    def first_misfit(self, lines: IO[str], kinds: Mapping[str, str]) -> str | None:
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


def _misfit(value: Any, kind: str, firsts: dict[str, type], name: str) -> str | None:
    if isinstance(value, (list, dict)):
        return "write one number per column"
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "float":
        return None if number else "write a number"
    if kind in ("int", "digits") or (kind == "any digits" and number):
        if not (number and float(value).is_integer()):
            return "write a whole number"
        if abs(value) >= 2**63:
            return LARGE
        plain = kind == "int" or isinstance(value, int)
        return None if plain else POINT
    sort = float if number else type(value)
    same = firsts.setdefault(name, sort) is sort
    return None if same else "make the whole column one type"

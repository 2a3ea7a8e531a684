"""The first cell of a text file that cannot be read, found the slow way after Arrow has refused.

Arrow names neither the file nor, where it reads with several threads, the row. A file that is
refused is read again here, line by line, only to write a sentence that helps.
"""

from __future__ import annotations

import bz2
import contextlib
import csv
import gzip
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from o2td.errors import import_extra

_NULLS = frozenset(["", "NA", "N/A", "NULL", "null", "NaN", "nan", "#N/A", "n/a", "-nan", "-NaN"])
_FLAGS = frozenset(["0", "1", "0.0", "1.0"])
_WORDS = frozenset(["true", "false"])
_LARGE = "whole numbers go up to 2**63 - 1"
_SEPARATORS = ";\t|,"
_FIELDS = 2  # separators that make it one
ROWS = "rows of data count from 1"


def first_bad_cell(file: Path, kind: str, kinds: Mapping[str, str]) -> str | None:
    """A sentence on the first line or cell that does not fit `kinds`, None where all fit."""
    try:
        with _open(file) as lines:
            found = _csv_cell(file, lines, kinds) if kind == "csv" else _json_cell(lines, kinds)
    except (OSError, EOFError, ImportError) as error:
        return f"{file}: cannot be read to its end ({error}); restore it from a copy"
    return None if found is None else f"{file}: {found}"


def _open(file: Path) -> IO[str]:
    ending = file.suffix.lower()
    if ending == ".gz":
        return gzip.open(file, "rt", encoding="utf-8", errors="replace", newline="")
    if ending == ".zst":
        stream = import_extra("pyarrow", "logs").input_stream(str(file), compression="zstd")
        raw = io.BufferedReader(stream)
        return io.TextIOWrapper(raw, encoding="utf-8", errors="replace", newline="")
    if ending == ".bz2":
        return bz2.open(file, "rt", encoding="utf-8", errors="replace", newline="")
    return file.open(encoding="utf-8", errors="replace", newline="")


def _csv_cell(file: Path, lines: IO[str], kinds: Mapping[str, str]) -> str | None:
    delimiter = "\t" if ".tsv" in [suffix.lower() for suffix in file.suffixes] else ","
    with _long_fields():
        rows = (row for row in csv.reader(lines, delimiter=delimiter) if row)
        return _first_misfit(rows, kinds)


def other_separator(header: Sequence[str]) -> str | None:
    r"""What is wrong with a header that is one field by commas and several by something else.

    >>> print(other_separator(["episode\treward\tstate"]))
    fields are separated by tabs; call it .tsv
    """
    if len(header) != 1:
        return None
    found = max(_SEPARATORS, key=header[0].count)
    if header[0].count(found) < _FIELDS:
        return None
    shown = {"\t": "tabs", ",": "commas"}.get(found, f'"{found}"')
    if found in "\t,":
        return f"fields are separated by {shown}; call it {'.tsv' if found != ',' else '.csv'}"
    return (
        f"fields are separated by {shown}; write it with commas (.csv) or tabs (.tsv), and 0.5 for a"
        " half"
    )


@contextlib.contextmanager
def _long_fields() -> Iterator[None]:
    """Let Python's reader take fields as long as Arrow's takes them."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _first_misfit(rows: Iterator[list[str]], kinds: Mapping[str, str]) -> str | None:
    header = next(rows, [])
    if (said := other_separator(header)) is not None:
        return said
    wanted = [(header.index(name), name, kind) for name, kind in kinds.items() if name in header]
    firsts: dict[str, bool] = {}
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            return (
                f"row {number} ({ROWS}) has {len(row)} fields, the header has {len(header)};"
                " repair or remove the line"
            )
        for index, name, kind in wanted:
            cell = row[index].strip()
            why = _misfit(cell, kind, name, firsts)
            if why:
                return _sentence(name, number, cell, why)
    return None


def _misfit(cell: str, kind: str, name: str, firsts: dict[str, bool]) -> str | None:
    if cell in _NULLS:
        return None
    if kind == "flag":
        fits = cell in _FLAGS or cell.lower() in _WORDS
        return None if fits else "write true or false"
    try:
        number = float(cell)
    except ValueError:
        if kind.startswith("any"):
            numeric = firsts.setdefault(name, False)
            return "make the whole column numbers, or none of it" if numeric else None
        return "write a number"
    firsts.setdefault(name, True)
    if kind not in ("int", "digits", "any digits"):
        return None
    if not number.is_integer():
        return "write a whole number"
    if abs(number) >= 2.0**63:
        return _LARGE
    plain = kind == "int" or cell.lstrip("+-").isdecimal()
    return None if plain else "write it without a point, as the rows before"


def _json_cell(lines: IO[str], kinds: Mapping[str, str]) -> str | None:
    firsts: dict[str, type] = {}
    for number, line in _numbered(lines):
        try:
            record = msgspec.json.decode(line)
        except msgspec.DecodeError as error:
            return f"row {number} ({ROWS}) is not JSON ({error}); repair or remove the line"
        if not isinstance(record, dict):
            return f"row {number} ({ROWS}) is not a JSON object; write one object a line"
        for name, kind in (kinds or dict.fromkeys(record, "any")).items():
            value = record.get(name)
            why = None if value is None else _json_misfit(value, kind, firsts, name)
            if why:
                return _sentence(name, number, value, why)
    return None


def _json_misfit(value: Any, kind: str, firsts: dict[str, type], name: str) -> str | None:
    if isinstance(value, (list, dict)):
        return "write one number a column"
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "float":
        return None if number else "write a number"
    if kind in ("int", "digits") or (kind == "any digits" and number):
        if not (number and float(value).is_integer()):
            return "write a whole number"
        if abs(value) >= 2**63:
            return _LARGE
        plain = kind == "int" or isinstance(value, int)
        return None if plain else "write it without a point, as the rows before"
    sort = float if number else type(value)
    same = firsts.setdefault(name, sort) is sort
    return None if same else "make the whole column one type"


def _numbered(lines: IO[str]) -> Iterator[tuple[int, str]]:
    number = 0
    for line in lines:
        if line.strip():
            number += 1
            yield number, line


def _sentence(name: str, row: int, value: Any, why: str) -> str:
    shown = repr(value)
    shown = shown if len(shown) <= 40 else shown[:37] + "…"
    return f"column {name}, row {row} ({ROWS}) is {shown}; {why}"

"""CSV files, and TSV files with tabs."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from o2td.errors import InputError, import_extra
from o2td.sources.formats.text import LARGE, POINT, TEXT_BLOCK, TextFormat, sentence
from o2td.sources.places import ROWS

TRUE = ["1", "1.0", "true", "True", "TRUE"]
FALSE = ["0", "0.0", "false", "False", "FALSE"]
_NULLS = frozenset(["", "NA", "N/A", "NULL", "null", "NaN", "nan", "#N/A", "n/a", "-nan", "-NaN"])
_FLAGS = frozenset(["0", "1", "0.0", "1.0"])
_WORDS = frozenset(["true", "false"])
_SEPARATORS = ";\t|,"
_FIELDS = 2  # separators that make it one
_LONGEST = 4 * TEXT_BLOCK  # characters of a line and of a field; Arrow takes about half as many


class Csv(TextFormat):
    """A file with fields separated by commas, or by tabs if it is called .tsv."""

    name = "csv"
    suffixes = (".csv", ".tsv")
    words = True
    longest = _LONGEST

    @property
    def _separator(self) -> str:
        suffixes = [suffix.lower() for suffix in Path(self.place).suffixes]
        return "\t" if ".tsv" in suffixes else ","

    def schema(self) -> Any:
        """As for any text; a header with a single field is checked for another separator."""
        schema = super().schema()
        said = _other_separator(schema.names)
        if said is not None:
            raise InputError(f"{self.label}: {said}")
        return schema

    @contextmanager
    def opened(self, types: dict[str, Any] | None, block: int) -> Iterator[Any]:
        """Arrow's reader of CSV."""
        arrow = import_extra("pyarrow.csv", "logs")
        convert = arrow.ConvertOptions()
        if types is not None:
            convert = arrow.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                true_values=TRUE,
                false_values=FALSE,
                strings_can_be_null=True,
            )
        with arrow.open_csv(
            self.place,
            read_options=arrow.ReadOptions(block_size=block),
            parse_options=arrow.ParseOptions(delimiter=self._separator),
            convert_options=convert,
        ) as reader:
            yield reader

    def first_misfit(self, lines: Iterator[str], kinds: Mapping[str, str]) -> str | None:
        """The first line with too few or too many fields, or cell of the wrong kind."""
        with _long_fields():
            rows = (row for row in csv.reader(lines, delimiter=self._separator) if row)
            try:
                header = next(rows, [])
                return _other_separator(header) or _first_misfit(header, rows, kinds)
            except csv.Error:
                size = f"{_LONGEST >> 20} MB"
                return f"a field is longer than {size}; close the quote that it may begin with"


def _other_separator(header: Sequence[str]) -> str | None:
    r"""What is wrong with a header that is one field by commas and several by something else.

    >>> print(_other_separator(["episode\treward\tstate"]))
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


@contextmanager
def _long_fields() -> Iterator[None]:
    """Let Python's reader accept fields as long as Arrow's does."""
    before = csv.field_size_limit(_LONGEST)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _first_misfit(
    header: list[str], rows: Iterator[list[str]], kinds: Mapping[str, str]
) -> str | None:
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
                return sentence(name, number, cell, why)
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
        return LARGE
    plain = kind == "int" or cell.lstrip("+-").isdecimal()
    return None if plain else POINT

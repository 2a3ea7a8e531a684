"""From what the user gave to the parts of a log: files (of folders and globs), or one object.

Each part is an opened `Format` that yields flat record batches with at most the requested number of
rows. Errors of Arrow and the system become one sentence with the remedy.
"""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from o2td.arguments import brief, listed, shown
from o2td.errors import FormatError, InputError
from o2td.registry import FORMATS
from o2td.sources.arrow import pa
from o2td.sources.arrow_types import plain_batch, plain_schema
from o2td.sources.coding import Codings, coded, coded_schema
from o2td.sources.columns import Columns
from o2td.sources.format import Format
from o2td.sources.nested import EPISODES, Nested

_COMPRESSED = (".gz", ".bz2", ".zst")  # of text formats
_REMEDY = "restore it from a copy, or write it again"
PathLike = str | os.PathLike[str]


class Part:
    """One file or object of a log, read by its format; nested columns are made flat."""

    def __init__(self, format_: Format, given: Columns | None = None) -> None:
        self.format = format_
        self.label = format_.label
        self._given = given or Columns()
        self._nested: Nested | None = None
        self._peeked = False
        self.codings: Codings = {}

    @property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """The columns that each nested column was spread into, known once the schema is read."""
        return self._nested.groups if self._nested else {}

    def schema(self) -> Any:
        """Names and Arrow types of the columns as they are passed on: flat and coded."""
        schema = self._flat_schema()
        return coded_schema(schema, self.codings) if self.codings else schema

    def _flat_schema(self) -> Any:
        if self._nested is not None:
            return self._nested.schema
        self._peeked = True
        with self._reading():
            schema = self.format.schema()
            names = schema.names  # decode now: a name may not be valid text
            schema = plain_schema(schema)
            deep = any(pa.types.is_nested(kind) for kind in schema.types)
            if deep:
                kinds = dict.fromkeys(names, "any")
                first = next(self._plain(kinds, EPISODES), None)
                if first is not None and first.num_rows:
                    self._nested = Nested(schema, first.slice(0, EPISODES), self._given, self.label)
                    return self._nested.schema
        return schema

    def batches(self, kinds: Mapping[str, str], rows: int) -> Iterator[Any]:
        """Record batches of at most `rows` rows with the columns of `kinds`."""
        made = self._made()
        raw = {made.get(n, n): "any" if n in made else kind for n, kind in kinds.items()}
        first = 0
        with self._reading():
            for batch in self._flat(raw, rows):
                for low in range(0, batch.num_rows, rows):
                    piece = batch.slice(low, rows)
                    if self.codings:
                        piece = coded(piece, list(kinds), self.codings, self.label, first)
                    first += piece.num_rows
                    yield piece

    def _made(self) -> dict[str, str]:
        """The flat column behind each coded one."""
        return {one: coding.column for coding in self.codings.values() for one in coding.names}

    def _flat(self, kinds: Mapping[str, str], rows: int) -> Iterator[Any]:
        if not self._peeked:
            self._flat_schema()
        nested = self._nested
        if nested is None:
            yield from self._plain(kinds, rows)
            return
        columns: dict[str, str] = dict.fromkeys(nested.needed(list(kinds)), "any")
        for name, kind in kinds.items():
            if columns[nested.source[name]] == "any":
                columns[nested.source[name]] = kind
        first = 0
        for batch in self._plain(columns, EPISODES if nested.episodes else rows):
            yield from nested.flat(batch, list(kinds), first, rows)
            first += batch.num_rows

    def _plain(self, kinds: Mapping[str, str], rows: int) -> Iterator[Any]:
        """Batches as the format reads them, without types that Arrow itself can hardly use."""
        return map(plain_batch, self.format.batches(kinds, rows))

    def verified(self, columns: set[str]) -> bool:
        """Whether checksums protect these columns against silent damage."""
        with self._reading():
            columns = {self._made().get(name, name) for name in columns}
            if self._nested is not None:
                columns = {self._nested.source[name] for name in columns}
            return self.format.verified(columns)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (
            pa.ArrowException,
            OSError,
            UnicodeDecodeError,
            MemoryError,
            OverflowError,
            RecursionError,
        ) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise FormatError(f"{self.label}: cannot be read ({error.strerror})") from None
            raise FormatError(
                f"{self.label}: is damaged or not {self.format.name} ({brief(error)}); {_REMEDY}"
            ) from None


def parts_of(logs: Any, given: Columns) -> list[Part]:
    """The parts of an object that a format takes, of a name with a scheme, or of paths."""
    taken = next((form for form in _formats() if form.takes(logs)), None)
    if taken is not None:
        return [Part(taken(logs), given)]
    if isinstance(logs, Iterable | os.PathLike) and not (
        isinstance(logs, Mapping) or hasattr(logs, "dtype")
    ):
        return files_of(logs, given)
    raise InputError(
        f"logs: {type(logs).__name__} is not a path or a frame of pandas, polars or pyarrow;"
        " name a file, or make a frame (or a dict of arrays) of it"
    )


def files_of(paths: PathLike | Iterable[PathLike], given: Columns | None = None) -> list[Part]:
    """All log files of the paths, folders (searched recursively), globs and schemes, in order."""
    several = listed("logs", _one_or_more(paths), "paths of log files")
    if not several:
        raise InputError("logs: no path was given; name files, folders or globs")
    for one in several:
        if not isinstance(one, (str, os.PathLike)):
            raise InputError(
                f"logs: {type(one).__name__} among the paths; name files, or pass one frame of pandas,"
                " polars or pyarrow"
            )
        if not os.fspath(one):
            raise InputError("logs: one of the paths is empty; name a file, a folder or a glob")
    parts = [part for one in several for part in _expanded(os.fspath(one), given)]
    labels = [part.label for part in parts]
    if len(set(labels)) < len(labels):
        twice = min(label for label, count in Counter(labels).items() if count > 1)
        raise InputError(f"{twice}: named twice among the logs; name it once")
    return parts


def _one_or_more(paths: PathLike | Iterable[PathLike]) -> Iterable[PathLike]:
    return [paths] if isinstance(paths, (str, os.PathLike)) else paths


def _formats() -> Iterator[type[Format]]:
    """All formats, o2td's own first: others are loaded only if none of these fits."""
    from o2td.sources.formats import OWN

    yield from OWN
    own = {form.name for form in OWN}
    for name in FORMATS:
        if name not in own:
            yield FORMATS[name]  # type: ignore[misc]


def _format_of(path: Path) -> type[Format] | None:
    """The format of a file's extension, or None if it is unknown."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in _COMPRESSED
    if packed:
        suffixes.pop()
    fits = (form for form in _formats() if suffixes and suffixes[-1] in form.suffixes)
    return next((form for form in fits if form.text or not packed), None)


def _expanded(text: str, given: Columns | None) -> list[Part]:
    path = Path(text)
    try:
        there = path.exists()
    except OSError as error:  # a name that is too long, or a folder that may not be read
        raise InputError(f"{shown(text)}: cannot be looked up ({error.strerror})") from None
    scheme, colon, rest = text.partition(":")
    if colon and not there:
        named = next((form for form in _formats() if form.scheme == scheme), None)
        if named is not None:
            return [Part(named(rest), given)]
    if path.is_dir():
        found = [file for file in path.rglob("*") if _is_log(file, path)]
        if not found:
            raise InputError(f"{text}: no log files in this folder; it needs {_endings()}")
    elif there:
        found = [path]
    elif glob.has_magic(text):
        found = [Path(one) for one in glob.glob(text, recursive=True)]  # noqa: PTH207
        found = [file for file in found if _is_there(file)]
        if not found:
            raise InputError(f"{text}: no file matches this pattern")
    else:
        raise InputError(f"{text}: there is no such file or folder")
    return [_part(file, given) for file in sorted(found, key=_natural)]


def _part(file: Path, given: Columns | None) -> Part:
    form = _format_of(file)
    if form is None:
        raise InputError(f"{file}: unknown format; rename or convert it to one of {_endings()}")
    if not file.exists():
        raise FormatError(f"{file}: is a link to nothing; restore what it leads to, or remove it")
    if file.stat().st_size == 0:
        raise FormatError(f"{file}: is empty (0 bytes); leave it out, or restore it")
    return Part(form(file), given)


def _is_log(file: Path, folder: Path) -> bool:
    """A file with a known ending, not hidden and not a marker such as `_SUCCESS`."""
    hidden = any(part[0] in "._" for part in file.relative_to(folder).parts)
    return _is_there(file) and not hidden and _format_of(file) is not None


def _is_there(file: Path) -> bool:
    """A file, or a link to one that was lost: its rows must not be left out unnoticed."""
    return file.is_file() or (file.is_symlink() and not file.exists())


def _natural(file: Path) -> list[tuple[int, int, str]]:
    """A sort key that puts part-2 before part-10."""
    parts = re.split(r"(\d+)", str(file))
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts]


def _endings() -> str:
    known = ", ".join(suffix for form in _formats() for suffix in form.suffixes)
    return f"{known} (text also as {', '.join(_COMPRESSED)})"

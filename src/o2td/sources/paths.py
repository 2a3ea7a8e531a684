"""From what the user wrote to a list of log files: files, folders, globs, in natural order."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable
from pathlib import Path

from o2td.errors import FormatError, InputError

# ending -> format
FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "arrow",
}
_COMPRESSED = (".gz", ".bz2", ".zst")  # of text formats
PathLike = str | os.PathLike[str]


def format_of(path: Path) -> str | None:
    """The format that a file's ending names, None where it names none.

    >>> format_of(Path("a.csv.gz")), format_of(Path("b.feather")), format_of(Path("c.txt"))
    ('csv', 'arrow', None)
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        found = FORMATS.get(suffixes[-2]) if len(suffixes) > 1 else None
        return found if found in ("csv", "ndjson") else None
    return FORMATS.get(suffixes[-1]) if suffixes else None


def expand(paths: PathLike | Iterable[PathLike]) -> list[Path]:
    """All log files of the paths, folders (searched to the bottom) and globs, in order."""
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not several:
        raise InputError("logs: no path was given; name files, folders or globs")
    for one in several:
        if not isinstance(one, (str, os.PathLike)):
            raise InputError(
                f"logs: {type(one).__name__} among the paths; name files, or pass one frame of pandas,"
                " polars or pyarrow"
            )
    files = [file for one in several for file in _expand_one(os.fspath(one))]
    twice = {file for file in files if files.count(file) > 1} if len(files) < 1000 else set()
    if twice or len(set(files)) < len(files):
        name = min(twice) if twice else "a file"
        raise InputError(f"{name}: named twice among the logs; name it once")
    return files


def _expand_one(text: str) -> list[Path]:
    path = Path(text)
    if path.is_dir():
        found = [file for file in path.rglob("*") if _is_log(file, path)]
        if not found:
            raise InputError(f"{text}: no log files in this folder; it needs {_endings()}")
    elif path.exists():
        found = [path]
    elif glob.has_magic(text):
        found = [Path(one) for one in glob.glob(text, recursive=True)]  # noqa: PTH207
        found = [file for file in found if file.is_file()]
        if not found:
            raise InputError(f"{text}: no file matches this pattern")
    else:
        raise InputError(f"{text}: there is no such file or folder")
    for file in found:
        if format_of(file) is None:
            raise InputError(f"{file}: unknown format; rename or convert it to one of {_endings()}")
        if file.stat().st_size == 0:
            raise FormatError(f"{file}: is empty (0 bytes); leave it out, or restore it")
    return sorted(found, key=_natural)


def _is_log(file: Path, folder: Path) -> bool:
    """A file with a known ending, not hidden and not a marker such as `_SUCCESS`."""
    hidden = any(part[0] in "._" for part in file.relative_to(folder).parts)
    return file.is_file() and not hidden and format_of(file) is not None


def _natural(file: Path) -> list[tuple[int, int, str]]:
    """A sort key that puts part-2 before part-10."""
    parts = re.split(r"(\d+)", str(file))
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts]


def _endings() -> str:
    return f"{', '.join(FORMATS)} (text also as {', '.join(_COMPRESSED)})"

"""The files of an evaluation, written all together or not at all.

A folder is filled under a hidden name next to it and renamed at the end. If an older evaluation is
to be replaced, the two folders swap names in one step. If that folder holds other files too, or the
system cannot swap, the files are written there one by one, each complete or not at all, and the
other files stay.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from o2td import terminal
from o2td.arguments import file_path, whole
from o2td.atomic import exchange, replacing, sync_folder, write_bytes, writing
from o2td.errors import InputError, O2TDError, import_extra, option
from o2td.evaluation.value_model import ValueModel

_GROUP = 1 << 16  # rows per group in a parquet file
Writer = Callable[[Path], None]
OWN = frozenset({"evaluation.json", "model.npz", "report.html", "values.parquet"})


def check_folder(folder: Path, force: bool) -> None:
    """Refuse a folder that cannot be created, or one that is not empty unless `force` is set."""
    if folder.is_dir():
        if not force and any(folder.iterdir()):
            raise InputError(
                f"{folder}: the folder is not empty; name another one, or pass"
                f" {option('force=True', '--force')} to replace an evaluation in it"
            )
    elif folder.exists():
        raise InputError(f"{folder}: is a file, not a folder; name another one")
    parent = folder if folder.is_dir() else folder.absolute().parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise InputError(f"{folder}: cannot be written to; name another folder")


def write_folder(folder: Path, files: Mapping[str, bytes | Writer]) -> None:
    """Write all files or none, each given by its content or a function that writes to a path."""
    folder = folder.absolute()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}.o2td-tmp")
        fresh.mkdir()
        try:
            for name, content in files.items():
                if callable(content):
                    content(fresh / name)
                else:
                    write_bytes(fresh / name, content)
            _put(fresh, folder, set(files))
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        raise O2TDError(
            f"{folder}: cannot be written ({error.strerror or error}); nothing was left there"
        ) from error


def _put(fresh: Path, folder: Path, names: set[str]) -> None:
    """Move the files in `fresh` to `folder`, in one step where possible."""
    if not folder.is_dir():
        fresh.replace(folder)
    elif _alone(fresh, folder, names) and exchange(fresh, folder):
        for path in fresh.iterdir():  # what was added to the old one meanwhile
            if path.name not in OWN | names:
                path.replace(folder / path.name)
    else:
        stale = OWN - names if (folder / "evaluation.json").exists() else set()
        for name in sorted(names):
            (fresh / name).replace(folder / name)
        for name in stale:  # of the evaluation that was there
            (folder / name).unlink(missing_ok=True)
        sync_folder(folder)
    sync_folder(folder.parent)


def _alone(fresh: Path, folder: Path, names: set[str]) -> bool:
    """Whether `folder` holds only an older evaluation that `fresh` can replace."""
    there = {path.name for path in folder.iterdir()}
    old, new = folder.stat(), fresh.stat()
    if "evaluation.json" not in there or there - OWN - names or folder.is_symlink():
        return False
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        return False
    fresh.chmod(stat.S_IMODE(old.st_mode))
    return not Path.cwd().is_relative_to(folder.resolve())  # or a shell is left in the old one


def values_writer(model: ValueModel, parts: Iterable[Any]) -> Writer:
    """A writer of `values.parquet`: the model's inputs and the value of each row.

    A part is rows and the target's probabilities there, which only action values need.
    """
    return lambda path: write_parquet(path, (model.table(*part) for part in parts))


def write_parquet(path: Path, parts: Iterable[Mapping[str, Any]]) -> None:
    """Write columns, batch by batch, to a parquet file with page checksums."""
    pa, pq = import_extra("pyarrow", "logs"), import_extra("pyarrow.parquet", "logs")
    batches = (pa.record_batch(dict(part)) for part in parts)
    first = next(batches)
    options = {"compression": "zstd", "write_page_checksum": True}
    with replacing(path) as file, pq.ParquetWriter(file, first.schema, **options) as writer:
        for batch in chain([first], batches):
            writer.write_batch(batch, row_group_size=_GROUP)


def write_page(target: Path, page: bytes) -> Path:
    """Write a page to a file, complete or not at all."""
    with writing(target):
        write_bytes(target, page)
    return target


class Document:
    """What answers of one policy and of several share: JSON text and a page."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, none of them NaN or infinite."""
        raise NotImplementedError

    def _page(self) -> bytes:
        raise NotImplementedError

    def to_json(self, indent: int | None = None) -> str:
        """`as_dict` as JSON text; never NaN."""
        return json_text(self.as_dict(), indent)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write a report: one self-contained HTML file."""
        return write_page(file_path(path), self._page())


def json_text(document: Mapping[str, Any], indent: int | None = None) -> str:
    """Plain values as readable JSON, never with NaN."""
    if indent is not None:
        indent = whole("indent", indent, 0, 100)
    made = json.dumps(document, indent=indent, allow_nan=False, ensure_ascii=False)
    return terminal.printable_json(made)

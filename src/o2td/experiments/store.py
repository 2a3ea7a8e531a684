"""A folder of finished work: one immutable file per shard, and a manifest that lists them.

::

    DIR/runs/<id>.parquet     errors of a shard: one row per run, setting, metric and recorded step
    DIR/tuning/<id>.parquet   sensitivity of each algorithm to its parameters, the choice marked
    DIR/studies/<id>.parquet  measured numbers of a part of a study
    DIR/manifest.json         what the files hold; made from them, and made again where it is stale

Files are written atomically, so a shard is done exactly when its file exists and passes its
integrity check. Two processes may work on one store: they write equal bytes under equal names.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec

from o2td.arguments import choice, listed, some_path, text
from o2td.atomic import folder_lock, sweep_temporaries, write_bytes
from o2td.errors import FormatError, InputError, O2TDError
from o2td.experiments.files import MAX_BYTES, File, decode
from o2td.experiments.planning import FORMAT, canonical, digest

FOLDERS = ("runs", "tuning", "studies")
_NAME = re.compile(r"[0-9a-f]{32}\.parquet")
_MANIFEST = "manifest.json"
_MAX_MANIFEST = 1 << 26


class _FileEntry(msgspec.Struct):
    """What the manifest says about an intact file."""

    experiment: str
    series: str
    runs: tuple[int, int]
    rows: int
    bytes: int
    digest: str


class Store:
    """The results in a folder; nothing is created before the first write.

    Parameters
    ----------
    path : str or path
        The folder.

    Examples
    --------
    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> store.create().ids()
    set()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = some_path("path", path)

    def create(self) -> Store:
        """Create the folders, check that they are writable, and remove leftovers of killed runs."""
        with self._writing():
            for name in FOLDERS:
                folder = self.path / name
                folder.mkdir(parents=True, exist_ok=True)
                sweep_temporaries(folder)
            sweep_temporaries(self.path)
            probe = self.path / ".writable"
            write_bytes(probe, b"")
            probe.unlink(missing_ok=True)
        return self

    # -- files -------------------------------------------------------------------------------------

    def ids(self, folder: str = "runs") -> set[str]:
        """The ids of all files in `folder`, verified or not."""
        return {name.partition(".")[0] for name, _ in self._entries(folder)}

    def write(self, shard_id: str, data: bytes, folder: str = "runs") -> None:
        """Add a file; an existing one is replaced by equal bytes."""
        with self._writing():
            write_bytes(self._file(shard_id, folder), data)

    def read(self, shard_id: str, folder: str = "runs") -> File:
        """Read and verify a file.

        Raises
        ------
        FormatError
            It is damaged, foreign, or of a newer version; the message says which.
        """
        path = self._file(shard_id, folder)
        if path.is_symlink():
            raise FormatError(f"{path.name}: a symbolic link; a store holds plain files only")
        try:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            raise InputError(f"{self.path}: no file {folder}/{path.name}") from None
        if len(data) > MAX_BYTES:
            raise FormatError(f"{path.name}: larger than any result file; remove it")
        return decode(data, path.name, folder)

    def check(self, ids: Collection[str], folder: str = "runs") -> tuple[set[str], dict[str, str]]:
        """Those of `ids` that are done, and what is wrong with the ones that are broken."""
        good, broken = set(), {}
        asked = {text("ids", one) for one in listed("ids", ids, "names")}
        for shard_id in sorted(self.ids(folder) & asked):
            try:
                self.read(shard_id, folder)
                good.add(shard_id)
            except FormatError as error:
                broken[shard_id] = str(error)
        return good, broken

    def files(self, folder: str = "runs", experiment: str | None = None) -> Iterator[File]:
        """All verified files, ordered by experiment, settings and run; raises on a broken one."""
        listed = self.manifest()["files"]
        prefix = f"{folder}/"
        for name in listed:
            if "broken" in listed[name]:
                raise FormatError(listed[name]["broken"])
        chosen = [
            (entry["experiment"], entry["series"], entry["runs"][0], name[len(prefix) :])
            for name, entry in listed.items()
            if name.startswith(prefix) and experiment in (None, entry["experiment"])
        ]
        for *_, name in sorted(chosen):
            yield self.read(name.partition(".")[0], folder)

    # -- the manifest ------------------------------------------------------------------------------

    def manifest(self) -> dict[str, Any]:
        """What the store holds: the stored manifest if it matches the files, else a new one."""
        stored = self._stored_manifest()
        sizes = {f"{f}/{name}": size for f in FOLDERS for name, size in self._entries(f)}
        if stored is not None:
            # An entry that was broken when it was listed may have been repaired since.
            stored["files"] = {n: e for n, e in stored["files"].items() if "broken" not in e}
            if {name: entry["bytes"] for name, entry in stored["files"].items()} == sizes:
                return stored
        kept = stored["files"] if stored is not None else {}
        files = {}
        for name, size in sorted(sizes.items()):
            if name in kept and kept[name]["bytes"] == size:
                files[name] = kept[name]
            else:
                files[name] = self._entry(name, size)
        return {"format": FORMAT, "files": files}

    def write_manifest(self) -> None:
        """Store a manifest of the current files."""
        with self._writing(), folder_lock(self.path):
            content = self.manifest()
            content["digest"] = digest(canonical(content["files"]))
            text = json.dumps(content, sort_keys=True, indent=1) + "\n"
            write_bytes(self.path / _MANIFEST, text.encode())

    def _entry(self, name: str, size: int) -> dict[str, Any]:
        folder, _, base = name.partition("/")
        try:
            file = self.read(base.partition(".")[0], folder)
        except FormatError as error:
            return {"bytes": size, "broken": str(error)}
        return {
            "experiment": file.key["experiment"],
            "series": file.series,
            "runs": file.key["runs"],
            "rows": file.rows,
            "bytes": size,
            "digest": file.digest,
        }

    def _stored_manifest(self) -> dict[str, Any] | None:
        """The manifest on disk, or None if it is missing, truncated or altered."""
        try:
            with (self.path / _MANIFEST).open("rb") as file:
                content = json.loads(file.read(_MAX_MANIFEST))
            files = content["files"]
            if content["format"] == FORMAT and content["digest"] == digest(canonical(files)):
                entries = msgspec.convert(files, dict[str, dict[str, Any]])
                msgspec.convert(
                    [e for e in entries.values() if "broken" not in e], list[_FileEntry]
                )
                return {"format": FORMAT, "files": files}
        except (OSError, ValueError, KeyError, TypeError, RecursionError, msgspec.MsgspecError):
            pass  # msgspec's own are ValueErrors from 0.20 on
        return None

    # -- the folder --------------------------------------------------------------------------------

    def _file(self, shard_id: str, folder: str) -> Path:
        name = f"{shard_id}.parquet"
        choice("folder", folder, FOLDERS)
        if not _NAME.fullmatch(name):
            raise InputError(f"{self.path}: {folder}/{name} cannot be a result file")
        return self.path / folder / name

    def _entries(self, folder: str) -> list[tuple[str, int]]:
        found = []
        choice("folder", folder, FOLDERS)
        with (
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            os.scandir(self.path / folder) as entries,
        ):
            for entry in entries:
                if _NAME.fullmatch(entry.name):
                    found.append((entry.name, entry.stat(follow_symlinks=False).st_size))
        return found

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn an error into one sentence that says why the store cannot be written."""
        try:
            yield
        except OSError as error:
            raise O2TDError(
                f"{self.path}: cannot be written ({error.strerror or error}); what is finished is"
                " kept: fix that and run the same command again"
            ) from error

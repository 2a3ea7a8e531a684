"""Files that are there completely or not at all, whatever kills the writer.

The content goes to a temporary file in the same folder, is forced to the disk, takes its name by
`os.replace`, and the folder is forced to the disk. A writer that is killed leaves at most a
temporary file, which nothing reads and :func:`sweep_temporaries` removes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from o2td.arguments import file_path
from o2td.errors import InputError, O2TDError

if sys.platform != "win32":
    import fcntl

__all__ = [
    "exchange",
    "folder_lock",
    "replacing",
    "sweep_temporaries",
    "sync_folder",
    "write_bytes",
    "writing",
]

_SUFFIX = ".o2td-tmp"
_TRIES = 5
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux


def write_bytes(path: str | os.PathLike[str], data: bytes | memoryview) -> None:
    """Make `path` hold exactly `data`; an existing file is replaced in one step.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "answer"
    >>> write_bytes(target, b"42")
    >>> target.read_bytes(), [p.name for p in target.parent.iterdir()]
    (b'42', ['answer'])
    """
    target = file_path(path)
    for attempt in range(_TRIES):
        try:
            _write_once(target, data)
            break
        except FileNotFoundError:
            # A sweep may take a temporary file in the instant before its writer has locked it.
            if attempt == _TRIES - 1 or not target.parent.is_dir():
                raise
    sync_folder(target.parent)


@contextlib.contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an error of the system into one sentence that says why a user's file is not written.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "gone" / "answer"
    >>> with writing(target):
    ...     write_bytes(target, b"42")
    Traceback (most recent call last):
    o2td.errors.InputError: .../gone: there is no such folder; create it first
    """
    target = file_path(path)
    try:
        yield
    except OSError as error:
        if not target.parent.exists():
            raise InputError(f"{target.parent}: there is no such folder; create it first") from None
        raise O2TDError(
            f"{target}: cannot be written ({error.strerror or error}); nothing was changed"
        ) from error


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to that becomes `path` at the end of the block, or vanishes if that raises.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "answer"
    >>> with replacing(target) as file:
    ...     _ = file.write(b"42")
    >>> target.read_bytes(), [p.name for p in target.parent.iterdir()]
    (b'42', ['answer'])
    """
    target = file_path(path)
    with _temporary(target) as descriptor:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            yield file
        os.fsync(descriptor)
    sync_folder(target.parent)


def exchange(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Let two files or folders swap their names in one step; False where the system cannot.

    Only Linux can, on most of its file systems. Where it is False nothing has changed.
    """
    if sys.platform != "linux":
        return False
    import ctypes

    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    rename.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    names = [os.fsencode(name) for name in (one, other)]
    return bool(rename(_HERE, names[0], _HERE, names[1], _EXCHANGE) == 0)


def sweep_temporaries(folder: str | os.PathLike[str]) -> int:
    """Remove the temporary files of writers that are gone; return how many there were.

    A file that another process is writing at this moment is locked by it, and stays.
    """
    removed = 0
    for path in Path(folder).glob(f".*{_SUFFIX}"):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDWR)
            try:
                _lock(descriptor, wait=False)
                path.unlink()
                removed += 1
            finally:
                os.close(descriptor)
    return removed


@contextlib.contextmanager
def folder_lock(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the folder's advisory lock, where the file system knows locks; wait for it if taken."""
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            _lock(descriptor, wait=True)
        yield
    finally:
        os.close(descriptor)


def _write_once(target: Path, data: bytes | memoryview) -> None:
    with _temporary(target) as descriptor:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)


@contextlib.contextmanager
def _temporary(target: Path) -> Iterator[int]:
    """A new file next to `target`, locked while it is written, that then takes its name."""
    _refuse_device(target)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}{_SUFFIX}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with contextlib.suppress(OSError):
            _lock(descriptor, wait=False)
        yield descriptor
        if sys.platform == "win32":  # an open file cannot be renamed there
            os.close(descriptor)
            descriptor = -1
        temporary.replace(target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(target)  # a full disk does not say which file
        raise
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _refuse_device(target: Path) -> None:
    """Refuse to put a file in the place of a device or a pipe: as root, even /dev/null would go."""
    with contextlib.suppress(OSError):
        mode = target.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise InputError(f"{target}: is a device or a pipe, not a file; name a file")


def _lock(descriptor: int, wait: bool) -> None:
    if sys.platform != "win32":
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def sync_folder(folder: Path) -> None:
    """Force the folder's list of files to the disk, where the system can."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync a folder; the file itself is safe already.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)

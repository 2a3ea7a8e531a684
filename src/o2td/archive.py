"""Files of state: an `.npz` without pickle, a JSON header, and a digest over every byte.

The file is a zip of stored (never compressed) members, `header.json` first, then one `.npy` an
array, so `numpy.load` reads it too. The zip's comment is the SHA-256 of all bytes before it: any
flipped bit, missing byte or appended byte is refused. A digest is no signature, so a file that
carries a right one is still distrusted: names, sizes, dtypes and shapes are compared with the
header before anything is allocated, and nothing in the file can name code.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from o2td._version import __version__
from o2td.arguments import file_path
from o2td.atomic import write_bytes, writing
from o2td.errors import FormatError, InputError

__all__ = ["MAX_BYTES", "VERSION", "load", "save"]

VERSION = 1
MAX_BYTES = 1 << 34
_HEADER_BYTES = 1 << 20
_COMMENT = 64  # hexadecimal digits of the digest, at the very end of the file
_EPOCH = (1980, 1, 1, 0, 0, 0)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_KINDS = "biuf"

Arrays = dict[str, npt.NDArray[Any]]


def save(
    path: str | os.PathLike[str],
    kind: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
) -> None:
    """Write `header` (JSON values) and `arrays` (numbers) to `path`, at once or not at all.

    >>> import tempfile, numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> save(folder.name + "/a.npz", "example", {"step": 3}, {"theta": np.ones(2)})
    >>> header, arrays = load(folder.name + "/a.npz", "example")
    >>> header["step"], arrays["theta"]
    (3, array([1., 1.]))
    >>> folder.cleanup()
    """
    members = {name: _as_member(name, array) for name, array in arrays.items()}
    listed = {n: {"dtype": a.dtype.str, "shape": list(a.shape)} for n, a in members.items()}
    document = {
        "format": "o2td",
        "version": VERSION,
        "kind": kind,
        "library": __version__,
        "header": dict(header),
        "arrays": listed,
    }
    try:
        text = json.dumps(document, sort_keys=True).encode()
    except (TypeError, ValueError) as error:
        raise InputError(f"header of {kind}: {error}; it must hold JSON values only") from None
    if len(text) > _HEADER_BYTES:
        raise InputError(f"header of {kind} has {len(text)} bytes, at most {_HEADER_BYTES} fit")
    with writing(path):
        write_bytes(path, _render(text, members))


def load(
    path: str | os.PathLike[str], kind: str, max_bytes: int = MAX_BYTES
) -> tuple[dict[str, Any], Arrays]:
    """Read what `save` wrote: `(header, arrays)`.

    Raises `FormatError` on a file that is damaged, hostile, of another kind, or written by a newer
    version, without running or allocating anything that it asks for.
    """
    name = str(file_path(path))
    with _open(name) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > max_bytes:
            raise FormatError(f"{name}: {size} bytes, more than max_bytes={max_bytes} allows")
        _check_digest(name, stream, size)
        try:
            return _read(name, kind, stream, size)
        except FormatError:
            raise
        except (zipfile.BadZipFile, ValueError, KeyError, TypeError, EOFError, OSError) as error:
            raise _damaged(name, str(error)) from None
        except (RecursionError, NotImplementedError, OverflowError, RuntimeError) as error:
            raise _damaged(name, str(error)) from None


def _as_member(name: str, array: Any) -> npt.NDArray[Any]:
    if not _NAME.fullmatch(name) or name == "header.json":
        raise InputError(f"array name {name!r}: use letters, digits, '_', '-' and '.'")
    array = np.asarray(array)
    if array.dtype.kind not in _KINDS:
        raise InputError(f"array {name!r} has dtype {array.dtype}; only numbers are stored")
    little = array.dtype.newbyteorder("<")
    return np.asarray(array, dtype=little, order="C")


# -- writing ---------------------------------------------------------------------------------------


def _render(text: bytes, members: Arrays) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        archive.comment = b"0" * _COMMENT
        archive.writestr(_info("header.json"), text)
        for name, array in members.items():
            with archive.open(_info(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
    with stream.getbuffer() as data:  # returned, it could outlive the stream in a failed write
        digest = hashlib.sha256(data[:-_COMMENT]).hexdigest()
    stream.seek(-_COMMENT, io.SEEK_END)
    stream.write(digest.encode())
    return stream.getvalue()


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.create_system = 3
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    return info


def _digest(stream: BinaryIO, end: int) -> bytes:
    digest = hashlib.sha256()
    stream.seek(0)
    while end > 0:
        block = stream.read(min(end, 1 << 20))
        if not block:
            break
        digest.update(block)
        end -= len(block)
    return digest.hexdigest().encode()


# -- reading ---------------------------------------------------------------------------------------


def _open(name: str) -> BinaryIO:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        if Path(name).is_symlink():
            raise FormatError(f"{name}: is a symbolic link; pass the file that it points to")
        descriptor = os.open(name, flags | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise InputError(f"{name}: no such file") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{name}: cannot be read ({error})") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FormatError(f"{name}: is not a regular file")
    return os.fdopen(descriptor, "rb")


def _damaged(name: str, why: str) -> FormatError:
    return FormatError(f"{name}: {why}; restore it from a copy")


def _check_digest(name: str, stream: BinaryIO, size: int) -> None:
    if size < _COMMENT + 22 or stream.read(4) != b"PK\x03\x04":
        raise _damaged(name, "is not a file of o2td, or was cut short")
    stream.seek(size - _COMMENT)
    if stream.read(_COMMENT) != _digest(stream, size - _COMMENT):
        raise _damaged(name, "its digest does not match its content")


def _read(name: str, kind: str, stream: BinaryIO, size: int) -> tuple[dict[str, Any], Arrays]:
    with zipfile.ZipFile(stream) as archive:
        infos = {info.filename: info for info in archive.infolist()}
        _check_members(name, archive, infos, size)
        document = _document(name, kind, archive.read("header.json"))
        listed = document["arrays"]
        if set(infos) != {"header.json", *(f"{key}.npy" for key in listed)}:
            raise _damaged(name, "its members are not those that its header lists")
        arrays = {key: _array(name, key, listed[key], archive, infos) for key in listed}
    return document["header"], arrays


def _check_members(
    name: str, archive: zipfile.ZipFile, infos: dict[str, zipfile.ZipInfo], size: int
) -> None:
    if len(infos) != len(archive.infolist()) or "header.json" not in infos:
        raise _damaged(name, "has repeated members or no header")
    for member, info in infos.items():
        plain = member == "header.json" or (
            member.endswith(".npy") and _NAME.fullmatch(member[: -len(".npy")]) is not None
        )
        if not plain or ".." in member:
            raise FormatError(f"{name}: member name {member[:80]!r} is not allowed")
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits or info.is_dir():
            raise FormatError(f"{name}: member {member!r} is compressed, encrypted or a folder")
        if stat.S_IFMT(info.external_attr >> 16) != stat.S_IFREG:
            raise FormatError(f"{name}: member {member!r} is not a regular file")
        if info.file_size != info.compress_size:
            raise FormatError(f"{name}: member {member!r} declares a size that is not its own")
    if sum(info.file_size for info in infos.values()) > size:
        raise FormatError(f"{name}: its members declare more bytes than the file has")
    if infos["header.json"].file_size > _HEADER_BYTES:
        raise FormatError(f"{name}: its header has more than {_HEADER_BYTES} bytes")


def _document(name: str, kind: str, text: bytes) -> dict[str, Any]:
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("format") != "o2td":
        raise _damaged(name, "its header is not one of o2td")
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _damaged(name, f"its version is {str(version)[:40]!r}")
    if version > VERSION:
        raise FormatError(
            f"{name}: written in version {version} of the format, this o2td reads up to {VERSION};"
            " install a newer o2td"
        )
    if document.get("kind") != kind:
        raise FormatError(f"{name}: holds {str(document.get('kind'))[:80]!r}, expected {kind!r}")
    if not isinstance(document.get("header"), dict) or not isinstance(document.get("arrays"), dict):
        raise _damaged(name, "its header is incomplete")
    return document


def _array(
    name: str, key: str, listed: Any, archive: zipfile.ZipFile, infos: dict[str, zipfile.ZipInfo]
) -> npt.NDArray[Any]:
    info = infos[f"{key}.npy"]
    with archive.open(info) as member:
        prefix = io.BytesIO(member.read(10))
        if np.lib.format.read_magic(prefix) != (1, 0):
            raise _damaged(name, f"array {key!r} is in another version of the .npy format")
        length = int.from_bytes(prefix.getvalue()[8:10], "little")
        prefix = io.BytesIO(prefix.getvalue() + member.read(length))
        prefix.seek(8)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(prefix)
        if dtype.kind not in _KINDS or dtype.hasobject or fortran:
            raise FormatError(f"{name}: array {key!r} holds {dtype}, not plain numbers")
        if listed != {"dtype": dtype.str, "shape": list(shape)}:
            raise _damaged(name, f"array {key!r} is not as its header lists it")
        count = 1
        for extent in shape:
            count *= extent
        if count * dtype.itemsize != info.file_size - 10 - length:
            raise _damaged(name, f"array {key!r} declares another size than it has")
        array = np.empty(shape, dtype)
        _fill(name, member, array)
    return array


def _fill(name: str, member: Any, array: npt.NDArray[Any]) -> None:
    view = memoryview(cast(Any, array.reshape(-1).view(np.uint8)))
    done = 0
    while done < len(view):
        block = member.read(min(len(view) - done, 1 << 20))
        if not block:
            raise _damaged(name, "an array ends early")
        view[done : done + len(block)] = block
        done += len(block)
    if member.read(1):
        raise _damaged(name, "an array is longer than it declares")

"""Logs as named arrays with one row per step: .npz, HDF5 (as in D4RL) and dicts."""

from __future__ import annotations

import io
import tokenize
import zipfile
import zlib
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from o2td.arguments import brief
from o2td.arrays import as_array
from o2td.errors import FormatError, InputError, O2TDError, import_extra
from o2td.sources.arrow import pa
from o2td.sources.columns import Columns
from o2td.sources.format import Format
from o2td.sources.mapping import called

_DAMAGED = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError, KeyError, TypeError),
    *(ValueError, RuntimeError, tokenize.TokenError),
)
_KINDS = "fiubUSM"  # kinds of NumPy types that Arrow has columns for


class Arrays(Format):
    """Arrays of equal length; a matrix is one vector per row."""

    @abstractmethod
    def opened(self) -> AbstractContextManager[Mapping[str, Any]]:
        """Arrays by name, each with `shape`, `dtype` and slices of rows, read in order."""

    def schema(self) -> Any:
        """The arrays that are as long as the rewards; others are not columns."""
        with self.opened() as arrays:
            fields = [(name, _arrow(arrays[name][:0]).type) for name in self._columns(arrays)]
        return pa.schema(fields)

    def batches(self, columns: Mapping[str, str], rows: int) -> Iterator[Any]:
        """The same rows of each array."""
        with self.opened() as arrays:
            count = len(arrays[self._columns(arrays)[0]])
            for low in range(0, count, rows):
                cut = slice(low, min(count, low + rows))
                cells = {
                    name: as_array(f"{self.label}: {name}", arrays[name][cut]) for name in columns
                }
                found = [_arrow(one) for one in cells.values()]
                yield pa.RecordBatch.from_arrays(found, names=list(columns))

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn whatever a damaged file raises into one sentence."""
        try:
            yield
        except _DAMAGED as error:
            if isinstance(error, O2TDError):
                raise
            raise FormatError(
                f"{self.label}: is damaged or not {self.name} ({brief(error)}); restore it from a copy"
            ) from None

    def _columns(self, arrays: Mapping[str, Any]) -> list[str]:
        usable = [name for name, one in arrays.items() if one.shape and one.dtype.kind in _KINDS]
        lengths = {name: arrays[name].shape[0] for name in usable}
        reward = next((name for name in usable if called(name, "reward", Columns())), None)
        common = Counter(lengths.values()).most_common(1)
        if not common:
            raise InputError(
                f"{self.label}: holds no arrays of numbers; write observations, actions, rewards,"
                " terminals and timeouts, a row per step"
            )
        count = common[0][0] if reward is None else lengths[reward]
        return [name for name in usable if lengths[name] == count]


class DictOfArrays(Arrays):
    """A dict of arrays, also of dicts of arrays."""

    name = "arrays"

    @classmethod
    def takes(cls, value: Any) -> bool:
        """Recognise it by shapes."""
        return isinstance(value, Mapping) and any(hasattr(one, "shape") for one in value.values())

    @property
    def label(self) -> str:
        """The same for all."""
        return "arrays"

    def opened(self) -> AbstractContextManager[Mapping[str, Any]]:
        """The arrays themselves."""
        return nullcontext(dict(_named(self.place)))

    def verified(self, columns: set[str]) -> bool:
        """Memory needs no checksums."""
        return True


class Npz(Arrays):
    """A NumPy .npz file, read in pieces even if compressed; zip has checksums."""

    name = "npz"
    suffixes = (".npz",)

    @contextmanager
    def opened(self) -> Iterator[Mapping[str, Any]]:
        """Members as they are asked for."""
        with self.refusing(), zipfile.ZipFile(self.place) as archive, ExitStack() as streams:
            names = [name for name in archive.namelist() if name.endswith(".npy")]
            yield {name.removesuffix(".npy"): _Member(archive, name, streams) for name in names}

    def verified(self, columns: set[str]) -> bool:
        """Every member carries a checksum, which is verified when its end is read."""
        return True


class Hdf5(Arrays):
    """An HDF5 file with one array per column, in groups or not."""

    name = "hdf5"
    suffixes = (".hdf5", ".h5")

    @contextmanager
    def opened(self) -> Iterator[Mapping[str, Any]]:
        """All datasets of the file."""
        h5py = import_extra("h5py", "hdf5")
        found: dict[str, Any] = {}

        def note(name: str, one: Any) -> None:
            if hasattr(one, "dtype"):
                if _elsewhere(one):
                    raise InputError(
                        f"{self.label}: {name} is stored in another file, which a log may not make"
                        " o2td read; copy it into this file"
                    )
                found[name] = one

        with self.refusing(), h5py.File(self.place, "r") as file:
            file.visititems(note)
            if any(name.startswith("episode_0/") for name in found):
                raise InputError(
                    f"{self.label}: is part of a Minari dataset; name that instead, as minari:NAME or"
                    " minari:FOLDER"
                )
            yield found


def _elsewhere(one: Any) -> bool:
    """Whether the values of an HDF5 dataset are in another file, of whatever kind."""
    virtual = one.is_virtual and any(part.file_name != "." for part in one.virtual_sources())
    return bool(one.external or virtual)


class _Member:
    """One array in a zip archive, read from its start to its end."""

    def __init__(self, archive: zipfile.ZipFile, name: str, streams: ExitStack) -> None:
        self._archive, self._name, self._closing = archive, name, streams
        self._streams: list[IO[bytes]] = []
        with archive.open(name) as stream:
            self.shape, by_columns, self.dtype = _header(stream)
        # Stored by columns, each column is its own stream.
        self._columns = int(np.prod(self.shape[1:])) if by_columns and self.shape[1:] else 1

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: slice) -> npt.NDArray[Any]:
        low, high, _ = rows.indices(len(self))
        shape = (high - low, *self.shape[1:])
        if high <= low:
            return np.zeros(shape, dtype=self.dtype)
        if not self._streams:
            self._streams = [self._opened(j) for j in range(self._columns)]
        count = int(np.prod(shape)) // self._columns
        parts = [self._read(stream, count, high) for stream in self._streams]
        return (
            np.stack(parts, axis=-1).reshape(shape) if len(parts) > 1 else parts[0].reshape(shape)
        )

    def _opened(self, column: int) -> IO[bytes]:
        """The member from its first entry of a column on."""
        if column == 0 and self._columns > 1:
            with self._archive.open(self._name) as whole:  # seeking verifies no checksum
                while whole.read(1 << 20):
                    pass
        stream = self._closing.enter_context(self._archive.open(self._name))
        _header(stream)
        if column:
            stream.seek(column * len(self) * self.dtype.itemsize, io.SEEK_CUR)
        return stream

    def _read(self, stream: IO[bytes], count: int, high: int) -> npt.NDArray[Any]:
        raw = stream.read(count * self.dtype.itemsize)
        if len(raw) < count * self.dtype.itemsize:
            raise EOFError(f"{self._name} ends early")
        if high == len(self) and self._columns == 1:
            stream.read()  # the checksum is compared at the end
        return np.frombuffer(raw, dtype=self.dtype)


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0
    return (read if version == (1, 0) else np.lib.format.read_array_header_2_0)(stream)


def _named(arrays: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, one in arrays.items():
        if isinstance(one, Mapping):
            yield from _named(one, f"{before}{name}/")
        else:
            masked = isinstance(one, np.ma.MaskedArray)  # refused where it is used
            yield f"{before}{name}", one if masked else as_array(f"arrays: {before}{name}", one)


def _arrow(rows: npt.NDArray[Any]) -> Any:
    """Rows as an Arrow column: numbers, or vectors of a matrix."""
    rows = np.ascontiguousarray(rows, dtype=rows.dtype.newbyteorder("="))
    if rows.dtype.kind in "US":
        rows = rows.astype(np.str_)
    width = int(np.prod(rows.shape[1:]))
    flat = pa.array(rows.reshape(-1))
    return flat if width == 1 else pa.FixedSizeListArray.from_arrays(flat, width)

"""Result files: parquet with a digest that proves its integrity.

Each file carries the key of its shard and a BLAKE2 digest over every byte of the file (the digest's
own digits read as zeros). A flipped bit, a missing tail or another file's name is an error, so
corrupt files are never read as good. The bytes depend only on the key and the values, not on time
or machine.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from o2td.errors import FormatError, import_extra
from o2td.experiments.planning import FORMAT, canonical, digest

if TYPE_CHECKING:
    import polars as pl

MAX_BYTES = 1 << 30
MAX_ROWS = 20_000_000  # `validate.MAX_SHARD_RECORDS` keeps every shard below this
_MARK = b"\nblake2b-256:"  # JSON has no bare line break, so no key can hold this
_DIGITS = 64

_WORDS = ("experiment", "domain", "scheme", "algorithm", "parameters", "metric")
COLUMNS = {
    "runs": [
        *("experiment", "domain", "scheme", "algorithm", "parameters", "run", "metric"),
        *("step", "value", "diverged"),
    ],
    "tuning": [
        *("experiment", "domain", "scheme", "algorithm", "parameters", "metric", "score"),
        *("runs", "mean", "low", "high", "diverged_share", "chosen"),
    ],
    "studies": ["study", "domain", "method", "quantity", "index", "x", "value"],
}


OPTIONAL = {"runs": ["truth_error"]}  # last, and only where true values are rolled out


class Labels(NamedTuple):
    """A column with few distinct words: `words[code[t]]` is the entry of row t."""

    code: npt.NDArray[np.int32]
    words: list[str]

    @classmethod
    def of(cls, entries: Sequence[str]) -> Labels:
        """The column of these entries.

        >>> Labels.of(["a", "b", "a"]).code.tolist()
        [0, 1, 0]
        """
        words = list(dict.fromkeys(entries))
        place = {word: k for k, word in enumerate(words)}
        return cls(np.array([place[word] for word in entries], dtype=np.int32), words)


@dataclass(frozen=True)
class File:
    """A verified file: what was computed, and its rows."""

    key: dict[str, Any]
    id: str
    digest: str
    size: int
    rows: int
    data: bytes

    def frame(self) -> pl.DataFrame:
        """The rows, as polars holds them."""
        polars = import_extra("polars", extra="experiments")
        table: pl.DataFrame = polars.read_parquet(io.BytesIO(self.data), use_statistics=False)
        return table

    @property
    def series(self) -> str:
        """A name for all shards that differ only in their runs: same settings, other seeds."""
        return digest(canonical({**self.key, "runs": None}))[:12]


def encode(key: str, columns: Mapping[str, Any]) -> bytes:
    """The bytes of a file that holds `columns` under `key`."""
    arrow = import_extra("pyarrow", extra="experiments")
    parquet = import_extra("pyarrow.parquet", extra="experiments")
    arrays = {name: _array(arrow, column) for name, column in columns.items()}
    table = arrow.table(arrays)
    stream = io.BytesIO()
    writer = parquet.ParquetWriter(
        stream,
        table.schema,
        version="2.6",
        data_page_version="1.0",
        compression="zstd",
        compression_level=3,
        use_dictionary=[name for name in columns if name != "value"],
        write_statistics=False,
        write_page_checksum=True,
        store_schema=False,
    )
    with writer:
        writer.write_table(table, row_group_size=1 << 20)
        writer.add_key_value_metadata(
            {"o2td.key": key, "o2td.digest": (_MARK + b"0" * _DIGITS).decode()}
        )
    data = bytearray(stream.getvalue())
    where = data.rindex(_MARK) + len(_MARK)
    data[where : where + _DIGITS] = hashlib.blake2b(data, digest_size=32).hexdigest().encode()
    return bytes(data)


def decode(data: bytes, name: str, folder: str = "runs") -> File:
    """Verify the bytes of the file called `name`, or say how they are broken.

    Raises
    ------
    FormatError
        The digest does not match, the key is not that of the name, or the format is newer.
    """
    where = data.rfind(_MARK) + len(_MARK)
    found = data[where : where + _DIGITS]
    hasher = hashlib.blake2b(data[:where], digest_size=32)
    hasher.update(b"0" * _DIGITS)
    hasher.update(data[where + _DIGITS :])
    if where < len(_MARK) or hasher.hexdigest().encode() != found:
        raise FormatError(f"{name}: damaged, its digest does not match; run again to redo it")
    try:
        return _open(data, name, folder, found.decode())
    except FormatError:
        raise
    except Exception as error:
        # The digest is right, so the file was made by hand: whatever fails, it is foreign.
        raise FormatError(
            f"{name}: not a result file ({type(error).__name__}); remove it"
        ) from None


def _open(data: bytes, name: str, folder: str, found: str) -> File:
    parquet = import_extra("pyarrow.parquet", extra="experiments")
    metadata = parquet.ParquetFile(io.BytesIO(data)).metadata
    text = metadata.metadata[b"o2td.key"].decode()
    key = json.loads(text)
    if key["format"] > FORMAT:
        raise FormatError(f"{name}: written by a newer version; update o2td")
    if key["format"] != FORMAT or digest(text) != name.partition(".")[0]:
        raise FormatError(f"{name}: holds another shard than its name says; run again to redo it")
    if not isinstance(key["experiment"], str) or [type(k) for k in key["runs"]] != [int, int]:
        raise FormatError(f"{name}: its key is not that of a result file; remove it")
    rows = metadata.num_rows
    if rows > MAX_ROWS or rows != (rows if folder == "studies" else expected_rows(key)):
        raise FormatError(f"{name}: {rows} rows, not those of its key; remove it")
    found_columns = [metadata.schema.column(k).path for k in range(metadata.num_columns)]
    known = COLUMNS[folder]
    if found_columns not in (known, known + OPTIONAL.get(folder, [])):
        raise FormatError(f"{name}: has other columns than a result file; remove it")
    return File(key, digest(text), found, len(data), rows, data)


def expected_rows(key: dict[str, Any]) -> int:
    """How many rows the shard of this key has: runs × metrics × records of every cell."""
    if "rows" in key:
        return int(key["rows"])
    records = {"learner": records_of(key["steps"], key["every"]), "solver": key["sizes"]}
    per_run = sum(len(records[cell["kind"]]) for cell in key["cells"])
    return int((key["runs"][1] - key["runs"][0]) * len(key["metrics"]) * per_run)


def records_of(steps: int, every: int) -> range:
    """The steps after which a learner is recorded."""
    return range(every, steps + 1, every)


def _array(arrow: Any, column: Any) -> Any:
    if isinstance(column, Labels):
        return arrow.DictionaryArray.from_arrays(arrow.array(column.code), column.words)
    return column if isinstance(column, arrow.Array) else arrow.array(column)

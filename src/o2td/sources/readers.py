"""Record batches from files and frames, in order, a bounded number of rows at a time.

A reader knows its parts (files, or one frame), the schema of each, and yields Arrow record batches
of chosen columns. Everything that Arrow refuses becomes one sentence with file, row and remedy.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from numbers import Number
from pathlib import Path
from typing import Any, Protocol

from o2td.errors import FormatError, InputError, import_extra
from o2td.sources.checksums import has_checksums
from o2td.sources.paths import format_of
from o2td.sources.text import first_bad_cell, other_separator

TEXT_BLOCK = 16 << 20  # bytes of text parsed at a time
_READ_BUFFER = 1 << 18
_LARGE_GROUP = 64 << 20  # bytes
TRUE = ["1", "1.0", "true", "True", "TRUE"]
FALSE = ["0", "0.0", "false", "False", "FALSE"]
_REMEDY = "restore it from a copy, or write it again"


class Reader(Protocol):
    """Where record batches come from."""

    @property
    def names(self) -> list[str]:
        """How each part is called in messages."""
        ...

    def schema(self, part: int) -> Any:
        """The Arrow schema of a part."""
        ...

    def batches(self, part: int, kinds: Mapping[str, str], rows: int) -> Iterator[Any]:
        """Record batches of at most `rows` rows with the columns of `kinds`."""
        ...

    def verified(self, part: int, columns: set[str]) -> bool:
        """Whether checksums protect these columns against silent damage."""
        ...


class FileReader:
    """Parquet, CSV, NDJSON and Arrow files."""

    def __init__(self, files: list[Path]) -> None:
        self.files = files

    @property
    def names(self) -> list[str]:
        """The paths."""
        return [str(file) for file in self.files]

    def schema(self, part: int) -> Any:
        """The schema in the file; of text, as its first block looks."""
        with _reading(self.files[part]):
            schema = _schema(self.files[part])
            names = schema.names  # decoded now: a name may not be text
        said = other_separator(names) if format_of(self.files[part]) == "csv" else None
        if said is not None:
            raise InputError(f"{self.files[part]}: {said}")
        return schema

    def batches(self, part: int, kinds: Mapping[str, str], rows: int) -> Iterator[Any]:
        """Batches of one file; text is converted to the kinds asked for."""
        file = self.files[part]
        kind = format_of(file)
        types = {}
        if kind in ("csv", "ndjson"):
            types = _text_types(self.schema(part), kinds, words=kind == "csv")
        with _reading(file, _cells(kinds, types)):
            if kind == "parquet":
                with _parquet(file) as parquet:
                    yield from parquet.iter_batches(batch_size=rows, columns=list(kinds))
            elif kind == "arrow":
                with _arrow(file) as (_, batches):
                    for batch in batches:
                        batch.validate(full=True)
                        yield from _slices(batch.select(list(kinds)), rows)
            else:
                with (_csv if kind == "csv" else _ndjson)(file, types) as batches:
                    for batch in batches:
                        yield from _slices(batch, rows)

    def verified(self, part: int, columns: set[str]) -> bool:
        """True for parquet whose pages carry checksums, which are always verified."""
        file = self.files[part]
        if format_of(file) != "parquet":
            return False
        with _reading(file), _parquet(file) as parquet, file.open("rb") as raw:
            return has_checksums(raw, parquet.metadata, columns)


class FrameReader:
    """A pandas, polars or pyarrow frame, a polars lazy frame, or a pyarrow dataset."""

    def __init__(self, frame: Any) -> None:
        self.names = ["frame"]
        self.frame = frame
        self.kind = frame_kind(frame)
        if self.kind == "pandas" and not all(isinstance(name, str) for name in frame.columns):
            raise InputError("frame: its column names are not all strings; rename the columns")
        if self.kind == "pandas" and not frame.columns.is_unique:
            twice = frame.columns[frame.columns.duplicated()][0]
            raise InputError(f"frame: two columns are called {twice}; rename one")

    def schema(self, part: int) -> Any:
        """The frame's schema as Arrow types."""
        if self.kind == "pandas":
            return _pandas_schema(self.frame.iloc[:1000])
        if self.kind == "polars":
            return self.frame.head(0).to_arrow().schema
        if self.kind == "lazy":
            return self.frame.head(0).collect().to_arrow().schema
        return self.frame.schema

    def batches(self, part: int, kinds: Mapping[str, str], rows: int) -> Iterator[Any]:
        """Slices of the frame."""
        pa = import_extra("pyarrow", "logs")
        names = list(kinds)
        if self.kind == "pandas":
            first = self.schema(part)
            for low in range(0, len(self.frame), rows):
                yield _pandas_batch(self.frame[names].iloc[low : low + rows], low, first)
        elif self.kind == "polars":
            for low in range(0, self.frame.height, rows):
                yield _joined(self.frame.slice(low, rows).select(names).to_arrow())
        elif self.kind == "lazy":
            for piece in self.frame.select(names).collect_batches(
                chunk_size=rows, maintain_order=True
            ):
                for low in range(0, piece.height, rows):
                    yield _joined(piece.slice(low, rows).to_arrow())
        elif self.kind == "dataset":
            for batch in self.frame.scanner(columns=names, batch_size=rows).to_batches():
                yield from _slices(batch, rows)
        else:
            table = pa.table(self.frame) if self.kind == "batch" else self.frame
            yield from table.select(names).to_batches(rows)

    def verified(self, part: int, columns: set[str]) -> bool:
        """Memory needs no checksums."""
        return True


def _pandas_schema(frame: Any) -> Any:
    """The types of the columns; null of one that cannot be read, which matters only if it is used."""
    pa = import_extra("pyarrow", "logs")
    fields = []
    for name in frame.columns:
        try:
            kind = pa.Array.from_pandas(frame[name]).type
        except (pa.ArrowException, TypeError, ValueError):
            kind = pa.null()
        fields.append(pa.field(name, kind))
    return pa.schema(fields)


def _pandas_batch(frame: Any, low: int, first: Any) -> Any:
    """Rows of a frame from row `low`, whose columns of numbers hold numbers to their ends."""
    pa = import_extra("pyarrow", "logs")
    try:
        batch = pa.RecordBatch.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        for name in frame.columns:
            _refuse_mixture(frame[name], low)
        raise InputError(
            f"frame: cannot be read as a table ({_short(error)}); convert the column to numbers"
        ) from None
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)
    for field in batch.schema:
        known = first.field(field.name).type
        late = any(test(field.type) for test in texts) and not any(test(known) for test in texts)
        if late and not pa.types.is_dictionary(known):
            row = int(frame[field.name].notna().to_numpy().argmax())
            raise InputError(
                f"frame: column {field.name}, row {low + row + 1} is {frame[field.name].iloc[row]!r}"
                " (rows count from 1), and no text before; make the column one type"
            )
    return batch


def _refuse_mixture(column: Any, low: int) -> None:
    """Name the first value of another type than the values before it."""
    first: type | None = None
    for row, value in enumerate(column if column.dtype == object else ()):
        if value is None or value != value:
            continue
        kind = float if type(value) is not bool and isinstance(value, Number) else type(value)
        first = first or kind
        if kind is not first:
            raise InputError(
                f"frame: column {column.name} mixes types, row {low + row + 1} is {value!r} among"
                f" {first.__name__} (rows count from 1); make the column one type"
            )


def frame_kind(value: Any) -> str | None:
    """What sort of frame this is, without importing any library; None for paths."""
    module, name = type(value).__module__.split(".")[0], type(value).__name__
    kinds = {
        ("pandas", "DataFrame"): "pandas",
        ("polars", "DataFrame"): "polars",
        ("polars", "LazyFrame"): "lazy",
        ("pyarrow", "Table"): "table",
        ("pyarrow", "RecordBatch"): "batch",
    }
    if module == "pyarrow" and name.endswith("Dataset"):
        return "dataset"
    return kinds.get((module, name))


def _slices(batch: Any, rows: int) -> Iterator[Any]:
    for low in range(0, batch.num_rows, rows):
        yield batch.slice(low, rows)


def _schema(file: Path) -> Any:
    kind = format_of(file)
    if kind == "parquet":
        with _parquet(file) as parquet:
            return parquet.schema_arrow
    if kind == "arrow":
        with _arrow(file) as (schema, _):
            return schema
    with (_csv if kind == "csv" else _ndjson)(file, None) as reader:
        return reader.schema


def _joined(table: Any) -> Any:
    pa = import_extra("pyarrow", "logs")
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


@contextlib.contextmanager
def _parquet(file: Path) -> Iterator[Any]:
    pq = import_extra("pyarrow.parquet", "logs")
    metadata = pq.read_metadata(file)
    sizes = [metadata.row_group(g).total_byte_size for g in range(metadata.num_row_groups)]
    # Large row groups are read page by page through a buffer: one may exceed the memory.
    parquet = pq.ParquetFile(
        file,
        metadata=metadata,
        page_checksum_verification=True,
        pre_buffer=False,
        buffer_size=_READ_BUFFER if max(sizes, default=0) > _LARGE_GROUP else 0,
    )
    try:
        yield parquet
    finally:
        parquet.close()


@contextlib.contextmanager
def _arrow(file: Path) -> Iterator[tuple[Any, Iterator[Any]]]:
    pa = import_extra("pyarrow", "logs")
    with file.open("rb") as raw:
        stream = raw.read(6) != b"ARROW1"
    with pa.OSFile(str(file)) as source:
        if stream:
            reader = pa.ipc.open_stream(source)
            yield reader.schema, iter(reader)
        else:
            reader = pa.ipc.open_file(source)
            yield reader.schema, map(reader.get_batch, range(reader.num_record_batches))


@contextlib.contextmanager
def _csv(file: Path, types: dict[str, Any] | None) -> Iterator[Any]:
    csv = import_extra("pyarrow.csv", "logs")
    tabs = ".tsv" in [suffix.lower() for suffix in file.suffixes]
    convert = csv.ConvertOptions()
    if types is not None:
        convert = csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            true_values=TRUE,
            false_values=FALSE,
            strings_can_be_null=True,
        )
    with csv.open_csv(
        file,
        read_options=csv.ReadOptions(block_size=TEXT_BLOCK if types else 1 << 20),
        parse_options=csv.ParseOptions(delimiter="\t" if tabs else ","),
        convert_options=convert,
    ) as reader:
        yield reader


@contextlib.contextmanager
def _ndjson(file: Path, types: dict[str, Any] | None) -> Iterator[Any]:
    pa, json = import_extra("pyarrow", "logs"), import_extra("pyarrow.json", "logs")
    parse = None
    if types is not None:
        parse = json.ParseOptions(
            explicit_schema=pa.schema(list(types.items())), unexpected_field_behavior="ignore"
        )
    block = TEXT_BLOCK if types else 1 << 20
    with (
        pa.input_stream(str(file)) as source,
        json.open_json(
            source, read_options=json.ReadOptions(block_size=block), parse_options=parse
        ) as reader,
    ):
        yield reader


def _text_types(sniffed: Any, kinds: Mapping[str, str], words: bool) -> dict[str, Any]:
    """The Arrow type that each column of a text file is parsed to; flags in CSV are words."""
    pa = import_extra("pyarrow", "logs")
    types: dict[str, Any] = {}
    for name, kind in kinds.items():
        seen = sniffed.field(name).type
        if kind == "float":
            types[name] = pa.float64()
        elif kind == "int":
            types[name] = seen if pa.types.is_floating(seen) else pa.int64()
        elif kind == "flag":
            types[name] = pa.bool_() if words or pa.types.is_null(seen) else seen
        else:
            types[name] = pa.float64() if pa.types.is_null(seen) else seen
    return types


def _cells(kinds: Mapping[str, str], types: Mapping[str, Any]) -> dict[str, str]:
    """What the cells of a text file have to be: digits alone where integers are parsed."""
    digits = {name for name, kind in types.items() if str(kind) == "int64"}
    strict = {"int": "digits", "any": "any digits"}
    return {
        name: strict.get(kind, kind) if name in digits else kind for name, kind in kinds.items()
    }


@contextlib.contextmanager
def _reading(file: Path, kinds: Mapping[str, str] | None = None) -> Iterator[None]:
    """Turn what Arrow and the system say about a file into one sentence."""
    pa = import_extra("pyarrow", "logs")
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError, OverflowError) as error:
        kind = format_of(file)
        if kind in ("csv", "ndjson"):
            bad = first_bad_cell(file, kind, kinds or {})
            if bad is not None:
                raise InputError(bad) from None
        if isinstance(error, UnicodeDecodeError) and kind in ("csv", "ndjson"):
            raise FormatError(
                f"{file}: is damaged or not in UTF-8 ({_short(error)}); save it as UTF-8, or restore"
                " it from a copy"
            ) from None
        if isinstance(error, OSError) and error.errno is not None:
            raise FormatError(f"{file}: cannot be read ({error.strerror})") from None
        raise FormatError(
            f"{file}: is damaged or not {kind} ({_short(error)}); {_REMEDY}"
        ) from None


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 160 else text[:157] + "…"

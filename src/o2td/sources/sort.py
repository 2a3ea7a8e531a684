"""Sorting a log by episode and step in bounded memory.

Rows are scattered into ranges of episodes, each small enough to sort in memory, and the sorted
ranges are written one after the other to a temporary parquet file. Every row carries the file and
row that it came from, so that messages name the original place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from o2td.errors import InputError
from o2td.sources.arrow import pa, pq
from o2td.sources.parts import Part

PART, ROW = "__o2td_part", "__o2td_row"
_RANGE_BYTES = 80 << 20  # bytes of rows that are sorted in memory at a time
_MAX_RANGES = 200
_SAMPLE = 100_000


def sorted_file(
    parts: Sequence[Part], kinds: Mapping[str, str], episode: str, order: str | None, folder: Path
) -> Path:
    """Write all rows of the parts, sorted by episode, then by `order`, then in file order."""
    schema = _common_schema(parts[0], kinds)
    bounds = _bounds(parts, episode, kinds[episode], _RANGE_BYTES // (8 * len(schema)))
    target = folder / "sorted.parquet"
    files = _scatter(parts, kinds, schema, episode, bounds, folder)
    with pq.ParquetWriter(
        target, schema, compression="lz4", write_page_checksum=True, write_statistics=False
    ) as writer:
        for file in files:
            with pa.OSFile(str(file)) as source, pa.ipc.open_stream(source) as stream:
                table = stream.read_all()
            keys = [
                _names(table.column(name).combine_chunks()) for name in (order, episode) if name
            ]
            # lexsort is stable: rows that compare equal keep their order.
            writer.write_table(table.take(pa.array(np.lexsort(keys))), row_group_size=1 << 16)
            file.unlink()
    return target


def _common_schema(part: Part, kinds: Mapping[str, str]) -> Any:
    """One schema for all parts: numbers widen to float64, names keep the first part's type."""
    first = part.schema()
    fields = []
    for name, kind in kinds.items():
        found = first.field(name).type
        if pa.types.is_dictionary(found):
            found = found.value_type
        wide = kind == "float" or pa.types.is_null(found)
        fields.append((name, pa.float64() if wide else found))
    return pa.schema([*fields, (PART, pa.int32()), (ROW, pa.int64())])


def _placed(parts: Sequence[Part], kinds: Mapping[str, str], schema: Any) -> Iterator[Any]:
    """All batches in the common schema, with the place of each row."""
    for number, part in enumerate(parts):
        first = 0
        for batch in part.batches(kinds, 1 << 16):
            n = batch.num_rows
            try:
                columns = [batch.column(one).cast(schema.field(one).type) for one in kinds]
            except pa.ArrowException as error:
                raise InputError(
                    f"{part.label}: a column's type differs from that of {parts[0].label}"
                    f" ({error}); write all files with the same types"
                ) from None
            place = [pa.array(np.full(n, number, np.int32)), pa.array(np.arange(first, first + n))]
            first += n
            yield pa.RecordBatch.from_arrays([*columns, *place], schema=schema)


def _bounds(parts: Sequence[Part], episode: str, kind: str, size: int) -> Any:
    """Episodes that split the log into ranges of about `size` rows, from an even sample."""
    sample: list[Any] = []
    rows, every = 0, 1
    for part in parts:
        for batch in part.batches({episode: kind}, 1 << 16):
            column = batch.column(episode)
            if column.null_count:
                raise InputError(
                    f"{part.label}: column {episode} has missing values, so it cannot be sorted;"
                    " fill them in"
                )
            sample += _names(column)[(-rows) % every :: every].tolist()
            rows += batch.num_rows
            while len(sample) > 2 * _SAMPLE:
                sample, every = sample[::2], 2 * every
    ranges = min(_MAX_RANGES, 1 + rows // max(1, size))
    ordered = np.sort(np.array(sample))
    cuts = [ordered[len(ordered) * k // ranges] for k in range(1, ranges)]
    return np.unique(np.array(cuts)) if cuts else ordered[:0]


def _names(column: Any) -> Any:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype != object:
        return values
    # Bytes that are not valid text (another encoding) are names too.
    texts = (v.decode(errors="backslashreplace") if isinstance(v, bytes) else v for v in values)
    return np.array([str(text) for text in texts], dtype=str)


def _scatter(
    parts: Sequence[Part],
    kinds: Mapping[str, str],
    schema: Any,
    episode: str,
    bounds: Any,
    folder: Path,
) -> list[Path]:
    """One file per range of episodes, rows in their original order."""
    files = [folder / f"range-{k}.arrows" for k in range(len(bounds) + 1)]
    sinks = [pa.OSFile(str(file), "wb") for file in files]
    writers = [pa.ipc.new_stream(sink, schema) for sink in sinks]
    try:
        for batch in _placed(parts, kinds, schema):
            place = np.searchsorted(bounds, _names(batch.column(episode)), side="right")
            for k in np.unique(place):
                rows = pa.array(np.flatnonzero(place == k))
                writers[k].write_batch(batch.take(rows))
    finally:
        for writer, sink in zip(writers, sinks, strict=True):
            writer.close()
            sink.close()
    return files

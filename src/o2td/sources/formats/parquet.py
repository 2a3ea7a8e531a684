"""Parquet files: page by page if row groups are large, checksums verified if there are any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from o2td.sources.arrow import pq
from o2td.sources.checksums import has_checksums
from o2td.sources.format import Format

_READ_BUFFER = 1 << 18
_LARGE_GROUP = 64 << 20  # bytes


class Parquet(Format):
    """A parquet file."""

    name = "parquet"
    suffixes = (".parquet", ".pq")

    def schema(self) -> Any:
        """The schema in its footer."""
        with self._open() as file:
            return file.schema_arrow

    def batches(self, columns: Mapping[str, str], rows: int) -> Iterator[Any]:
        """Batches across row groups."""
        with self._open() as file:
            yield from file.iter_batches(batch_size=rows, columns=list(columns))

    def verified(self, columns: set[str]) -> bool:
        """Checksums of pages are always verified if there are any."""
        with self._open() as file, Path(self.place).open("rb") as raw:
            return has_checksums(raw, file.metadata, columns)

    @contextmanager
    def _open(self) -> Iterator[Any]:
        metadata = pq.read_metadata(self.place)
        sizes = [metadata.row_group(g).total_byte_size for g in range(metadata.num_row_groups)]
        # Large row groups are read page by page through a buffer: one may exceed memory.
        file = pq.ParquetFile(
            self.place,
            metadata=metadata,
            page_checksum_verification=True,
            pre_buffer=False,
            buffer_size=_READ_BUFFER if max(sizes, default=0) > _LARGE_GROUP else 0,
        )
        try:
            yield file
        finally:
            file.close()

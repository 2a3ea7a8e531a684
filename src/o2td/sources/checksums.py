"""Whether a parquet file carries page checksums, read from its own page headers.

A reader verifies checksums only if they are present. The header of a page is a Thrift struct in the
compact protocol whose fourth field, optional, is the CRC-32 of the page (parquet.thrift,
`PageHeader`); the first three are 32-bit integers.
"""

from __future__ import annotations

from typing import Any, BinaryIO

_HEADER_BYTES = 64
_INT32 = 5


def has_checksums(file: BinaryIO, metadata: Any, columns: set[str]) -> bool:
    """Whether the first page of every chunk of these columns carries a checksum."""
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for index in range(row_group.num_columns):
            chunk = row_group.column(index)
            names = {chunk.path_in_schema, chunk.path_in_schema.split(".")[0]}
            if not names & columns or not chunk.total_compressed_size:
                continue
            offsets = (chunk.dictionary_page_offset, chunk.data_page_offset)
            file.seek(min(offset for offset in offsets if offset is not None))
            if not _page_has_checksum(file.read(_HEADER_BYTES)):
                return False
    return True


def _page_has_checksum(header: bytes) -> bool:
    """Walk the integer fields of a compact Thrift struct until the fourth, or another type."""
    position = field = 0
    while position < len(header):
        kind, delta = header[position] & 0x0F, header[position] >> 4
        if kind != _INT32 or delta == 0:
            return False
        field += delta
        if field >= 4:
            return field == 4
        position += 1
        while position < len(header) and header[position] & 0x80:  # a varint's further bytes
            position += 1
        position += 1
    return False

"""Arrow files and streams, also called Feather."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from o2td.sources.arrow import pa
from o2td.sources.format import Format


class Arrow(Format):
    """An Arrow file or stream; neither carries checksums."""

    name = "arrow"
    suffixes = (".arrow", ".feather", ".ipc", ".arrows")

    def schema(self) -> Any:
        """The schema at its head."""
        with self._open() as (schema, _):
            return schema

    def batches(self, columns: Mapping[str, str], rows: int) -> Iterator[Any]:
        """The batches as written, each validated."""
        with self._open() as (_, batches):
            for batch in batches:
                batch.validate(full=True)
                yield batch.select(list(columns))

    @contextmanager
    def _open(self) -> Iterator[tuple[Any, Iterator[Any]]]:
        with Path(self.place).open("rb") as raw:
            stream = raw.read(6) != b"ARROW1"
        with pa.OSFile(str(self.place)) as source:
            if stream:
                reader = pa.ipc.open_stream(source)
                yield reader.schema, iter(reader)
            else:
                reader = pa.ipc.open_file(source)
                yield reader.schema, map(reader.get_batch, range(reader.num_record_batches))

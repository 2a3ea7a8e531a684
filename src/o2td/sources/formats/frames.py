"""Frames and tables in memory: pandas, polars (also lazy) and pyarrow (also datasets)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Number
from typing import Any, ClassVar

from o2td.errors import InputError
from o2td.sources.arrow import pa
from o2td.sources.format import Format


class _Frame(Format):
    """An object of one library, of certain types."""

    types: ClassVar[tuple[str, ...]]

    @classmethod
    def takes(cls, value: Any) -> bool:
        """Recognise it by the names of library and type."""
        kind = type(value)
        return kind.__module__.split(".")[0] == cls.name and kind.__name__ in cls.types

    @property
    def label(self) -> str:
        """The same for all."""
        return "frame"

    def verified(self, columns: set[str]) -> bool:
        """Memory needs no checksums."""
        return True


class PolarsFrame(_Frame):
    """A polars frame; a lazy one is read in batches."""

    name = "polars"
    types = ("DataFrame", "LazyFrame")

    def schema(self) -> Any:
        """The schema as Arrow types."""
        return self.place.lazy().clear().collect().to_arrow().schema

    def batches(self, columns: Mapping[str, str], rows: int) -> Iterator[Any]:
        """Slices of the frame, or batches as polars makes them."""
        frame = self.place.select(list(columns))
        pieces = [frame]
        if hasattr(frame, "collect_batches"):
            pieces = frame.collect_batches(chunk_size=rows, maintain_order=True)
        for piece in pieces:
            for low in range(0, piece.height, rows):
                yield from piece.slice(low, rows).to_arrow().combine_chunks().to_batches()


class ArrowTable(_Frame):
    """A pyarrow table, record batch or dataset."""

    name = "pyarrow"
    types = ("Table", "RecordBatch", "FileSystemDataset", "InMemoryDataset", "UnionDataset")

    def schema(self) -> Any:
        """Its own schema."""
        return self.place.schema

    def batches(self, columns: Mapping[str, str], rows: int) -> Iterator[Any]:
        """Its own batches."""
        names = list(columns)
        if hasattr(self.place, "scanner"):
            yield from self.place.scanner(columns=names, batch_size=rows).to_batches()
        elif hasattr(self.place, "to_batches"):
            yield from self.place.select(names).to_batches(rows)
        else:
            yield self.place.select(names)


class PandasFrame(_Frame):
    """A pandas frame; a column of numbers must hold numbers throughout."""

    name = "pandas"
    types = ("DataFrame",)

    def __init__(self, place: Any) -> None:
        super().__init__(place)
        if not all(isinstance(name, str) for name in place.columns):
            raise InputError("frame: its column names are not all strings; rename the columns")
        if not place.columns.is_unique:
            twice = place.columns[place.columns.duplicated()][0]
            raise InputError(f"frame: two columns are called {twice}; rename one")

    def schema(self) -> Any:
        """Types of the first rows; null if unreadable, which matters only if the column is used."""
        fields = []
        head = self.place.iloc[:1000]
        for name in head.columns:
            try:
                kind = pa.Array.from_pandas(head[name]).type
            except (pa.ArrowException, TypeError, ValueError):
                kind = pa.null()
            fields.append(pa.field(name, kind))
        return pa.schema(fields)

    def batches(self, columns: Mapping[str, str], rows: int) -> Iterator[Any]:
        """Slices of the frame."""
        first, frame = self.schema(), self.place[list(columns)]
        for low in range(0, len(frame), rows):
            yield _batch(frame.iloc[low : low + rows], low, first)


def _batch(frame: Any, low: int, first: Any) -> Any:
    """Rows of a pandas frame from row `low`; text after numbers is refused."""
    try:
        batch = pa.RecordBatch.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        for name in frame.columns:
            _refuse_mixture(frame[name], low)
        said = " ".join(str(error).split())
        said = said if len(said) <= 160 else said[:157] + "…"
        raise InputError(
            f"frame: cannot be read as a table ({said}); convert the column to numbers"
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

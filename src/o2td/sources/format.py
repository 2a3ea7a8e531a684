"""The interface of log formats: files or objects that are read as Arrow record batches.

A format is a class in one file. o2td's own are in `o2td.sources.formats`; another package declares
its own through an entry point in the group ``o2td.formats``::

    [project.entry-points."o2td.formats"]
    sqlite = "my_package:Sqlite"

An instance of the class is one opened file (or frame, or data set).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar


class Format(ABC):
    """One file or object that holds a log.

    A subclass declares what it reads in class attributes, and implements `schema` and `batches`. An
    error from Arrow or the system while these run becomes a sentence about the file; an
    `InputError` or `FormatError` that they raise themselves is passed on unchanged.

    Attributes
    ----------
    name : str
        Name of the format in messages.
    suffixes : tuple
        File name suffixes, in lower case with the dot.
    scheme : str
        Prefix before a colon, for logs that are not files: ``minari:door/human-v2``.
    text : bool
        Whether it is plain text, which is also read from .gz, .bz2 and .zst.
    threads : bool
        Whether another thread may read ahead.

    Parameters
    ----------
    place
        The path, the object, or the text after the scheme.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from o2td import sources
    >>> class Pairs(sources.Format):
    ...     name, suffixes = "pairs", (".pairs",)
    ...     def schema(self):
    ...         return pa.schema({"state": pa.int64(), "reward": pa.float64()})
    ...     def batches(self, columns, rows):
    ...         pairs = [line.split() for line in open(self.place)]
    ...         table = {"state": [int(s) for s, _ in pairs],
    ...                  "reward": [float(r) for _, r in pairs]}
    ...         batch = pa.RecordBatch.from_pydict(table, schema=self.schema())
    ...         yield batch.select(list(columns))
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]] = ()
    scheme: ClassVar[str] = ""
    text: ClassVar[bool] = False
    threads: ClassVar[bool] = True

    def __init__(self, place: Any) -> None:
        self.place = place

    @classmethod
    def takes(cls, value: Any) -> bool:
        """Whether an object that is not a path is a log of this format; imports no library."""
        return False

    @property
    def label(self) -> str:
        """The name of this file or object in messages."""
        return str(self.place)

    @abstractmethod
    def schema(self) -> Any:
        """The names and Arrow types of all columns."""

    @abstractmethod
    def batches(self, columns: Mapping[str, str], rows: int) -> Iterator[Any]:
        """Arrow record batches of some columns, in order, with about `rows` rows in memory at once.

        `columns` gives the type each is read as: "float", "int", "flag" (true or false) or "any".
        """

    def verified(self, columns: set[str]) -> bool:
        """Whether checksums protect these columns against silent damage, and were verified."""
        return False

    def bad_cell(self, column: str, kind: str) -> str | None:
        """A sentence on the first cell that is not of this kind, if the format can find it."""
        return None

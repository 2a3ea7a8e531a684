"""A package of its own that teaches o2td to read logs from SQLite: one file, public names only."""

import sqlite3

import pyarrow as pa

from o2td.errors import InputError
from o2td.sources import Format

TYPES = {"INTEGER": pa.int64(), "REAL": pa.float64(), "TEXT": pa.string()}


class Sqlite(Format):
    """The table `log` of a database, in the order of its rows."""

    name = "sqlite"
    suffixes = (".sqlite", ".db")

    def _open(self):
        return sqlite3.connect(f"file:{self.place}?mode=ro", uri=True, check_same_thread=False)

    def schema(self):
        with self._open() as database:
            found = database.execute("pragma table_info(log)").fetchall()
        if not found:
            raise InputError(f"{self.label}: has no table log; call the table so")
        return pa.schema([(name, TYPES[kind]) for _, name, kind, *_ in found])

    def batches(self, columns, rows):
        schema = pa.schema([self.schema().field(name) for name in columns])
        names = ", ".join(f'"{name}"' for name in columns)
        with self._open() as database:
            cursor = database.execute(f"select {names} from log order by rowid")  # noqa: S608
            while found := cursor.fetchmany(rows):
                arrays = map(pa.array, zip(*found, strict=True), schema.types)
                yield pa.RecordBatch.from_arrays(list(arrays), schema=schema)

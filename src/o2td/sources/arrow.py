"""Arrow, imported when it is first used: naming a log does not need it yet."""

from __future__ import annotations

from o2td.errors import LateModule

pa = LateModule("pyarrow", "logs")
pc = LateModule("pyarrow.compute", "logs")
pq = LateModule("pyarrow.parquet", "logs")

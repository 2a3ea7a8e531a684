"""Where flat columns come from."""

from __future__ import annotations

import pyarrow as pa

from o2td.sources import Columns
from o2td.sources.nested import Nested


def test_columns_that_only_later_rows_have_come_from_themselves():
    first = pa.RecordBatch.from_pydict({"reward": [[1.0, 2.0]], "obs": [[0.1, 0.2]], "user": [3]})
    schema = first.schema.append(pa.field("later", pa.float64()))
    found = Nested(schema, first, Columns(), "log")
    assert found.episodes
    assert found.schema.names == ["reward", "obs", "user", "start", "later"]
    assert found.source == {
        "reward": "reward", "obs": "obs", "user": "user", "start": "reward", "later": "later"
    }  # fmt: skip
    assert found.needed(["later", "user"]) == ["later", "user", "reward"]

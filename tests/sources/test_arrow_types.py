"""Text that polars writes as views, categories of views and run-end encodings read as plain text."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from o2td import sources
from o2td.sources.arrow_types import plain_batch, plain_schema

CHANGES = {
    "text": lambda column: column,
    "categories": lambda column: column.cast(pl.Categorical),
    "enum": lambda column: column.cast(pl.Enum(["0", "1", "2", "3", "4", "5"])),
    "list": lambda column: pl.concat_list(column),
    "struct": lambda column: pl.struct(column.alias("name")),
}
CASES = [
    (role, change)
    for role in ("episode", "state", "action", "obs_0")
    for change in CHANGES
    if role != "action" or change not in ("list", "struct")
]
NEWEST = pl.CompatLevel.newest()


def _log(role, change):
    log = pl.DataFrame(
        {
            "episode": np.repeat([0, 1, 2], 2),
            "state": [0, 1, 1, 0, 0, 1],
            "action": [0, 1, 0, 1, 0, 1],
            "reward": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
            "terminated": [False, True] * 3,
            "behavior_prob": 0.5,
        }
    )
    log = log.with_columns(target_prob_0=0.3, target_prob_1=0.7)
    column = CHANGES[change](pl.col("state" if role == "obs_0" else role).cast(pl.String))
    log = log.with_columns(column.alias(role))
    if role == "obs_0":
        return log.drop("state")
    return log


@pytest.mark.parametrize(("role", "change"), CASES)
@pytest.mark.parametrize("sort", [False, True])
def test_views_read_like_parquet(tmp_path, joined, same, role, change, sort):
    log = _log(role, change)
    log.write_parquet(tmp_path / "log.parquet")
    log.write_ipc(tmp_path / "log.arrow", compat_level=NEWEST)
    log.write_ipc_stream(tmp_path / "stream.arrow", compat_level=NEWEST)
    want = joined(sources.open_logs(tmp_path / "log.parquet", discount=0.9, sort=sort))
    table = log.to_arrow(compat_level=NEWEST)
    for given in (tmp_path / "log.arrow", tmp_path / "stream.arrow", table):
        same(want, joined(sources.open_logs(given, discount=0.9, sort=sort)))


VIEWS = {
    "string": pa.array(["a", None, "long enough to leave the view"], pa.string_view()),
    "binary": pa.array([b"a", None, b"b"], pa.binary_view()),
    "list": pa.array([["a"], None, ["b", None]], pa.list_view(pa.string_view())),
    "large list": pa.array([[1.0], None, []], pa.large_list_view(pa.float64())),
    "fixed list": pa.array([["a", "b"], None, ["c", None]], pa.list_(pa.string_view(), 2)),
    "struct": pa.array([{"a": "x"}, None, {"a": None}], pa.struct({"a": pa.string_view()})),
    "runs": pc.run_end_encode(pa.array(["a", "a", None])),
    "dictionary": pa.DictionaryArray.from_arrays(
        pa.array([1, None, 0]), pa.array(["a", "b"], pa.string_view()), ordered=True
    ),
}


@pytest.mark.parametrize("kind", list(VIEWS))
def test_every_view_keeps_its_values(kind):
    batch = pa.RecordBatch.from_arrays([VIEWS[kind], pa.array([1, 2, 3])], ["one", "two"])
    for piece in (batch, batch.slice(1)):
        made = plain_batch(piece)
        assert made.to_pylist() == piece.to_pylist()
        assert made.schema == plain_schema(batch.schema)
        assert plain_batch(made) is made
        assert not any(word in str(made.schema.field("one").type) for word in ("view", "run_end"))


def test_plain_batches_are_not_copied():
    batch = pa.RecordBatch.from_pydict({"a": ["x"], "b": [[1.0]]})
    assert plain_batch(batch) is batch

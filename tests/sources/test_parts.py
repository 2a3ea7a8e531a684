"""Files that paths name."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest

from o2td.errors import InputError
from o2td.sources import Format, open_logs
from o2td.sources.parts import Part, files_of


def test_paths_that_name_nothing(tmp_path):
    with pytest.raises(InputError, match="no path was given; name files, folders or globs"):
        files_of([])
    for empty in ("", [""], [str(tmp_path), ""]):
        with pytest.raises(InputError, match="one of the paths is empty; name a file, a folder"):
            files_of(empty)
    with pytest.raises(InputError, match="no log files in this folder; it needs"):
        files_of(tmp_path)


def test_a_pattern_with_two_stars_goes_into_all_folders(tmp_path):
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "a", deep):
        (folder / "log.csv").write_text("episode,reward\n0,1\n")
    found = files_of(str(tmp_path / "**" / "*.csv"))
    assert sorted(part.label for part in found) == sorted(map(str, tmp_path.rglob("*.csv")))
    assert len(found) == 3
    assert len(files_of(str(tmp_path / "*.csv"))) == 1


@pytest.mark.parametrize("format_", ["parquet", "arrow"])
def test_a_nested_log_without_rows_is_refused_in_a_sentence(tmp_path, format_):
    empty = pl.DataFrame(schema={"obs": pl.List(pl.Float64), "reward": pl.List(pl.Float64)})
    file = tmp_path / f"log.{format_}"
    empty.write_parquet(file) if format_ == "parquet" else empty.write_ipc(file)
    with pytest.raises(InputError):
        open_logs(file, discount=0.9).scan()


class Asked(Format):
    """A table in memory that keeps the kinds of columns which it was asked for."""

    name = "asked"

    def __init__(self, place):
        super().__init__(place)
        self.kinds = []

    def schema(self):
        return self.place.schema

    def batches(self, columns, rows):
        self.kinds.append(dict(columns))
        yield from self.place.select(list(columns)).to_batches(max_chunksize=rows)


def test_a_column_is_read_as_the_kind_that_is_asked_of_its_parts():
    """A vector as that of its numbers, and rewards, which tell how long episodes are, as they are."""
    table = pa.table({"obs": [[1.0, 2.0]], "reward": [1.0], "state": [3], "other": [0]})
    asked = Asked(table)
    kinds = {"obs_1": "float", "state": "int", "obs_0": "float"}
    (batch,) = Part(asked).batches(kinds, 10)
    assert batch.to_pylist() == [{"obs_1": 2.0, "state": 3, "obs_0": 1.0}]
    assert asked.kinds[-1] == {"obs": "float", "state": "int"}
    episodes = Asked(pa.table({"obs": [[[1.0], [2.0]]], "reward": [[1.0, 0.5]], "done": [True]}))
    (batch,) = Part(episodes).batches({"done": "flag", "obs_0": "float"}, 10)
    assert batch.to_pylist() == [{"done": False, "obs_0": 1.0}, {"done": True, "obs_0": 2.0}]
    assert episodes.kinds[-1] == {"done": "flag", "obs": "float", "reward": "any"}

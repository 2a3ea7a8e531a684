"""Files that paths name."""

from __future__ import annotations

import polars as pl
import pytest

from o2td.errors import InputError
from o2td.sources import open_logs
from o2td.sources.parts import files_of


def test_paths_that_name_nothing(tmp_path):
    with pytest.raises(InputError, match="no path was given; name files, folders or globs"):
        files_of([])
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

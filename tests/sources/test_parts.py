"""Files that paths name."""

from __future__ import annotations

import pytest

from o2td.errors import InputError
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

"""The folder of an evaluation: whole or not there, and nothing of the user's is lost."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from o2td.errors import InputError, O2TDError
from o2td.evaluation.output import check_folder, json_text, write_folder


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_new_folder_appears_with_all_its_files(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "er"
    write_folder(out, {"a.txt": b"1", "b.txt": lambda path: path.write_text("2") and None})
    assert names(out) == {"a.txt", "b.txt"}
    assert names(out.parent) == {"er"}


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(O2TDError, match="No space left"):
        write_folder(tmp_path / "new", {"a.txt": b"1", "b.txt": fail})
    assert names(tmp_path) == set()
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.txt").write_text("before")
    with pytest.raises(O2TDError):
        write_folder(tmp_path / "old", {"a.txt": b"1", "b.txt": fail})
    assert (tmp_path / "old" / "a.txt").read_text() == "before"
    assert names(tmp_path) == {"old"}


def test_an_old_folder_keeps_what_else_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "report.html").write_text("old")
    write_folder(tmp_path, {"report.html": b"new"})
    assert names(tmp_path) == {"notes.txt", "report.html"}
    assert (tmp_path / "report.html").read_text() == "new"


def test_a_folder_with_something_in_it_needs_force(tmp_path: Path) -> None:
    check_folder(tmp_path, force=False)
    check_folder(tmp_path / "not" / "there", force=False)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="--force"):
        check_folder(tmp_path, force=False)
    check_folder(tmp_path, force=True)
    with pytest.raises(InputError, match="is a file"):
        check_folder(tmp_path / "notes.txt", force=True)
    with pytest.raises(InputError, match="cannot be written"):
        check_folder(tmp_path / "notes.txt" / "below", force=True)


def test_json_has_no_words_that_json_does_not_know() -> None:
    answer = {
        "a": float("nan"),
        "b": [np.float64("inf"), np.int64(3)],
        "c": np.array([1.5, np.nan]),
    }
    assert json.loads(json_text(answer)) == {"a": None, "b": [None, 3], "c": [1.5, None]}

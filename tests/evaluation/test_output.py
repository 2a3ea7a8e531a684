"""The folder of an evaluation: whole or not there, and nothing of the user's is lost."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest

from o2td.documents import finite
from o2td.errors import InputError, O2TDError, spoken_to_the_command_line
from o2td.evaluation import output
from o2td.evaluation.output import check_folder, json_text, write_folder, write_page


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


OLD = {"evaluation.json": b"old", "model.npz": b"old", "report.html": b"old"}
NEW = {"evaluation.json": b"new", "report.html": b"new"}


def test_an_older_evaluation_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """A model that the new one does not have goes too; the folder's rights stay."""
    out = tmp_path / "out"
    write_folder(out, OLD)
    out.chmod(0o750)
    before = out.stat()
    write_folder(out, NEW)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == NEW
    assert stat.S_IMODE(out.stat().st_mode) == stat.S_IMODE(before.st_mode)
    assert names(tmp_path) == {"out"}


@pytest.mark.parametrize("how", ["notes", "folder", "link", "inside", "unable"])
def test_where_folders_cannot_swap_files_go_one_by_one(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is the user's stays, and so does the folder that a link or a shell stands in."""
    out = tmp_path / "out"
    write_folder(out, OLD)
    kept = {}
    if how == "notes":
        kept["notes.txt"] = b"mine"
        (out / "notes.txt").write_bytes(b"mine")
    elif how == "folder":
        (out / "mine").mkdir()
        (out / "mine" / "a").write_bytes(b"1")
    elif how == "link":
        (tmp_path / "link").symlink_to(out)
    elif how == "inside":
        monkeypatch.chdir(out)
    else:
        monkeypatch.setattr(output, "exchange", lambda *_: False)
    before = out.stat().st_ino
    write_folder(tmp_path / "link" if how == "link" else out, NEW)
    assert out.stat().st_ino == before
    found = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    assert found == {**NEW, **kept}
    if how == "folder":
        assert (out / "mine" / "a").read_bytes() == b"1"
    assert names(tmp_path) - {"link"} == {"out"}


def test_a_model_of_the_users_is_not_taken_for_that_of_an_evaluation(tmp_path: Path) -> None:
    (tmp_path / "model.npz").write_bytes(b"mine")
    write_folder(tmp_path, NEW)
    assert (tmp_path / "model.npz").read_bytes() == b"mine"


def test_what_comes_into_the_folder_meanwhile_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    write_folder(out, OLD)
    real = output.exchange

    def late(fresh: Path, folder: Path) -> bool:
        (folder / "notes.txt").write_text("mine")
        return real(fresh, folder)

    monkeypatch.setattr(output, "exchange", late)
    write_folder(out, NEW)
    assert names(out) == {*NEW, "notes.txt"}


def test_a_folder_with_something_in_it_needs_force(tmp_path: Path) -> None:
    check_folder(tmp_path, force=False)
    check_folder(tmp_path / "not" / "there", force=False)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="force=True"):
        check_folder(tmp_path, force=False)
    with spoken_to_the_command_line(), pytest.raises(InputError, match="--force"):
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
    assert finite(answer) == {"a": None, "b": [None, 3], "c": [1.5, None]}


def test_json_and_pages(tmp_path: Path) -> None:
    assert json_text({"a": [1, None]}) == '{"a": [1, null]}'
    assert json_text({"a": 1}, 0) == '{\n"a": 1\n}'
    assert json_text({"a": 1}, 2) == '{\n  "a": 1\n}'
    for bad in (-1, 101, 1.5):
        with pytest.raises(InputError, match="indent"):
            json_text({"a": 1}, bad)
    assert write_page(tmp_path / "page.html", b"<p>") == tmp_path / "page.html"
    assert (tmp_path / "page.html").read_bytes() == b"<p>"
    with pytest.raises(InputError, match=r"none: there is no such folder; create it first"):
        write_page(tmp_path / "none" / "page.html", b"<p>")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(O2TDError, match=r"folder\.html: cannot be written .*; nothing was changed"):
        write_page(tmp_path / "folder.html", b"<p>")


@pytest.mark.parametrize("old", ["none", "files", "evaluation"])
def test_what_was_written_is_put_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str
) -> None:
    """The folder that holds the name, and the folder itself where files went one by one."""
    out = tmp_path / "out"
    if old != "none":
        write_folder(out, OLD)
    if old == "files":
        (out / "notes.txt").write_text("mine")
    synced: list[Path] = []
    monkeypatch.setattr(output, "sync_folder", synced.append)
    write_folder(out, NEW)
    assert synced == ([out, tmp_path] if old == "files" else [tmp_path])

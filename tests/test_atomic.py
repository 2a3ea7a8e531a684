"""Atomic files: whole or absent, and live temporaries left alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from o2td.atomic import exchange, folder_lock, replacing, sweep_temporaries, write_bytes
from o2td.errors import InputError

WRITER = """
import os, sys
from o2td.atomic import write_bytes
real = os.fsync
def pause(descriptor):
    print("ready", flush=True)
    sys.stdin.readline()
    real(descriptor)
os.fsync = pause
write_bytes(sys.argv[1], b"whole")
"""


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_bytes(tmp_path / "a", b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_bytes(tmp_path / "a", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_sweep_spares_a_writer_at_work_and_clears_after_a_dead_one(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path / "a")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        assert sweep_temporaries(tmp_path) == 0
        assert len(list(tmp_path.iterdir())) == 1
        writer.kill()
    assert sweep_temporaries(tmp_path) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_taken_away_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, taken = os.fsync, []

    def thief(descriptor: int) -> None:
        real(descriptor)
        if not taken:
            taken.extend(path.unlink() for path in tmp_path.glob(".*"))

    monkeypatch.setattr(os, "fsync", thief)
    write_bytes(tmp_path / "a", b"whole")
    assert taken
    assert (tmp_path / "a").read_bytes() == b"whole"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_file_does_not_take_the_place_of_a_device_or_a_pipe(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for one in (pipe, link):
        with pytest.raises(InputError, match="is a device or a pipe, not a file; name a file"):
            write_bytes(one, b"42")
        with pytest.raises(InputError, match="is a device or a pipe"), replacing(one):
            pass
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_bytes(tmp_path / "none" / "a", b"")


def test_the_folder_lock_keeps_others_out(tmp_path: Path) -> None:
    take = f"from o2td.atomic import folder_lock\nwith folder_lock({str(tmp_path)!r}): print('in')"
    with folder_lock(tmp_path):
        other = subprocess.Popen([sys.executable, "-c", take], stdout=subprocess.PIPE, text=True)
        with pytest.raises(subprocess.TimeoutExpired):
            other.communicate(timeout=1.5)
    assert other.communicate(timeout=30)[0] == "in\n"


@pytest.mark.skipif(sys.platform != "linux", reason="no other system swaps names in one step")
def test_two_folders_swap_their_names(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    if not exchange(tmp_path / "a", str(tmp_path / "b")):
        pytest.skip("this file system does not either")
    assert [(tmp_path / name / "file").read_text() for name in ("a", "b")] == ["b", "a"]


def test_what_cannot_swap_stays(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert not exchange(tmp_path / "a", tmp_path / "missing")
    assert not exchange(tmp_path / "missing", tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]

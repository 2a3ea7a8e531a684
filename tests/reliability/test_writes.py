"""Files of every kind against kill -9, a full disk and a folder that cannot be written to."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import o2td
from o2td import domains, evaluation, sources
from o2td.cli import main
from o2td.errors import O2TDError

ROOT = Path(__file__).parents[2]
SOURCE = Path(o2td.__file__).parent


def writing(*arguments: Any) -> list[str]:
    command = [sys.executable, "-m", "tests.reliability.writing", *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=500, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_killed_at_every_call_of_every_write(tmp_path: Path) -> None:
    """Before, within and after each write, fsync and rename, of files that are new and replaced."""
    said = writing(tmp_path, "points")
    assert len(said) == 2 * 7
    kills = {line.partition(":")[0]: int(line.split()[-2]) for line in said}
    assert min(kills.values()) >= 6
    assert min(kills[f"evaluation {how}"] for how in ("new", "replaced")) >= 20
    assert min(kills[f"comparison {how}"] for how in ("new", "replaced")) >= 12


@pytest.mark.parametrize("kills", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_killed_at_random_moments(tmp_path: Path, kills: int) -> None:
    (line,) = writing(tmp_path, "moments", kills, 0)
    assert line.startswith(f"killed at {kills} moments")
    assert int(line.split()[-3]) > 0


# Calls that write a file by its name and may. All else goes through `o2td.atomic`.
ALLOWED = {
    ("sources/sort.py", "ParquetWriter"): "in a temporary folder of its own",
    ("archive.py", "open"): "a member of a zip that is in memory",
    ("sources/write.py", "ParquetWriter"): "into a file of o2td.atomic",
    ("experiments/files.py", "ParquetWriter"): "in memory",
    ("evaluation/output.py", "ParquetWriter"): "into a file of o2td.atomic",
    ("evaluation/output.py", "write_parquet"): "the one defined there",
}
WRITERS = {"write_text", "savez", "savez_compressed", "tofile", "savetxt", "ParquetWriter"}
IN_MEMORY = ("stream", "buffer", "png")


def writes_by_name(call: ast.Call, name: str) -> bool:
    if name == "open":
        given = [*call.args, *(word.value for word in call.keywords)]
        modes = [one.value for one in given if isinstance(one, ast.Constant)]
        return any(str(mode).strip("bt+") in ("w", "a", "x") for mode in modes)
    if name in ("savefig", "write_parquet", "write_csv") and call.args:
        return ast.unparse(call.args[0]) not in IN_MEMORY
    return name in WRITERS


def test_no_file_is_written_past_the_atomic_ones() -> None:
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if writes_by_name(node, name):
                    found.add((path.relative_to(SOURCE).as_posix(), name))
    assert found <= set(ALLOWED), found - set(ALLOWED)


# -- a disk that is full ---------------------------------------------------------------------------


@contextlib.contextmanager
def room(size: int) -> Iterator[None]:
    """No file may grow beyond `size` bytes: the system refuses, in the middle of a write."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def rows(n: int = 4000) -> Any:
    return domains.random_walk().sample(n, seed=0)


def log_chunks(folder: Path) -> list[Any]:
    lines = ["episode,step,state,reward,terminated,rho"]
    lines += [f"{k // 5},{k % 5},{k % 3},{k * 0.37},{k % 5 == 4},1.0" for k in range(2000)]
    (folder / "log.csv").write_text("\n".join(lines))
    return list(sources.open_logs(folder / "log.csv", discount=0.9).chunks())


def test_a_full_disk_is_one_sentence_and_the_old_file_stays(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    chunks, learner = log_chunks(tmp_path / "in"), o2td.TD(step_size=0.1).partial_fit(rows())
    solver = o2td.LSTD().fit(rows())
    answer = evaluation.evaluate(tmp_path / "in" / "log.csv", 0.9, methods="lstd", lanes=0)
    writers: dict[str, Callable[[Path], Any]] = {
        "model.npz": learner.save,
        "solver.npz": solver.save,
        "log.parquet": lambda path: sources.write_logs(chunks, path),
        "folder": answer.save,
    }
    for old in (False, True):
        for name, write in writers.items():
            target = tmp_path / name
            if old and name != "folder":
                target.write_bytes(b"old")
            with room(700), pytest.raises(O2TDError) as caught:
                write(target)
            assert "cannot be written (File too large)" in str(caught.value), name
            assert name in str(caught.value)
            left = {path.name for path in tmp_path.iterdir()} - {"in"}
            assert left == ({name} if old and name != "folder" else set()), name
            if left:
                assert target.read_bytes() == b"old"
                target.unlink()


def shuffled(folder: Path, rows: int) -> Path:
    draw = random.Random(0)  # noqa: S311
    lines = [f"{k // 5},{k % 5},{k % 3},{k * 0.37},{k % 5 == 4},1.0" for k in range(rows)]
    draw.shuffle(lines)
    file = folder / "shuffled.csv"
    file.write_text("\n".join(["episode,step,state,reward,terminated,rho", *lines]))
    return file


def test_no_room_for_a_sorted_log_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = shuffled(tmp_path, 5000)
    (tmp_path / "place").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "place"))
    source = sources.open_logs(file, discount=0.9, sort=True)
    with (
        room(2000),
        pytest.raises(O2TDError, match=r"place: the sorted log.*File too large.*TMPDIR"),
    ):
        list(source.chunks())
    assert not list((tmp_path / "place").iterdir())
    assert sum(len(chunk.reward) for chunk in source.chunks()) == 5000


def _written(place: Path) -> bool:
    """Whether any file there has contents; some may be gone before they are looked at."""
    with contextlib.suppress(FileNotFoundError):
        return any(path.stat().st_size for path in place.rglob("*"))
    return False


@pytest.mark.slow
def test_killed_while_sorting(tmp_path: Path) -> None:
    """The log is as it was, and the next run does not care what the killed one left."""
    file = shuffled(tmp_path, 500_000)
    before, place = file.read_bytes(), tmp_path / "place"
    place.mkdir()
    command = [sys.executable, "-m", "o2td", "evaluate", str(file), "--discount", "0.9", "--sort"]
    command += ["--methods", "lstd", "--features", "tabular", "--json"]
    environment = {**os.environ, "TMPDIR": str(place)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 120
    while not _written(place) and time.monotonic() < until:
        time.sleep(0.001)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert list(place.iterdir())
    assert file.read_bytes() == before
    answers = [
        subprocess.run(command, env=env, capture_output=True, check=True, text=True).stdout
        for env in (environment, dict(os.environ))
    ]
    assert json.loads(answers[0])["estimates"] == json.loads(answers[1])["estimates"]


SMALL = """
name = "small"
steps = 100
runs = 12
runs_per_shard = 1
every = 5
metrics = ["rmse"]
domain.name = "random_walk"
algorithms = [{ name = "TD", grid = { step_size = [0.01, 0.1] } }]
"""


def test_commands_on_a_full_disk_say_so_and_go_on_when_there_is_room(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "in").mkdir()
    log_chunks(tmp_path / "in")
    log = str(tmp_path / "in" / "log.csv")
    known = ["evaluate", log, "--discount", "0.9", "--methods", "lstd", "--features", "tabular"]
    commands = {
        "store": ["run", str(tmp_path / "small.toml"), "--workers", "1", "--out"],
        "answer": [*known, "--out"],
        "values.csv": ["predict", str(tmp_path / "warm answer" / "model.npz"), log, "--out"],
        "plot.png": ["analyze", "baird", "--plot"],
    }
    for name, arguments in commands.items():
        # Once before, so that no compiled code needs to be written when there is no room.
        assert main([*arguments, str(tmp_path / f"warm {name}")]) == 0
        capsys.readouterr()
        with room(1500):
            code = main([*arguments, str(tmp_path / name)])
        said = capsys.readouterr().err
        assert code == 2, (name, said)
        assert "File too large" in said
        assert "Traceback" not in said
        assert not list(tmp_path.rglob("*.o2td-tmp"))
        assert main([*arguments, str(tmp_path / name)]) == 0
        capsys.readouterr()


# A mount that only this process and its children see: small, then read-only, then large.
IN_NAMESPACE = """
set -e
mount -t tmpfs -o size=64k none "$1"
run() { "$2" -m o2td run "$3" --out "$1/store" --workers 1 --json; }
set +e
run "$@" >/dev/null 2>"$4.full"; echo $?
mount -o remount,ro,size=64k none "$1"
run "$@" >/dev/null 2>"$4.read-only"; echo $?
mount -o remount,rw,size=20m none "$1"
find "$1" -name '*.o2td-tmp' | wc -l
run "$@" || exit 1
cp -r "$1/store" "$5"
"""


def may_mount(folder: Path) -> bool:
    """Whether this user may mount what only its own processes see."""
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", str(folder)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def test_a_small_and_a_read_only_file_system(tmp_path: Path) -> None:
    place, spec, said = tmp_path / "place", tmp_path / "small.toml", tmp_path / "said"
    place.mkdir()
    if not may_mount(place):
        pytest.skip("no mounts of one's own on this machine")
    spec.write_text(SMALL.replace("runs = 12", "runs = 40"))
    command = ["unshare", "--mount", "sh", "-c", IN_NAMESPACE, "sh", str(place), sys.executable]
    done = subprocess.run(
        [*command, str(spec), str(said), str(tmp_path / "copy")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    full, read_only, left, text = done.stdout.split(maxsplit=3)
    assert (full, read_only, left) == ("2", "2", "0")
    for name, why in (("full", "No space left on device"), ("read-only", "Read-only file system")):
        sentence = Path(f"{said}.{name}").read_text()
        assert f"cannot be written ({why}); what is finished is kept" in sentence
        assert len(sentence.splitlines()) == 1
    part = json.loads(text)["parts"][0]
    assert part["found"] + part["computed"] == 40
    assert part["found"] > 0
    assert main(["run", str(spec), "--out", str(tmp_path / "whole"), "--json"]) == 0
    whole, copy = (
        {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*.*")}
        for name in ("whole", "copy")
    )
    assert copy == whole


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_one_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        learner = o2td.TD(step_size=0.1).partial_fit(rows(10))
        with pytest.raises(O2TDError, match="cannot be written"):
            learner.save(tmp_path / "model.npz")
        assert not list(tmp_path.iterdir())
    finally:
        tmp_path.chmod(0o700)

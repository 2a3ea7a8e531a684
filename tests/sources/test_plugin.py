"""A format of another package: found by its entry point, read by the library and the command."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from o2td import sources

PLUGIN = Path(__file__).parent / "outside" / "sqlite_logs.py"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds an installed package, as an installer leaves it."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(PLUGIN, folder)
    info = folder / "sqlite_logs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sqlite-logs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[o2td.formats]\nsqlite = sqlite_logs:Sqlite\n")
    return folder


def _run(site: Path, *command: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )


@pytest.fixture
def database(frame, tmp_path: Path) -> Path:
    file = tmp_path / "log.sqlite"
    with sqlite3.connect(file) as connection:
        frame(episodes=60).astype({"terminated": int, "truncated": int}).to_sql(
            "log", connection, index=False
        )
    return file


READ = """
import sys
from o2td import checks, sources
from o2td.registry import FORMATS
source = sources.open_logs(sys.argv[1], discount=0.9)
assert source.info.unverified == (sys.argv[1],)
print("sqlite" in FORMATS.names(), len(checks.check_source(source).passed) > 10)
print(sum(chunk.reward.sum() for chunk in source.chunks(7)))
"""


def test_one_file_adds_a_format(frame, joined, site: Path, database: Path) -> None:
    done = _run(site, "-c", READ, str(database))
    assert not done.stderr
    first, total = done.stdout.split("\n")[:2]
    assert first == "True True"
    want = joined(sources.open_logs(frame(episodes=60), discount=0.9))["reward"].sum()
    assert float(total) == pytest.approx(want, rel=1e-12)


def test_the_command_reads_it_and_a_folder_of_it(site: Path, database: Path) -> None:
    for place in (database, database.parent):
        options = ("--discount", "0.9", "--methods", "lstd", "--json")
        done = _run(site, "-m", "o2td", "evaluate", str(place), *options)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["estimates"]


def test_its_own_refusal_is_what_is_said(site: Path, tmp_path: Path) -> None:
    file = tmp_path / "empty.db"
    with sqlite3.connect(file) as connection:
        connection.execute("create table other (x integer)")
    done = _run(site, "-m", "o2td", "evaluate", str(file), "--discount", "0.9")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "has no table log; call the table so" in done.stderr


def test_without_the_package_its_files_are_unknown(database: Path) -> None:
    with pytest.raises(ValueError, match=r"log\.sqlite: unknown format; rename or convert"):
        sources.open_logs(database, discount=0.9)

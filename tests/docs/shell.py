"""`sh` blocks run by a real shell, in a copy of the files that git keeps.

Every line is run by `make test`, but those of `LATER`, which `make test-slow` runs. `python` and
`o2td` are those of the environment that runs the tests. `pip` is that of an empty one, which sees the
requirements installed here and asks no index, so that a line installs o2td and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.dask_cluster import Cluster

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
CLUSTER = "tcp://scheduler:8786"
REPOSITORY = "<this repository>"


@dataclass(frozen=True)
class Later:
    """A line that is too long for `make test`: why, and what is run of it where all is too long."""

    why: str
    instead: str = ""


LATER = {
    "make test": Later("runs this test among all others"),
    "make test-slow": Later(
        "would run itself without end", "make test-slow PYTEST_ADDOPTS='--collect-only -q'"
    ),
    "make reproduce": Later("takes minutes"),
    'pip install ".[all]"': Later("brings Ray, which is not among the locked versions"),
    "o2td bench --save before.json": Later(
        "takes minutes", "o2td bench --quick --save before.json"
    ),
    "o2td bench --against before.json": Later(
        "takes minutes", "o2td bench --quick --against before.json || test $? = 1"
    ),
}


def command(line: str) -> str:
    """A line without its comment.

    >>> command("make test   # every check")
    'make test'
    """
    return line.partition(" #")[0].strip()


def now(text: str) -> str:
    """The lines of a block that `make test` runs."""
    return "\n".join(line for line in text.split("\n") if command(line) not in LATER)


def copy(folder: Path) -> Path:
    """Copy the files that git keeps or would keep; without git all but what is made from them."""
    names = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if shutil.which("git") and (ROOT / ".git").exists():
        told = subprocess.run(names, cwd=ROOT, capture_output=True, check=True).stdout
        for name in filter(None, told.decode().split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
    else:
        made = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "site", "results")
        shutil.copytree(ROOT, folder, ignore=made, dirs_exist_ok=True)
    return folder


def settings(scratch: Path) -> dict[str, str]:
    """Environment variables of the shell, without those of the tests that run now."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "VIRTUAL_ENV"))}
    tools = scratch / "tools"
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(scratch / "empty")], check=True
    )
    tools.mkdir()
    pip = tools / "pip"
    pip.write_text(f'#!/bin/sh\nexec "{scratch}/empty/bin/python" -m pip "$@"\n')
    pip.chmod(0o755)
    return kept | {
        "PATH": os.pathsep.join([str(tools), str(BIN), os.environ["PATH"]]),
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as "isolation is off"
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def run(text: str, where: str) -> str:
    """Run lines in the working folder, stop at the first that fails; what they printed."""
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if REPOSITORY in text:
            text = text.replace(REPOSITORY, str(repository(scratch / "repository")))
        if CLUSTER in text:
            text = text.replace(CLUSTER, stack.enter_context(Cluster(1)).address)
        return shell(text, settings(scratch), where)


def shell(text: str, variables: dict[str, str], where: str, folder: Path | None = None) -> str:
    """What `sh -e` prints, which must end with 0."""
    done = subprocess.run(
        ["sh", "-e", "-c", text],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, f"{where}: ended with {done.returncode}\n{text}\n{done.stdout}"
    return done.stdout


def repository(folder: Path) -> Path:
    """A repository with one commit of the copied files, to be cloned."""
    folder.mkdir()
    copy(folder)
    who = ["-c", "user.name=o2td", "-c", "user.email=o2td@localhost", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "-A", "-f"], ["commit", "-q", "-m", "All files"]):
        subprocess.run(["git", *who, *words], cwd=folder, check=True)
    return folder

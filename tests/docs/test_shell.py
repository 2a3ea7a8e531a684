"""What `make test` leaves out: the newcomer's path word for word, and every target of the Makefile."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from . import shell
from .blocks import ROOT, blocks
from .test_blocks import PAGES

HOUR = 3600
CODE = {  # options that make a long script short; the rest of the target is run as it is
    "bench": (".venv/bin/o2td bench --quick", "takes minutes"),
    "load": (".venv/bin/python -m benchmarks.load --rows 2e7", "100 million rows"),
    "fuzz": (
        ".venv/bin/python -m pip install --quiet --target build/atheris atheris || exit 0\n"
        "for one in specs models logs; do PYTHONPATH=build/atheris"
        " .venv/bin/python -m benchmarks.fuzz_$one -max_total_time=5; done",
        "ten minutes for each of three readers; atheris exists for some systems only",
    ),
    "honesty": (
        ".venv/bin/python -m benchmarks.honesty.run --purpose report --sets 1"
        " --only 'T=4 0.6->0.8 n=256'\n"
        ".venv/bin/python -m benchmarks.honesty.record build/honesty.jsonl",
        "hours; here one log of one cell",
    ),
    "mutation": (
        ".venv/bin/python -c"
        " 'import benchmarks.mutation as m; assert len(m.sample(m.everything(), 300, 0)) >= 300'",
        "hours; here mutants are drawn, and not met with tests",
    ),
}


def fresh() -> dict[str, str]:
    """Variables of a shell that has this interpreter and nothing of the tests' environment."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "VIRTUAL_ENV"))}
    return {k: v for k, v in kept.items() if k != "PYTHONPATH"}


@pytest.fixture
def index(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip where no packages can be had."""
    folder = tmp_path_factory.mktemp("index")
    words = ["download", "--quiet", "--no-deps", "--dest", str(folder), "msgspec"]
    if subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True).returncode:
        pytest.skip("no package index can be reached from here")


def written() -> list[str]:
    """Every line of every `sh` block."""
    return [
        shell.command(line)
        for page in PAGES
        for block in blocks(page)
        if block.language == "sh"
        for line in block.text.split("\n")
        if shell.command(line)
    ]


def test_what_is_left_for_later_is_written_somewhere() -> None:
    assert set(shell.LATER) <= set(written())
    assert shell.now("make test   # all\nmake help\n") == "make help\n"


def test_no_line_installs_into_this_environment() -> None:
    """`pip` alone is that of an empty environment; another way to call it would change this one."""
    assert [line for line in written() if "-m pip" in line or " uv " in f" {line} "] == []


def test_every_target_is_run() -> None:
    text = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*##", text, re.M))
    assert set(TARGETS) | set(CODE) == targets


@pytest.mark.slow
@pytest.mark.timeout(HOUR)
@pytest.mark.usefixtures("index")
def test_a_newcomer_types_what_the_first_page_says(tmp_path: Path) -> None:
    """In one shell, from the clone on, with packages from the index; `make reproduce` is below."""
    lines = ["set -x"]
    for number, block in enumerate(blocks(ROOT / "docs" / "start.md")):
        if block.language == "sh":
            lines.append(shell.now(block.text))
        elif block.language == "console":
            lines += re.findall(r"^\$ (.*)", block.text, re.M)
        else:
            file = tmp_path / f"typed-{number}.txt"
            file.write_text(block.text, "utf-8")
            options = "-m doctest -o NORMALIZE_WHITESPACE" if block.language == "pycon" else ""
            lines.append(f"python {options} '{file}'")
    text = "\n".join(lines).replace(shell.REPOSITORY, str(shell.repository(tmp_path / "origin")))
    said = shell.shell(text, fresh(), "start.md", tmp_path)
    assert "Verdict: " in said
    assert said.count("picture: ") == 3


@pytest.mark.slow
@pytest.mark.timeout(HOUR)
@pytest.mark.usefixtures("index")
def test_pip_installs_everything(tmp_path: Path) -> None:
    shell.copy(tmp_path)
    lines = [line for line in shell.LATER if line.startswith("pip ")]
    text = "\n".join(["python3 -m venv fresh", ". fresh/bin/activate", *lines, "o2td domains"])
    assert "random_walk" in shell.shell(text, fresh(), "pip", tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(HOUR)
def test_commands_that_take_long(tmp_path: Path) -> None:
    """Those of `shell.LATER` that need no other environment than this one."""
    shell.copy(tmp_path)
    text = "\n".join(
        how.instead or line for line, how in shell.LATER.items() if line.startswith("o2td ")
    )
    assert text
    shell.shell(text, shell.settings(tmp_path), "shell.LATER", tmp_path)


TARGETS = {  # in this order, in one clone; what is to be seen afterwards
    "help": "",
    "lint": ".venv/bin/o2td",
    "docs": "site/index.html",
    "notebooks": "examples/notebooks/3-the-geometry.ipynb",
    "reproduce": "reproduction/report.html",
    "test": "",
    "test-slow": "",
    "test-python": "build/versions/highest/requirements.txt",
    "test-lowest": "build/versions/lowest-direct/requirements.txt",
    "lock": "requirements.lock",
    "clean": "",
}


@pytest.mark.slow
@pytest.mark.timeout(3 * HOUR)
@pytest.mark.usefixtures("index")
def test_every_target_in_a_fresh_clone(tmp_path: Path) -> None:
    shell.copy(tmp_path)
    for target, made in TARGETS.items():
        if target == "lock":
            for short, _ in CODE.values():
                shell.shell(short, fresh(), short, tmp_path)
        line = f"make {target}"
        how = shell.LATER.get(line, shell.Later(""))
        shell.shell(how.instead or line, fresh(), line, tmp_path)
        assert (tmp_path / made).exists(), line
    assert not (tmp_path / ".venv").exists()

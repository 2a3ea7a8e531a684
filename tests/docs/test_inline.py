"""Commands inside sentences name what exists: subcommands and options, targets, scripts, extras."""

from __future__ import annotations

import contextlib
import functools
import io
import re
import tomllib
from pathlib import Path

import pytest

from o2td.cli import main

from .blocks import ROOT

FENCED = re.compile(r"^```.*?^```$", re.M | re.S)
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
PAGES = sorted(
    (*ROOT.glob("*.md"), *(p for f in ("docs", "examples") for p in (ROOT / f).rglob("*.md")))
)
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))


@functools.cache
def said_by_help(command: str) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert main([command, "--help"]) == 0, command
    return said.getvalue()


def fault(span: str) -> str:
    """What does not exist in a command; empty where all does, or where it is none."""
    program, _, rest = span.partition(" ")
    words = rest.split()
    if program == "o2td" and words and not words[0].startswith("-"):
        command = words[0]
        if command not in said_by_help_of_all():
            return f"no command {command}"
        for option in re.findall(r"(?<!\S)(--?[a-z][a-z-]*)", rest):
            if not re.search(rf"(?<![\w-]){option}(?![\w-])", said_by_help(command)):
                return f"no option {option}"
    if program == "make":
        named = {word for word in words if "=" not in word}
        return " ".join(sorted(named - TARGETS))
    if "pip install" in span and (asked := re.search(r"\[([a-z,]+)\]", span)):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        return " ".join(sorted(set(asked[1].split(",")) - set(project["optional-dependencies"])))
    scripts = re.findall(r"(?:^|\s)((?:docs|examples|benchmarks|tests)/[\w/]+\.py)", span)
    return " ".join(script for script in scripts if not (ROOT / script).exists())


@functools.cache
def said_by_help_of_all() -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        main(["--help"])
    return said.getvalue()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_in_sentences_exist(path: Path) -> None:
    text = FENCED.sub("", path.read_text("utf-8"))
    found = {span: wrong for span in SPAN.findall(text) if (wrong := fault(span))}
    assert found == {}


@pytest.mark.parametrize(
    ("span", "wrong"),
    [
        ("o2td nosuch", "no command nosuch"),
        ("o2td run x.toml --nosuch", "no option --nosuch"),
        ("o2td run x.toml --dask ADDRESS", ""),
        ("make PROFILE=full reproduce", ""),
        ("make nosuch", "nosuch"),
        ('pip install ".[logs,nosuch]"', "nosuch"),
        ("python examples/nosuch.py", "examples/nosuch.py"),
        ("theta", ""),
    ],
)
def test_what_does_not_exist_is_noticed(span: str, wrong: str) -> None:
    assert fault(span) == wrong

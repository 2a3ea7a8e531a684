"""The code blocks of a Markdown file, run in order in one namespace and one folder."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.M | re.S)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_OUTPUT = re.compile(r"\{\{\s*output[^}]*\}\}")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text and the line where the text starts."""

    language: str
    text: str
    line: int


def blocks(path: Path) -> Iterator[Block]:
    """All fenced blocks of a file."""
    text = path.read_text("utf-8")
    for match in _FENCE.finditer(text):
        yield Block(match[1], match[2], text.count("\n", 0, match.start(2)) + 1)


def run(path: Path) -> None:
    """Run every block of a file; the working folder is where files are read and written."""
    # A module of its own, so that classes defined on a page can be pickled as those of a script can.
    module = ModuleType("page_" + path.stem.replace("-", "_"))
    sys.modules[module.__name__] = module
    try:
        for block in blocks(path):
            where = f"{path.relative_to(ROOT)}:{block.line}"
            assert block.language in RUNNERS, f"{where}: no way to run {block.language!r}"
            RUNNERS[block.language](block, module.__dict__, where)
    finally:
        del sys.modules[module.__name__]


def _python(block: Block, space: dict[str, Any], where: str) -> None:
    padded = "\n" * (block.line - 1) + block.text
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(padded, where, "exec"), space)  # noqa: S102


def _doctest(block: Block, space: dict[str, Any], where: str) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, space, where, where, block.line - 1)
    assert test.examples, f"{where}: no examples in this block"
    said = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=_FLAGS, verbose=False)
    runner.run(test, out=said.write, clear_globs=False)
    assert not runner.failures, said.getvalue()
    space.update(test.globs)


def _console(block: Block, space: dict[str, Any], where: str) -> None:
    """`$ o2td …` lines, each followed by what it prints, or `{{ output }}` for the site to fill in."""
    from o2td.cli.main import main

    for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
        command, _, wanted = part.partition("\n")
        wanted = _OUTPUT.sub("...", wanted)
        words = shlex.split(command)
        assert words[0] == "o2td", f"{where}: only o2td's own commands are run: {command}"
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            code = main(words[1:])
        assert code == 0, f"{where}: {command} ended with {code}\n{said.getvalue()}"
        same = doctest.OutputChecker().check_output(wanted, said.getvalue(), _FLAGS)
        assert same, f"{where}: {command} printed\n{said.getvalue()}"


def _toml(block: Block, space: dict[str, Any], where: str) -> None:
    """A table for pyproject.toml, or an experiment, which is written for the commands that follow."""
    data = tomllib.loads(block.text)
    if "project" in data:
        groups = data["project"]["entry-points"]
        assert {group.split(".")[0] for group in groups} == {"o2td"}, where
        return
    from o2td.experiments import load_spec

    file = Path(f"{data['name']}.toml")
    file.write_text(block.text, "utf-8")
    assert load_spec(file).name == data["name"], where


def _shell(block: Block, space: dict[str, Any], where: str) -> None:
    """Set-up lines are not run: their make targets, scripts and extras must exist."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for line in filter(None, block.text.split("\n")):
        words = shlex.split(line, comments=True)
        if words[:1] == ["make"]:
            named = [word for word in words[1:] if "=" not in word]
            assert set(named) <= TARGETS, f"{where}: {line}"
        for word in words:
            asked = re.search(r"\[([a-z,]+)\]", word)
            if asked:
                known = extras["optional-dependencies"]
                assert set(asked[1].split(",")) <= set(known), f"{where}: {line}"
            if re.fullmatch(r"[\w/]+\.(py|md)", word):
                assert (ROOT / word).exists(), f"{where}: {word} does not exist"


def _text(block: Block, space: dict[str, Any], where: str) -> None:
    assert ">>>" not in block.text, f"{where}: use pycon for examples"


RUNNERS = {
    "python": _python,
    "pycon": _doctest,
    "console": _console,
    "toml": _toml,
    "sh": _shell,
    "text": _text,
}

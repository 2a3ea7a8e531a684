"""The code blocks of a Markdown file, run in order in one namespace and one folder."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from docs._tools import drawn, outputs, values

from . import shell

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.M | re.S)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text and the line where the text starts."""

    language: str
    text: str
    line: int
    filled: bool = False  # its outputs are written by `make docs`


def blocks(path: Path) -> Iterator[Block]:
    """All fenced blocks of a file."""
    text = path.read_text("utf-8")
    for match in _FENCE.finditer(text):
        filled = bool(re.search(r"<!--= output[^\n]* -->\n\Z", text[: match.start()]))
        yield Block(match[1], match[2], text.count("\n", 0, match.start(2)) + 1, filled)


def run(path: Path, ray: bool = False) -> None:
    """Run every block of a file; the working folder is where files are read and written.

    Pictures that the page shows must be those that its blocks draw.
    Blocks that import Ray, which is not among the locked versions, are left to `test_ray.py`.
    """
    # A module of its own, so that classes defined on a page can be pickled as those of a script can.
    module = ModuleType("page_" + path.stem.replace("-", "_"))
    sys.modules[module.__name__] = module
    pictures = drawn.shown(path.read_text("utf-8"))
    try:
        with drawn.styled() if pictures else contextlib.nullcontext():
            _run_all(path, module, ray)
        for name in sorted(pictures):
            kept = (drawn.IMAGES / name).read_text("utf-8")
            assert drawn.alike(kept, drawn.read(Path(name))), f"{name}: make docs draws it anew"
    finally:
        del sys.modules[module.__name__]


def _run_all(path: Path, module: ModuleType, ray: bool) -> None:
    for block in blocks(path):
        where = f"{path.relative_to(ROOT)}:{block.line}"
        assert block.language in RUNNERS, f"{where}: no way to run {block.language!r}"
        if needs_ray(block) and not ray:
            continue
        RUNNERS[block.language](block, module.__dict__, where)


def needs_ray(block: Block) -> bool:
    """Whether a block of Python imports Ray."""
    return block.language == "python" and "from ray." in block.text


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
    """`$ o2td …` lines, each followed by what it prints.

    Where `make docs` has written that, numbers may differ a little.
    """
    for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
        command, _, wanted = part.partition("\n")
        assert command.startswith("o2td "), f"{where}: only o2td's own commands are run: {command}"
        if block.filled:
            most = wanted.count("\n") - 1 if wanted.endswith(f"{outputs.CUT}\n") else None
            with outputs.terminal(80):
                said = outputs.answer(command, most).partition("\n")[2]
            assert values.same(wanted, said), f"{where}: make docs; {command} prints\n{said}"
            continue
        said = outputs.answer(command).partition("\n")[2]
        same = doctest.OutputChecker().check_output(wanted, said, _FLAGS)
        assert same, f"{where}: {command} printed\n{said}"


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
    """Lines for a terminal, run by one; those of `shell.LATER` by the slow tests."""
    shell.run(shell.now(block.text), where)


def _text(block: Block, space: dict[str, Any], where: str) -> None:
    """What something printed: nothing that a reader would type, except what a test runs by name."""
    assert ">>>" not in block.text, f"{where}: use pycon for examples"
    typed = re.findall(r"^(?:\$|make|pip|python|o2td|from|import) .*", block.text, re.M)
    assert set(typed) <= QUOTED, f"{where}: use sh, console or python for {typed}"


QUOTED = {"$ python examples/logs_frozen_lake.py"}  # run by test_examples.py

RUNNERS = {
    "python": _python,
    "pycon": _doctest,
    "console": _console,
    "toml": _toml,
    "sh": _shell,
    "text": _text,
}

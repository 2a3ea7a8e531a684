"""Output of the commands on a page, between markers: `<!--= output | 8 -->` before a console block.

Every `$ o2td …` of the block is run, and its output is written below it, or only the first lines if the
marker has a number. Earlier blocks on the page run too, in a folder of their own, because a command may
read what they write. Output that differs only in the last digits of numbers stays as it is; the time of
an answer and the digests of files, which always differ, are left out. Pictures that blocks save and the
page shows are stored the same way.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from docs._tools import drawn
from docs._tools.values import same

_FENCE = re.compile(
    r"(?:^<!--= output(?: \| (\d+))? -->\n)?^```(\S*)[^\n]*\n(.*?)^```$(?:\n<!--/-->$)?",
    re.M | re.S,
)
_MARKED = "<!--= output"
_EVER_NEW = re.compile(r"\d{4}-\d\d-\d\dT[\d:]{8}\+00:00|(?<=SHA-256 )[0-9a-f]{16}…")
CUT = "..."


def filled(text: str) -> tuple[str, dict[str, str]]:
    """The page with the present output of its marked commands, and the pictures that its blocks draw."""
    pictures = drawn.shown(text)
    if not pictures and not re.search(f"^{_MARKED}", text, re.M):
        return text, {}
    page = _Page(text, pictures)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(contextlib.chdir(folder))
        stack.enter_context(terminal(80))
        stack.enter_context(registered())
        if pictures:
            stack.enter_context(drawn.styled())
        new = _FENCE.sub(page.run, text)
        return new, {name: drawn.read(Path(name)) for name in sorted(pictures)}


class _Page:
    """The namespace of a page's blocks."""

    def __init__(self, text: str, pictures: set[str]) -> None:
        # A module of its own, so that classes defined on a page can be pickled.
        module = ModuleType("page")
        sys.modules["page"] = module
        self.space: dict[str, Any] = module.__dict__
        wanted = (_MARKED, *pictures)
        asked = (m for m in _FENCE.finditer(text) if any(word in m[0] for word in wanted))
        self.end = max(match.end() for match in asked)

    def run(self, block: re.Match[str]) -> str:
        """Run one block if an output depends on it; returns the block with its outputs filled in."""
        most, language, text = block[1], block[2], block[3]
        if block.start() > self.end:
            return block[0]
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(text, "page", "exec"), self.space)  # noqa: S102
        elif language == "pycon":
            with contextlib.redirect_stdout(io.StringIO()):
                for example in doctest.DocTestParser().get_examples(text):
                    exec(compile(example.source, "page", "single"), self.space)  # noqa: S102
        elif language == "toml" and "name" in (spec := tomllib.loads(text)):
            Path(f"{spec['name']}.toml").write_text(text, encoding="utf-8")
        elif language == "console" and block[0].startswith(_MARKED):
            commands = re.findall(r"^\$ ([^\n]+)$", text, re.M)
            new = "".join(answer(command, int(most) if most else None) for command in commands)
            return block[0] if same(text, new) else block[0].replace(text, new)
        return block[0]


def answer(command: str, most: int | None = None) -> str:
    """A command and what it prints."""
    from o2td.cli.main import main

    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = main(shlex.split(command)[1:])
    if code:
        raise SystemExit(f"$ {command} ended with {code}: {said.getvalue()}")
    plain = _EVER_NEW.sub("…", said.getvalue().strip())
    lines = [line.rstrip() for line in plain.split("\n")]
    if most is not None and len(lines) > most:
        lines = [*lines[:most], CUT]
    return "\n".join([f"$ {command}", *lines, ""])


@contextlib.contextmanager
def registered() -> Iterator[None]:
    """Keep what a page registers to that page alone."""
    from o2td import registry

    every = [one for one in vars(registry).values() if isinstance(one, registry.Registry)]
    for known in every:
        known.names()  # find all plug-ins before a page adds its own
    before = [dict(known._members) for known in every]
    try:
        yield
    finally:
        for known, members in zip(every, before, strict=True):
            known._members = members


@contextlib.contextmanager
def terminal(columns: int) -> Iterator[None]:
    """Let commands print as on a terminal of this width, without colours."""
    width = str(columns)
    wanted = {"COLUMNS": width, "TERMINAL_WIDTH": width, "NO_COLOR": "1"}
    before = {key: os.environ.get(key) for key in wanted}
    os.environ |= wanted
    try:
        yield
    finally:
        for key, value in before.items():
            os.environ.pop(key, None)
            if value is not None:
                os.environ[key] = value

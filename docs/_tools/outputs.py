"""What commands on a page print: `{{ output }}` in a console block is filled in by running it.

`{{ output | 8 }}` keeps the first eight lines. Blocks before it on the page are run too, in a folder
of their own, because a command may read what they write. What a command said is kept under
build/docs until the page or the library changes.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import shlex
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _tools.measure import CACHE, ROOT

_FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.M | re.S)
_OUTPUT = re.compile(r"^\$ ([^\n]+)\n\{\{\s*output\s*(?:\|\s*(\d+)\s*)?\}\}\n", re.M)


def filled(text: str) -> str:
    """The page with every `{{ output }}` replaced by what the command above it prints."""
    if not _OUTPUT.search(text):
        return text
    kept = CACHE / f"page-{_digest(text)}.md"
    if not kept.exists():
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), terminal(80):
            made = _FENCE.sub(_Page(text).run, text)
        kept.parent.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(f".{os.getpid()}")
        partial.write_text(made, encoding="utf-8")
        partial.replace(kept)
    return kept.read_text(encoding="utf-8")


class _Page:
    """The namespace of a page's blocks."""

    def __init__(self, text: str) -> None:
        self.space: dict[str, Any] = {"__name__": "page"}
        self.end = max(match.end() for match in _OUTPUT.finditer(text))

    def run(self, block: re.Match[str]) -> str:
        """Run one block, if an output depends on it; the same block, with outputs filled in."""
        language, text = block[1], block[2]
        if block.start() > self.end:
            return block[0]
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(text, "page", "exec"), self.space)  # noqa: S102
        elif language == "toml" and "name" in (spec := tomllib.loads(text)):
            Path(f"{spec['name']}.toml").write_text(text, encoding="utf-8")
        elif language == "console":
            return block[0].replace(text, _OUTPUT.sub(_answer, text))
        return block[0]


def _answer(match: re.Match[str]) -> str:
    from o2td.cli.main import main

    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = main(shlex.split(match[1])[1:])
    if code:
        raise SystemExit(f"$ {match[1]} ended with {code}: {said.getvalue()}")
    lines = [line.rstrip() for line in said.getvalue().strip().split("\n")]
    if match[2] and len(lines) > int(match[2]):
        lines = [*lines[: int(match[2])], "…"]
    return "\n".join([f"$ {match[1]}", *lines, ""])


@contextlib.contextmanager
def terminal(columns: int) -> Iterator[None]:
    """Commands print as on a terminal of this width, without colours."""
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


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for path in (Path(__file__), *sorted((ROOT / "src" / "o2td").rglob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]

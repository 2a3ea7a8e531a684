"""The page of promises names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_promise_names_its_tests() -> None:
    text = (ROOT / "docs" / "reliability.md").read_text()
    text = text.partition("## Promises")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) > 15
    for promise, tests, _ in rows[1:]:
        named = re.findall(r"`([\w/]+\.py)`", tests)
        assert named, promise
        folder = Path()
        for name in named:
            path = Path(name) if "/" in name else folder / name
            folder = path.parent
            assert (ROOT / path).is_file(), (promise, path)

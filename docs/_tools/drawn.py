"""Pictures that a page's own code draws: a block saves `name.svg`, the page shows images/name.svg.

`make docs` runs the page's blocks and keeps the pictures; tests run the blocks too, and compare.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from docs._tools.measure import ROOT
from docs._tools.values import near, same

IMAGES = ROOT / "docs" / "images"
_FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
_SHOWN = re.compile(r"!\[[^\]]*\]\([^)\s]*?images/([\w.-]+\.svg)\)")
_BESIDE = re.compile(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*|<\?xml[^>]*>\s*", re.S)
_TEXT = re.compile(r"<text[^>]*>([^<]*)</text>")
_PATH = re.compile(r' d="([^"]+)"')
_COLOUR = re.compile(r"(?:fill|stroke): (#[0-9a-f]{6})")
_PAIR = re.compile(r"(-?[\d.]+(?:e-?\d+)?) (-?[\d.]+(?:e-?\d+)?)")


def shown(text: str) -> set[str]:
    r"""The pictures on a page that its own code draws.

    >>> sorted(shown("```python\nf.savefig('a.svg')\n```\n![A](images/a.svg) ![B](images/b.svg)"))
    ['a.svg']
    """
    code = "".join(_FENCE.findall(text))
    return {name for name in _SHOWN.findall(text) if name in code}


@contextmanager
def styled() -> Iterator[None]:
    """Matplotlib in the style of the book; the same numbers give the same bytes."""
    import matplotlib as mpl

    from docs._tools.pictures import STYLE

    before = os.environ.get("SOURCE_DATE_EPOCH")
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    try:
        with mpl.rc_context(STYLE):
            yield
    finally:
        os.environ.pop("SOURCE_DATE_EPOCH")
        if before is not None:
            os.environ["SOURCE_DATE_EPOCH"] = before


def read(path: Path) -> str:
    """A picture without its date and creator."""
    lines = _BESIDE.sub("", path.read_text("utf-8")).strip().split("\n")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def alike(one: str, other: str) -> bool:
    """Whether two pictures have the same words and colours, and lines within a hundredth in place.

    >>> line = '<text x="1">0.5</text><path d="M 10 20 L {} 40" style="stroke: #4d4d4d"/>'
    >>> alike(line.format(100), line.format(100.2)), alike(line.format(100), line.format(130))
    (True, False)
    >>> alike(line, line.replace("#4d4d4d", "#a50026"))
    False
    """
    words, others = (" ".join(_TEXT.findall(text)) for text in (one, other))
    boxes, theirs = (list(map(_box, _PATH.findall(text))) for text in (one, other))
    return (
        same(words, others)
        and sorted(_COLOUR.findall(one)) == sorted(_COLOUR.findall(other))
        and len(boxes) == len(theirs)
        and all(
            abs(a - b) <= 3.0 or near(a, b)
            for box, its in zip(boxes, theirs, strict=True)
            for a, b in zip(box, its, strict=True)
        )
    )


def _box(path: str) -> tuple[float, ...]:
    """The bounding box of a line."""
    pairs = [(float(x), float(y)) for x, y in _PAIR.findall(path)] or [(0.0, 0.0)]
    columns, rows = zip(*pairs, strict=True)
    return min(columns), max(columns), min(rows), max(rows)

"""Screenshots of the page that `o2td evaluate --out` writes: docs/images/report.png, report-dark.png.

`python -m docs._tools.screens` takes them; it needs Chromium. The log is the guide's. The words on
the screenshot are stored next to it, in report.txt, so that a test without a browser notices when the
page says something else.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from html.parser import HTMLParser
from pathlib import Path

from docs._tools.drawn import IMAGES
from docs._tools.measure import ROOT
from docs._tools.outputs import answer

WIDTH, HEIGHT = 1000, 1180
SCHEMES = {"light": "report.png", "dark": "report-dark.png"}
GUIDE = ROOT / "docs" / "guides" / "logs.md"
PAGE = Path("answer") / "report.html"
KEPT = IMAGES / "report.txt"
_UNREAD = ("svg", "style", "script", "title")
_VISIBLE = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let shown = 0, node;
  while (node = walker.nextNode()) {
    if (node.parentElement.closest("svg, style, script")) continue;
    const words = node.data.split(/\\s+/).filter(Boolean).length;
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (words && box.bottom > innerHeight) break;
    shown += words;
  }
  return shown;
}"""


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._hidden += tag in _UNREAD

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in _UNREAD

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.found += data.split()


def words(page: str) -> list[str]:
    """The words of a page in order, numbers as #.

    >>> words("<title>x</title><p>worth <b>0.295</b> [0.25, 0.34]</p>")
    ['worth', '#', '[#,', '#]']
    """
    parser = _Words()
    parser.feed(page)
    return [re.sub(r"[-+−±]?\d[\d.,]*\d|[-+−±]?\d", "#", word) for word in parser.found]


def stale(page: str) -> str | None:
    """Where a page differs from the words on the screenshots; None if it does not."""
    kept = KEPT.read_text("utf-8").split()
    for place, (old, new) in enumerate(zip(kept, words(page), strict=False)):
        if old != new:
            said = " ".join(words(page)[max(0, place - 5) : place + 5])
            return f"“{said}”: python -m docs._tools.screens takes the pictures of it again"
    return None


def main() -> None:
    """Run the guide's blocks up to its answer, and take screenshots of the answer's page."""
    from playwright.sync_api import sync_playwright

    text = GUIDE.read_text("utf-8")
    code = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)[0]
    command = re.search(rf"^\$ (o2td evaluate .*--out {PAGE.parent})$", text, re.M)
    if command is None:
        raise SystemExit(f"docs/guides/logs.md has no command that writes the folder {PAGE.parent}")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec(compile(code, "page", "exec"), {"__name__": "page"})  # noqa: S102
        answer(command[1])
        page = Path(folder) / PAGE
        with sync_playwright() as engine:
            flags = ["--no-sandbox", "--disable-gpu"]
            browser = engine.chromium.launch(executable_path=program, args=flags)
            for scheme, name in SCHEMES.items():
                size = {"width": WIDTH, "height": HEIGHT}
                shown = browser.new_page(viewport=size, color_scheme=scheme)
                shown.goto(page.as_uri())
                shown.screenshot(path=str(IMAGES / name))
                print(IMAGES / name)
                seen = words(page.read_text("utf-8"))[: shown.evaluate(_VISIBLE)]
            browser.close()
    KEPT.write_text(" ".join(seen) + "\n", "utf-8")
    print(KEPT)


if __name__ == "__main__":
    main()

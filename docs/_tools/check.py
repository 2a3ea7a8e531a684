"""Check a built site: every link, anchor, image and script exists, and nothing loads from elsewhere.

`python -m docs._tools.check site` prints what is wrong and exits with 1 if anything is.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {
    ("img", "src"),
    ("script", "src"),
    ("link", "href"),
    ("iframe", "src"),
    ("source", "src"),
}
_RAW = re.compile(r"\{\{|\\\(|\\\[|\\operatorname|\\frac")


@dataclass
class Page(HTMLParser):
    """What a page offers (ids) and needs (links, and what a browser loads by itself)."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    images_without_words: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    formulas: int = 0
    _quiet: int = 0

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Collect ids, links and loads; text in code and scripts is skipped."""
        given = {name: value or "" for name, value in attributes}
        self.ids.update(given[name] for name in ("id", "name") if given.get(name))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        self.loaded += [given[name] for kind, name in _LOADED if kind == tag and name in given]
        if tag == "img" and not given.get("alt"):
            self.images_without_words.append(given.get("src", ""))
        self.formulas += tag == "math"
        self._quiet += tag in ("code", "script", "style")

    def handle_endtag(self, tag: str) -> None:
        """Read text again after code or a script."""
        self._quiet -= tag in ("code", "script", "style")

    def handle_data(self, data: str) -> None:
        """Keep the words that a reader sees."""
        if not self._quiet:
            self.text.append(data)


def read(path: Path) -> Page:
    """Parse one page."""
    page = Page()
    page.feed(path.read_text("utf-8"))
    return page


def problems(site: Path) -> list[str]:
    """One sentence for everything that is wrong."""
    pages = {path: read(path) for path in sorted(site.rglob("*.html"))}
    found = [] if pages else [f"{site}: no pages"]
    for path, page in pages.items():
        where = path.relative_to(site)
        for link in (*page.links, *page.loaded):
            wrong = _wrong(link, path, pages, link in page.loaded)
            if wrong:
                found.append(f"{where}: {link}: {wrong}")
        found += [f"{where}: image {src} has no words" for src in page.images_without_words]
        raw = _RAW.search(" ".join(page.text))
        if raw:
            found.append(f"{where}: {raw[0]!r} was left unrendered")
    for sheet in site.rglob("*.css"):
        outside = re.search(r"url\(['\"]?(https?:)?//[^)]*\)", sheet.read_text("utf-8"))
        if outside:
            found.append(f"{sheet.relative_to(site)}: loads {outside[0]}")
    return found


def _wrong(link: str, path: Path, pages: dict[Path, Page], loaded: bool) -> str:
    parts = urlsplit(link)
    if parts.scheme in ("data", "mailto", "javascript"):
        return ""
    if parts.scheme or link.startswith("//"):
        return "loaded from elsewhere" if loaded else ""
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target = target / "index.html"
    if not target.exists():
        return "no such file"
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].ids:
        return "no such anchor"
    return ""


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1] if len(sys.argv) > 1 else "site").resolve())
    print(
        "\n".join(wrong)
        or "every link, anchor and image exists, and nothing is loaded from elsewhere"
    )
    sys.exit(bool(wrong))

"""The page: everything escaped, nothing from elsewhere, readable on a laptop and a phone."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from o2td.report import Page, Section
from o2td.report.page import (
    Badge,
    Callout,
    Details,
    Heading,
    Items,
    Picture,
    SideBySide,
    Table,
    Text,
)
from tests.browser import WIDTHS, chromium, stumbles

HOSTILE = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>"
PIXEL = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20">'
    b'<rect width="40" height="20"/></svg>'
)


class Tags(HTMLParser):
    """All tags with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def page(text: str = "plain") -> Page:
    wide = [f"column {k} {text}" for k in range(14)]
    return Page(
        text,
        text,
        [
            Section("one", text).add(
                Text(text),
                Heading(text),
                Items([text]),
                Callout(text, "bad"),
                Table(wide, [[text] * 14], text, wide[1:]),
                Table(["a", "b"], [[text, Badge(text, "good")]], text, stack=True),
                SideBySide(
                    [Picture(PIXEL, text, text, [f"figures/{text}.csv"]), Text("`code` " + text)]
                ),
                Details(text, [Text(text)]),
            )
        ],
        text,
    )


def test_everything_is_escaped() -> None:
    source = page(HOSTILE).html()
    tags = Tags()
    tags.feed(source)
    assert not {"script", "iframe", "object"} & {tag for tag, _ in tags.found}
    assert [attributes["src"][:5] for tag, attributes in tags.found if tag == "img"] == ["data:"]
    assert not any(name.startswith("on") for _, attributes in tags.found for name in attributes)
    assert "&lt;script&gt;" in source


def test_a_tone_that_is_unknown_adds_no_class() -> None:
    assert 'class="badge plain"' in Badge("x", '"><b>').html()


def test_nothing_from_elsewhere_and_a_policy_that_forbids_it() -> None:
    source = page().html()
    tags = Tags()
    tags.feed(source)
    assert "default-src 'none'" in source
    for _, attributes in tags.found:
        for name in ("src", "href"):
            assert not (attributes.get(name) or "").startswith(("http", "//"))


def test_code_between_backticks() -> None:
    assert Text("a `b<c` d").html() == "<p>a <code>b&lt;c</code> d</p>"
    assert Text("one ` alone").html() == "<p>one ` alone</p>"


@pytest.mark.browser
@pytest.mark.parametrize("text", ["plain", HOSTILE])
def test_in_a_browser(tmp_path: Path, text: str) -> None:
    path = tmp_path / "page.html"
    path.write_text(page(text).html(), encoding="utf-8")
    with chromium() as browser:
        assert [s for width in WIDTHS for s in stumbles(browser, path, width)] == []


@pytest.mark.browser
def test_the_browser_notices_a_page_that_is_too_wide(tmp_path: Path) -> None:
    path = tmp_path / "wide.html"
    path.write_text("<!DOCTYPE html><main><div style='width:2000px'>x</div></main>")
    with chromium() as browser:
        assert "wider" in " ".join(stumbles(browser, path, 390))

"""The repository's pages read as they stand: finished, with every link and image, and up to date."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from docs._tools import kept, measure, pictures, refresh, values

from .blocks import ROOT

PAGES = [*refresh.sources(), *(ROOT / "examples").glob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]
_FENCE = re.compile(r"^(```|~~~).*?^\1$", re.M | re.S)
_SPAN = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|(?:src|href)=\"([^\"]+)\"")
_FORMULA = re.compile(r"\$\$?[^$]+\$\$?")


def prose(path: Path) -> str:
    """A page without its code."""
    return _SPAN.sub("", _FENCE.sub("", path.read_text("utf-8")))


def anchors(path: Path) -> set[str]:
    """The anchors that a page's headings have, as GitHub and MkDocs make them."""
    text = _FENCE.sub("", path.read_text("utf-8"))
    heads = re.findall(r"^#+ (.+)$", values.unmarked(text), re.M)
    heads = [re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", head) for head in heads]
    slugs = {
        re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", head.lower()).strip()) for head in heads
    }
    return slugs | set(re.findall(r"id=\"([^\"]+)\"", text))


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_no_placeholder_is_left(path: Path) -> None:
    text = prose(path)
    assert "{{" not in text
    assert re.findall(r"<!--= [^\n]+? --><!--/-->", text) == []
    assert text.count("<!--= ") == text.count("<!--/-->")
    assert "\n::: " not in text


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_every_link_and_image_is_there(path: Path) -> None:
    broken = []
    for match in _LINK.finditer(_FORMULA.sub("", prose(path))):
        target, _, anchor = unquote(match[1] or match[2]).partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        place = (path.parent / target).resolve() if target else path
        if not place.exists():
            broken.append(match[0])
        elif anchor and place.suffix == ".md" and anchor not in anchors(place):
            broken.append(f"{match[0]}: no such heading")
    assert broken == []


def test_numbers_are_what_the_code_measures() -> None:
    """`make docs` brings them up to date."""
    assert kept.differences(kept.read(), measure.numbers())[:10] == []


def test_pages_say_what_was_measured() -> None:
    """`make docs` writes them anew; what commands print is compared by `test_blocks`."""
    assert [str(path.relative_to(ROOT)) for path, _ in refresh.stale(commands=False)] == []


def test_pictures_are_drawn_from_the_same_numbers() -> None:
    assert not pictures.stale(kept.numbers())


def test_the_page_to_play_with_is_the_present_one() -> None:
    assert refresh.PLAY.read_text("utf-8") == refresh.play()


def test_what_is_asked_most_is_two_clicks_away() -> None:
    """From the read-me: a policy from a CSV, which learner, is the paper right."""
    wanted = {"guides/logs.md": "csv", "book/which-method.md": "learner", "book/paper.md": "claims"}
    text = (ROOT / "README.md").read_text("utf-8")
    for page, word in wanted.items():
        assert f"](docs/{page}" in text, page
        assert word in (ROOT / "docs" / page).read_text("utf-8").lower()


def test_a_stale_number_is_noticed() -> None:
    mark = "<!--= a.b -->1.52<!--/-->"
    assert values.fill(mark, {"a": {"b": 1.7}}, {}) != mark
    assert kept.differences({"a": 1.52}, {"a": 1.7}) == ["a: 1.52, now 1.7"]
    assert kept.differences({"a": 1.52, "b": 1e-16}, {"a": 1.521, "b": 3e-15}) == []

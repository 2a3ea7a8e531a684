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
    # A bar within a comment would begin another cell.
    assert re.findall(r"^\|.*<!--= [^>\n]*\|[^>\n]*-->", text, re.M) == []


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


def test_every_guide_has_a_picture() -> None:
    guides = sorted((ROOT / "docs" / "guides").glob("*.md"))
    assert len(guides) > 8
    assert [path.name for path in guides if "](../images/" not in prose(path)] == []


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


ASKED = {  # what a page must say to answer the question
    "how do I evaluate a policy from a CSV": r"\$? ?`?o2td evaluate \S+\.csv",
    "which learner should I use": r"start with \| then compare",
    "is the paper right": r"Of 16 claims, \d+ are reproduced",
    "what is near-optimal": r"ARCTD\(\), untuned",
    "what is wpdis": r"`wpdis` \| weighted per-decision importance sampling",
    "when is an answer trusted": r"`ess_none` \|",
    "does trust hold": r"answers \| trust \| caution \| cannot answer",
    "how do I compare two policies": r"o2td compare|compare two policies|difference",
    "how do I draw this": r"savefig\(",
}


def clicks(start: Path, most: int) -> dict[Path, int]:
    """Every page that links lead to from `start`, with the number of clicks it takes."""
    found, edge = {start: 0}, [start]
    for count in range(1, most + 1):
        nearer, edge = edge, []
        for path in nearer:
            for match in _LINK.finditer(_FORMULA.sub("", prose(path))):
                target = unquote(match[1] or match[2]).partition("#")[0]
                place = (path.parent / target).resolve()
                if place.suffix == ".md" and place.is_file() and place not in found:
                    found[place] = count
                    edge.append(place)
    return found


def test_what_is_asked_most_is_two_clicks_away() -> None:
    """From the read-me, by links alone; and a page that no link leads to would not be found."""
    reached = clicks(ROOT / "README.md", 2)
    assert len(reached) > 40
    for question, answer in ASKED.items():
        texts = (values.unmarked(path.read_text("utf-8")) for path in reached)
        assert any(re.search(answer, text) for text in texts), question
    assert ROOT / "docs" / "decisions" / "0001-names-are-imported-late.md" not in clicks(
        ROOT / "README.md", 1
    )


def test_every_page_can_be_reached_from_the_read_me() -> None:
    """Within three clicks, but for the site's own first page and decisions, which it lists."""
    reached = clicks(ROOT / "README.md", 3)
    kept = ROOT / "docs" / "index.md"
    pages = [p for p in refresh.sources() if "decisions" not in p.parts and p != kept]
    assert [str(path.relative_to(ROOT)) for path in pages if path not in reached] == []


def test_a_stale_number_is_noticed() -> None:
    mark = "<!--= a.b -->1.52<!--/-->"
    assert values.fill(mark, {"a": {"b": 1.7}}, {}) != mark
    assert kept.differences({"a": 1.52}, {"a": 1.7}) == ["a: 1.52, now 1.7"]
    assert kept.differences({"a": 1.52, "b": 1e-16}, {"a": 1.521, "b": 3e-15}) == []

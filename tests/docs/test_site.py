"""The site builds without warnings, links to nothing that is missing, and reads well in a browser."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import o2td
from docs._tools import check
from tests.browser import SCHEMES, WIDTHS, chromium, stumbles

from .blocks import ROOT

SAMPLE = (
    *("index.html", "start.html", "book/oblique-projection.html", "book/paper.html"),
    *("methods/index.html", "methods/O2TD.html", "methods/LSTD.html", "play.html"),
    *("guides/logs.html", "guides/algorithm.html"),
    *("reference/exact.html", "reference/commands.html", "contributing.html"),
)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once for all test processes."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    built, done = shared / "site", shared / "site.built"
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(built)]
            settings = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
            made = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True)
            assert made.returncode == 0, made.stdout + made.stderr
            assert "WARNING" not in made.stdout + made.stderr
            done.touch()
    return built


def test_every_link_anchor_and_image_exists(site: Path) -> None:
    assert check.problems(site) == []


def test_every_method_has_a_page_with_its_measured_part(site: Path) -> None:
    from o2td.registry import LEARNERS, SOLVERS

    for name in (*LEARNERS.names(), *SOLVERS.names()):
        page = check.read(site / "methods" / f"{name}.html")
        assert "measured-here" in page.ids, name
        assert page.formulas > 0, name
        assert (ROOT / "docs" / "methods" / f"{name}.md").exists(), name


def test_it_can_be_hosted_anywhere(site: Path) -> None:
    """Every page says what it is and shows a picture; the one for missing pages is relative."""
    for path in site.rglob("*.html"):
        text = path.read_text("utf-8")
        if path.name in ("404.html", "play.html"):
            continue
        assert '<meta property="og:image"' in text, path
        about = re.search(r'<meta name="description" content="([^"]+)"', text)
        assert about, path
    lost = (site / "404.html").read_text("utf-8")
    assert re.findall(r'(?:href|src)="/[^"]*"', lost) == []
    assert (site / "sitemap.xml").exists()
    assert f"o2td {o2td.__version__}" in (site / "index.html").read_text("utf-8")


def test_a_broken_page_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "other.html").write_text("<p id='here'></p>")
    (tmp_path / "page.html").write_text(
        "<a href='missing.html'></a><a href='other.html#nowhere'></a><a href='other.html#here'></a>"
        "<img src='https://example.org/x.png' alt='x'><img src='other.html'><p>{{ name }}</p>"
    )
    found = "\n".join(check.problems(tmp_path))
    for words in ("no such file", "no such anchor", "from elsewhere", "no words", "unrendered"):
        assert words in found
    assert "#here" not in found


@pytest.mark.browser
def test_a_sample_of_pages_in_a_browser(site: Path) -> None:
    with chromium() as browser:
        found = [
            sentence
            for page in SAMPLE
            for width in WIDTHS
            for sentence in stumbles(browser, site / page, width, SCHEMES[width < 1000])
        ]
    assert found == []


@pytest.mark.slow
@pytest.mark.browser
def test_every_page_in_a_browser(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    with chromium() as browser:
        found = [
            sentence
            for page in pages
            for width in WIDTHS
            for scheme in SCHEMES
            for sentence in stumbles(browser, page, width, scheme)
        ]
    assert found == []


@pytest.mark.browser
def test_search_works_from_the_file_system(site: Path) -> None:
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto((site / "index.html").as_uri())
        # Key by key: the theme reads the box when a key is released, and `fill` presses none.
        page.click("input.md-search__input", timeout=120_000)
        page.keyboard.type("oblique projection")
        page.wait_for_selector(".md-search-result__item", timeout=120_000)
        first = page.inner_text(".md-search-result__item h1, .md-search-result__item h2")
        assert "oblique projection" in first.lower()


@pytest.mark.browser
def test_the_browser_notices_what_is_wrong(tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text(
        "<!doctype html><main><div style='width:2000px'>wide</div><img src='gone.png'>"
        "<math></math><script>throw Error('broken')</script></main>"
    )
    with chromium() as browser:
        found = "\n".join(stumbles(browser, page, 390))
    for words in ("wider than the page", "is not rendered", "broken", "could not load"):
        assert words in found

"""The page of an evaluation in a browser: whole, quiet, and readable on a laptop and a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from o2td.cli import main
from tests.browser import SCHEMES, WIDTHS, chromium, stumbles

HOSTILE = ("<script>document.title='taken'</script>`x|$y$", 'a"><img src=x onerror=alert(2)>')


def line_log(episodes: int = 60, seed: int = 3) -> pl.DataFrame:
    """A point pushed about a line and a second variable that follows; behaviour not logged."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    for episode in range(episodes):
        x = rng.normal()
        for step in range(12):
            action = int(rng.random() < 0.5)
            after = 0.8 * x + 0.5 * (2 * action - 1) + 0.1 * rng.normal()
            wanted = 0.7 if (x < 0) == bool(action) else 0.3
            last = step == 11
            rows.append((episode, step, x, x**3, action, -abs(x), last, False, wanted))
            x = after
    names = ["episode", "step", *HOSTILE, "action", "reward", "terminated", "truncated"]
    return pl.DataFrame(rows, schema=[*names, "target_prob"], orient="row")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a log with hostile names, all methods, chosen features, an estimated behaviour."""
    folder = tmp_path_factory.mktemp("page")
    line_log().write_parquet(folder / "log.parquet")
    observed = "\n".join(f"  '''{name}'''," for name in HOSTILE)
    (folder / "names.toml").write_text(f"observation = [\n{observed}\n]\n")
    given = [str(folder / "log.parquet"), "--discount", "0.9", "-c", str(folder / "names.toml")]
    assert main(["evaluate", *given, "--all", "--json", "--out", str(folder / "answer")]) == 0
    return folder / "answer" / "report.html"


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of three policies, one with a hostile name, whose columns the page must name."""
    folder = tmp_path_factory.mktemp("compared")
    log = line_log().rename({HOSTILE[0]: "obs_0", HOSTILE[1]: "obs_1", "target_prob": "bold_prob"})
    log = log.with_columns(behavior_prob=0.5, timid=0.5 * pl.col("bold_prob") + 0.25)
    log.write_parquet(folder / "log.parquet")
    named = ["bold=bold_prob", "timid", "<i>wild</i>`$x$=timid"]
    given = [part for name in named for part in ("--target", name)]
    asked = [str(folder / "log.parquet"), "--discount", "0.9", *given, "--json"]
    assert main(["evaluate", *asked, "--out", str(folder / "answer")]) == 0
    return folder / "answer" / "report.html"


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("which", ["page", "compared"])
def test_a_reader_stumbles_over_nothing(
    which: str, scheme: str, request: pytest.FixtureRequest
) -> None:
    page: Path = request.getfixturevalue(which)
    with chromium() as browser:
        assert [one for width in WIDTHS for one in stumbles(browser, page, width, scheme)] == []


def test_a_comparison_names_every_policy_and_whose_figures_it_shows(compared: Path) -> None:
    with chromium() as browser:
        tab = browser.new_page(viewport={"width": 390, "height": 900})
        tab.goto(compared.as_uri())
        heads = tab.eval_on_selector_all("h2", "all => all.map((one) => one.textContent)")
        assert heads[:3] == ["Verdict", "Policies", "Differences"]
        for place, count in (("#policies", 4), ("#differences", 6)):
            assert tab.locator(f"{place} tbody tr").count() == count
        first = tab.locator("#policies tbody td").first.inner_text()
        assert tab.locator("#evidence p").first.inner_text() == f"For {first}, which comes first."
        read = tab.locator("#log").inner_text()
        assert "target_prob of bold\tbold_prob" in read
        assert "target_prob of timid\ttimid" in read
        shown = tab.eval_on_selector_all("img", "all => all.map((one) => one.naturalWidth)")
        assert len(shown) >= 4
        assert min(shown) > 0
        assert tab.locator("i").count() == 0
        tab.close()


def test_every_section_and_figure_is_there(page: Path) -> None:
    with chromium() as browser:
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(page.as_uri())
        heads = tab.eval_on_selector_all("h2", "all => all.map((one) => one.textContent)")
        assert heads[:2] == ["Verdict", "Estimates"]
        sizes = tab.eval_on_selector_all(
            "img", "all => all.map((one) => [one.alt, one.naturalWidth, one.clientWidth])"
        )
        assert len(sizes) == 6  # estimates, horizon, weights, first steps, curves, calibration
        assert all(alt and natural > 0 and shown > 200 for alt, natural, shown in sizes)
        tab.eval_on_selector_all("details", "all => all.forEach((one) => { one.open = true; })")
        wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert tab.evaluate(wide) is False
        tab.close()


def test_hostile_names_are_read_as_names(page: Path) -> None:
    with chromium() as browser:
        tab = browser.new_page()
        tab.goto(page.as_uri())
        assert tab.title() == "What would this policy be worth?"
        assert tab.locator("script").count() == 0
        assert tab.locator("img[onerror]").count() == 0
        assert "<img src=x onerror=alert(2)>" in tab.locator("body").inner_text()
        tab.close()


@pytest.mark.parametrize("which", ["page", "compared"])
def test_no_number_is_missing_in_what_a_reader_sees(
    which: str, request: pytest.FixtureRequest
) -> None:
    page: Path = request.getfixturevalue(which)
    with chromium() as browser:
        tab = browser.new_page()
        tab.goto(page.as_uri())
        tab.eval_on_selector_all("details", "all => all.forEach((one) => { one.open = true; })")
        text = tab.locator("body").inner_text()
        tab.close()
    words = text.replace(",", " ").replace("[", " ").replace("]", " ").lower().split()
    assert {"nan", "inf", "-inf", "none", "undefined"}.isdisjoint(words)

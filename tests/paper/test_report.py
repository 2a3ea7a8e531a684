"""A real, small reproduction: figures that show something, tables that equal the store, a page."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from o2td.errors import FormatError, InputError
from o2td.experiments import results, summary
from o2td.paper import build, load, reproduce
from tests.browser import WIDTHS, chromium, stumbles

ASKED = ["fig-oblique", "fig-baird", "tab-boyan"]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("reproduction")
    reproduce(ASKED, out=folder, workers=1)
    return build(folder)


def test_figures_are_drawn_and_not_blank(report: Any) -> None:
    from matplotlib.image import imread

    assert {"fig-oblique", "fig-baird-star", "fig-baird-survey"} <= set(report.figures)
    for name in report.figures:
        pixels = imread(report.path.parent / "figures" / f"{name}.png")[..., :3]
        assert min(pixels.shape[:2]) > 300
        assert (pixels < 0.5).any(axis=-1).mean() > 0.003  # ink
        packed = (pixels[::3, ::3] * 15).astype(int) @ [256, 16, 1]
        assert len(np.unique(packed)) > 10
        root = ET.parse(report.path.parent / "figures" / f"{name}.svg").getroot()  # noqa: S314
        assert root.tag.endswith("svg")
        assert len(list(root.iter())) > 50


def test_csv_equals_the_store(report: Any) -> None:
    record = load(report.path.parent).about("fig-baird")
    for way, words in (("shown", "printed"), ("tuned", "tuned")):
        table = summary(results(report.path.parent, "fig-baird", ids=record[way]))
        for form in ("star", "survey"):
            csv = pl.read_csv(report.path.parent / "figures" / f"fig-baird-{form}.csv")
            ours = csv.filter(step_sizes=words)
            theirs = table.filter(pl.col("domain").str.contains(form))
            assert len(ours) == len(theirs) > 100
            keys = ["algorithm", "metric", "step"]
            joined = ours.join(theirs, on=keys, suffix="_store")
            assert len(joined) == len(ours)
            for column in ("mean", "low", "high", "diverged_share", "runs"):
                np.testing.assert_array_equal(joined[column], joined[f"{column}_store"])


def test_the_page_has_the_claims_and_every_section(report: Any) -> None:
    text = report.path.read_text(encoding="utf-8")
    assert [row["id"] for row in report.claims] == [9]
    assert text.index('id="claims"') < text.index('id="guide"') < text.index('id="fig-oblique"')
    for anchor in ("fig-baird", "tab-boyan", "made"):
        assert f'id="{anchor}"' in text
    assert "not reproduced" in text  # as printed, the ratio cancels


@pytest.mark.browser
def test_the_page_in_a_browser(report: Any) -> None:
    with chromium() as browser:
        assert [s for width in WIDTHS for s in stumbles(browser, report.path, width)] == []
        page = browser.new_page()
        page.goto(report.path.as_uri())
        widths = page.evaluate("() => [...document.images].map((e) => e.naturalWidth)")
        assert len(widths) >= 6
        assert min(widths) > 100


def test_a_second_build_gives_the_same_page(tmp_path: Path) -> None:
    reproduce(["fig-oblique", "tab-boyan"], out=tmp_path, workers=1)
    before = build(tmp_path).path.read_bytes()
    assert build(tmp_path).path.read_bytes() == before


def test_a_folder_without_a_reproduction(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run o2td reproduce first"):
        build(tmp_path)
    (tmp_path / "reproduction.json").write_text("{")
    with pytest.raises(FormatError, match="damaged"):
        build(tmp_path)


def test_lost_files_are_noticed(tmp_path: Path) -> None:
    reproduce(["tab-boyan"], out=tmp_path, workers=1)
    next((tmp_path / "runs").iterdir()).unlink()
    with pytest.raises(InputError, match="1 files of tab-boyan are gone"):
        build(tmp_path)


@pytest.mark.slow
@pytest.mark.browser
def test_the_whole_quick_profile(tmp_path: Path) -> None:
    reproduce(out=tmp_path)
    whole = build(tmp_path)
    assert [row["id"] for row in whole.claims] == list(range(1, 17))
    assert len(whole.figures) >= 20
    with chromium() as browser:
        assert [s for width in WIDTHS for s in stumbles(browser, whole.path, width)] == []

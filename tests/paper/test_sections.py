"""True values from roll-outs: the report says how well they are known, and shades what is below."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from o2td.paper import build, reproduce
from o2td.paper.sections import Folder, learning
from tests.paper.drawn import drawn, rows

SHADED = "#f2f2f2"


def text_of(svg: Path) -> str:
    return svg.read_text(encoding="utf-8")


def test_a_noise_floor_within_the_view_is_shaded(made: Callable[[], Any], tmp_path: Path) -> None:
    results = made().runs("fig-energy", rows(0.15)).results()
    page = drawn(results, Folder(tmp_path / "figures"), learning, "fig-energy", "Lead.")
    assert "true values from roll-outs (40 states, 30 roll-outs each)" in page
    assert "whose standard error is 0.150" in page
    assert "cannot be told from zero" in page
    assert "standard error of V" in page.partition("<details")[2]  # the row of the table
    assert SHADED in text_of(tmp_path / "figures" / "fig-energy.svg")
    csv = pl.read_csv(tmp_path / "figures" / "fig-energy.csv")
    assert csv.filter(metric="rmse")["truth_error"].to_list() == pytest.approx([0.15] * 3)
    assert csv.filter(metric="rmspbe")["truth_error"].null_count() == 3


def test_a_noise_floor_far_below_leaves_the_view_as_it_is(
    made: Callable[[], Any], tmp_path: Path
) -> None:
    results = made().runs("fig-energy", rows(0.001)).results()
    page = drawn(results, Folder(tmp_path / "figures"), learning, "fig-energy", "Lead.")
    assert "whose standard error is 0.001" in page
    assert SHADED not in text_of(tmp_path / "figures" / "fig-energy.svg")
    cells = page.partition("standard error of V</td>")[2].partition("</tr>")[0]
    assert re.findall(r">([^<>]+)</td>", cells) == ["–", "0.00100", "–", "–"]


def test_roll_outs_that_are_all_the_same_have_no_error(
    made: Callable[[], Any], tmp_path: Path
) -> None:
    results = made().runs("fig-car-seq", rows(0.0)).results()
    page = drawn(results, Folder(tmp_path / "figures"), learning, "fig-car-seq", "Lead.")
    assert "these values have no standard error" in page
    assert SHADED not in text_of(tmp_path / "figures" / "fig-car-seq.svg")


def test_exact_truth_and_older_stores_say_nothing(made: Callable[[], Any], tmp_path: Path) -> None:
    results = made().runs("fig-baird", rows(None)).results()
    page = drawn(results, Folder(tmp_path / "figures"), learning, "fig-baird", "Lead.")
    assert "standard error" not in page


@pytest.mark.slow
def test_a_real_reproduction_shows_what_its_roll_outs_gave(tmp_path: Path) -> None:
    reproduce(["fig-energy"], out=tmp_path, workers=1)
    page = build(tmp_path).path.read_text(encoding="utf-8")
    assert "(500 states, 100 roll-outs each), whose standard error is 0.194" in page

"""True values from roll-outs: the report says how well they are known, and shades what is below."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from o2td.paper import build, reproduce
from o2td.paper.board import leaderboard
from o2td.paper.comparisons import discounts
from o2td.paper.sections import learning
from o2td.report import Page, Section
from o2td.report.curves import Panel, final_rows
from o2td.report.drawing import Folder, styled
from o2td.report.truth_error import noise, sentence

SHADED = "#f2f2f2"


def rows(error: float | None, least: float = 0.1, **more: Any) -> list[dict[str, Any]]:
    """Errors of one method that fall from 2 to `least` in three records, of two runs."""
    return [
        {
            "algorithm": "TD",
            "run": run,
            "metric": metric,
            "step": 50 * (k + 1),
            "value": value * (1.0 + 0.01 * run),
            **({"truth_error": error if metric == "rmse" else None} if error is not None else {}),
            **more,
        }
        for metric in ("rmse", "rmspbe")
        for run in range(2)
        for k, value in enumerate((2.0, 0.5, least))
    ]


def drawn(results: Any, tmp_path: Path, make: Callable[..., Section], *more: Any) -> str:
    with styled():
        section = make(results, Folder(tmp_path / "figures"), *more)
    return Page("t", "l", [section], "f").html()


def text_of(svg: Path) -> str:
    return svg.read_text(encoding="utf-8")


def test_a_noise_floor_within_the_view_is_shaded(made: Callable[[], Any], tmp_path: Path) -> None:
    results = made().runs("fig-energy", rows(0.15)).results()
    page = drawn(results, tmp_path, learning, "fig-energy", "Lead.")
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
    page = drawn(results, tmp_path, learning, "fig-energy", "Lead.")
    assert "whose standard error is 0.001" in page
    assert SHADED not in text_of(tmp_path / "figures" / "fig-energy.svg")
    panel = Panel("", results.curves("fig-energy"))
    assert final_rows(panel)[-1] == ["standard error of V", "–", "0.00100", "–", "–"]


def test_roll_outs_that_are_all_the_same_have_no_error(
    made: Callable[[], Any], tmp_path: Path
) -> None:
    results = made().runs("fig-car-seq", rows(0.0)).results()
    page = drawn(results, tmp_path, learning, "fig-car-seq", "Lead.")
    assert "these values have no standard error" in page
    assert SHADED not in text_of(tmp_path / "figures" / "fig-car-seq.svg")


def test_exact_truth_and_older_stores_say_nothing(made: Callable[[], Any], tmp_path: Path) -> None:
    results = made().runs("fig-baird", rows(None)).results()
    page = drawn(results, tmp_path, learning, "fig-baird", "Lead.")
    assert "standard error" not in page
    assert noise(results.curves("fig-baird")) is None
    assert noise(results.curves("fig-baird").drop("truth_error")) is None
    assert sentence(results.curves("fig-baird"), results.truth("fig-baird")) == ""


def test_other_discounts_tell_it_too(made: Callable[[], Any], tmp_path: Path) -> None:
    records = rows(0.02, domain="mountain_car(discount=0.9)")
    results = made().runs("more-car", records).results()
    assert "whose standard error is 0.0200" in drawn(results, tmp_path, discounts)


def test_the_leaderboard_has_a_row_for_it(made: Callable[[], Any], tmp_path: Path) -> None:
    exact = [row for row in rows(None) if row["metric"] == "rmse"]
    rolled = [row for row in rows(0.03) if row["metric"] == "rmse"]
    results = (
        made()
        .runs("board-garnet", exact, "tuned")
        .runs("board-mountain-car", rolled, "tuned")
        .results()
    )
    page = drawn(results, tmp_path, leaderboard)
    assert "with a standard error (mountain car 0.0300)" in page
    cells = page.partition("standard error of V</td>")[2].partition("</tr>")[0]
    assert cells.count("–</td>") == 2  # no ratio, and exact on garnets
    assert "0.0300</td>" in cells


@pytest.mark.slow
def test_a_real_reproduction_shows_what_its_roll_outs_gave(tmp_path: Path) -> None:
    reproduce(["fig-energy"], out=tmp_path, workers=1)
    page = build(tmp_path).path.read_text(encoding="utf-8")
    assert "(500 states, 100 roll-outs each), whose standard error is 0.194" in page

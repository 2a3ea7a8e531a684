"""The leaderboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from o2td.paper.board import Folder, leaderboard
from tests.paper.drawn import drawn, rows


def test_the_leaderboard_has_a_row_for_it(made: Callable[[], Any], tmp_path: Path) -> None:
    exact = [row for row in rows(None) if row["metric"] == "rmse"]
    rolled = [row for row in rows(0.03) if row["metric"] == "rmse"]
    results = (
        made()
        .runs("board-garnet", exact, "tuned")
        .runs("board-mountain-car", rolled, "tuned")
        .results()
    )
    page = drawn(results, Folder(tmp_path / "figures"), leaderboard)
    assert "with a standard error (mountain car 0.0300)" in page
    cells = page.partition("standard error of V</td>")[2].partition("</tr>")[0]
    assert cells.count("–</td>") == 2  # no ratio, and exact on garnets
    assert "0.0300</td>" in cells

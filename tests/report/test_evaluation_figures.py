"""Figures of an evaluation where intervals are unbounded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from o2td import evaluation
from o2td.errors import InputError
from o2td.report.evaluation_figures import estimates_figure


def estimate(method: str, value: float, low: float | None, high: float | None) -> dict[str, Any]:
    row = {"method": method, "title": method, "verdict": "cannot answer", "value": value}
    return {**row, "low": low, "high": high, "approximation_error": None}


def test_a_log_of_one_row_has_a_page(tmp_path: Path):
    row = {"episode": 0, "step": 0, "obs_0": 0.5, "action": 1, "reward": 2.0, "terminated": True}
    log = pl.DataFrame([{**row, "behavior_prob": 0.5, "target_prob": 0.8}])
    answer = evaluation.evaluate(log, discount=0.9, methods="wis")
    assert (answer["wis"].low, answer["wis"].high) == (None, None)
    page = answer.report(tmp_path / "page.html").read_text()
    assert "<figure" in page


@pytest.mark.parametrize("value", [3.2, 0.0, -1e9])
def test_unbounded_intervals_leave_finite_axes(value: float):
    rows = [estimate(name, value, None, None) for name in ("pdis", "dr")]
    low, high = estimates_figure(rows).axes[0].get_xlim()
    assert low < value < high


def test_unbounded_intervals_do_not_widen_the_axis():
    rows = [estimate("pdis", 5.0, None, None), estimate("dr", 1.0, 0.0, 2.0)]
    assert estimates_figure(rows).axes[0].get_xlim() == pytest.approx((-0.1, 2.1))


def test_estimates_without_a_value_are_refused_as_the_page_leaves_their_figure_out(tmp_path: Path):
    rows = {"episode": [0, 1], "obs_0": [0.1, 0.2], "action": 0, "reward": 1.0, "terminated": True}
    log = pl.DataFrame(rows).with_columns(behavior_prob=1.0, target_prob=1.0)
    answer = evaluation.evaluate(log, discount=0.9, methods="lstdq")
    with pytest.raises(InputError, match="plot: no estimate has a value; print the answer"):
        answer.plot()
    assert "no per-action probabilities" in answer.report(tmp_path / "page.html").read_text()

"""Which parameters vary in a table, and the best of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from o2td import experiments
from o2td.report.sensitivity import best_by, varied


def test_parameters_that_vary(folder: Path) -> None:
    table = experiments.load(folder).totals("walk").filter(metric="rmse", scheme="iid")
    assert varied(table) == ["step_size", "trace"]
    found: dict[float, Any] = best_by(table.filter(algorithm="TD"), "trace")
    assert list(found) == [0.0, 0.9]

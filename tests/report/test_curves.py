"""Curves of few records."""

from __future__ import annotations

from pathlib import Path

from o2td import experiments
from o2td.report.curves import Panel, columns, final_rows


def test_a_solver_with_one_record_is_seen(folder: Path) -> None:
    table = experiments.load(folder).curves("walk").filter(algorithm="LSTD", step=300)
    panel = Panel("", table)
    (line,) = columns([panel]).axes[0].lines
    assert line.get_markevery()[0] == 0
    assert final_rows(panel)[0][0] == "LSTD"

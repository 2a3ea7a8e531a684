"""Comparisons beyond the paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from o2td.paper.comparisons import Folder, discounts
from tests.paper.drawn import drawn, rows


def test_other_discounts_tell_it_too(made: Callable[[], Any], tmp_path: Path) -> None:
    records = rows(0.02, domain="mountain_car(discount=0.9)")
    results = made().runs("more-car", records).results()
    assert "whose standard error is 0.0200" in drawn(
        results, Folder(tmp_path / "figures"), discounts
    )

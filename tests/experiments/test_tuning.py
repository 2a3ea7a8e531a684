"""One grid for all algorithms."""

from __future__ import annotations

from o2td.experiments import load_spec
from o2td.experiments.tuning import tuning_cells
from tests.experiments.specs import TUNED


def test_the_grid_is_one_for_all_that_have_the_parameter() -> None:
    cells = tuning_cells(load_spec(TUNED.replace("SCORE", "final")))
    count = {label: sum(c.label == label for c in cells) for label in ("TD", "GTD2", "TDRC")}
    assert count == {"TD": 3, "GTD2": 6, "TDRC": 3}

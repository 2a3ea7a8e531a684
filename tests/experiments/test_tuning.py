"""One grid for all algorithms."""

from __future__ import annotations

from o2td.experiments import load_spec
from o2td.experiments.tuning import tuning_cells

TUNED = """
name = "tuned"
steps = 200
runs = 4
every = 50
seed = 5
metrics = ["rmse", "rmspbe"]
domain.name = "random_walk"

[[algorithms]]
name = "TD"

[[algorithms]]
name = "GTD2"
parameters = { second_step_size = 0.1 }

[[algorithms]]
name = "TDRC"
tune = ["step_size"]

[tuning]
seed = 6
runs = 5
score = "SCORE"

[tuning.grid]
step_size = [1e-6, 0.1, 1e200]
second_step_size = [{ ratio = 1.0 }, { ratio = 2.0 }]
"""


def test_the_grid_is_one_for_all_that_have_the_parameter() -> None:
    cells = tuning_cells(load_spec(TUNED.replace("SCORE", "final")))
    count = {label: sum(c.label == label for c in cells) for label in ("TD", "GTD2", "TDRC")}
    assert count == {"TD": 3, "GTD2": 6, "TDRC": 3}

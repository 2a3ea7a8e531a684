"""The catalogue knows every spec and study."""

from __future__ import annotations

from o2td.paper import FIGURES, STUDIES, specs
from o2td.paper.catalogue import EXPERIMENTS


def test_every_experiment_and_study_belongs_to_a_figure() -> None:
    assert set(EXPERIMENTS) == set(specs())
    assert {part for parts in FIGURES.values() for part in parts} == {*EXPERIMENTS, *STUDIES}

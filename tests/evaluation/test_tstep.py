"""Values over a number of steps: doubts about a clock, and what other features say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from o2td.evaluation import Outcome, Thresholds
from o2td.evaluation.estimators.tstep import (
    FeatureSystem,
    ModelSystem,
    TStepEstimator,
    clock_doubts,
)


def study_of(**given: Any) -> Any:
    parts: dict[str, Any] = {
        "settings": SimpleNamespace(horizon=None, thresholds=Thresholds()),
        "steps": 12,
        "choice": SimpleNamespace(tabular=object(), lead=None, width=3, average=False),
    }
    return SimpleNamespace(**parts | given)


@pytest.mark.parametrize(
    ("endless", "approximation", "doubt", "error"),
    [
        (2.24, None, None, 0.24),
        (1.76, 0.1, None, 0.24),
        (2.24, 0.3, None, 0.3),
        (2.25, 0.1, "it would be 2.25", 0.1),
        (-7.5, 0.1, "it would be -7.5", 0.1),
        (np.inf, 0.1, "it cannot be told", 0.1),
        (np.nan, 0.1, "it cannot be told", 0.1),
    ],
)
def test_a_clock_matters_from_a_quarter_of_the_half_width_on(
    endless: float, approximation: float | None, doubt: str | None, error: float
) -> None:
    case: Any = SimpleNamespace(
        value=2.0, half_width=1.0, outcome=Outcome(2.0, approximation=approximation)
    )
    found = list(clock_doubts(case, study_of(), endless))
    assert case.outcome.approximation == pytest.approx(error)
    assert bool(found) == (doubt is not None)
    if doubt is not None:
        assert found[0][0] == "caution"
        assert doubt in found[0][1]
        assert "a clock ends episodes at step 12" in found[0][1]
    asked = study_of(settings=SimpleNamespace(horizon=12))
    assert list(clock_doubts(case, asked, endless)) == []


def test_what_is_missing_and_what_is_too_large() -> None:
    made = TStepEstimator()
    assert made.missing(study_of()) == ""
    assert made.missing(study_of(steps=None)).startswith("no horizon was requested")
    bare = SimpleNamespace(tabular=None, lead=object(), width=3)
    assert "features name cells" in made.missing(study_of(choice=bare))
    lead = FeatureSystem.__new__(FeatureSystem)
    dense = SimpleNamespace(tabular=None, lead=lead, width=1024)
    assert made.missing(study_of(choice=dense)) == ""
    assert not made.too_large(study_of(choice=dense))
    dense.width = 1025
    assert made.too_large(study_of(choice=dense))
    for states, large in ((2048, False), (2049, True)):
        table = SimpleNamespace(tabular=SimpleNamespace(n_features_out_=states), width=9999)
        assert made.too_large(study_of(choice=table)) == large
    assert made.spared(study_of()) == ("clock",)


def fit(value: float, endless: float = 0.0, name: str = "basis") -> Any:
    system = ModelSystem.__new__(ModelSystem)
    vars(system).update(endless=lambda: endless, unlogged=lambda ahead: 0.1 * ahead, trace=0.0)
    vars(system).update(basis=SimpleNamespace(name=name), steps=12, cell=np.arange(4))
    return SimpleNamespace(value=value, system=system, condition=5.0, model=lambda: None)


def estimated(blend: Any, members: Any, middle: Any, **given: Any) -> Outcome:
    made = TStepEstimator()
    made.blend, made.members, made.middle, made.column = blend, members, middle, 0
    influences = SimpleNamespace(found=lambda column, blend: (None, None))
    return made.estimate(study_of(influences=influences, **given))


def test_a_model_of_states_has_no_error_of_features() -> None:
    one = fit(3.0, 9.5)
    found = estimated([(1.0, one)], [one], [(1.0, one)])
    assert (found.value, found.approximation, found.condition) == (3.0, 0.0, 5.0)
    assert found.about == (
        "12 steps through a plug-in model of 4 states; without an end the same model gives 9.5"
    )
    assert found.variants == {}


def test_other_features_show_how_far_they_move_the_value() -> None:
    """The distance of the middle from the value, and how far the fits are apart."""
    one, two, three = fit(3.0, 8.0, "a"), fit(5.0, 10.0, "b"), fit(4.5, 0.0, "c")
    lead = FeatureSystem.__new__(FeatureSystem)
    features = SimpleNamespace(tabular=None, lead=lead, width=3)
    middle = [(0.5, two), (0.5, three)]
    found = estimated([(1.0, one)], [one, two, three], middle, choice=features)
    assert found.approximation == pytest.approx(abs(4.75 - 3.0) + (5.0 - 3.0) / 2.0)
    assert "mean of 1 of 3 fits, the first on a; without an end" in found.about
    assert found.variants == {"a, 12 steps": 3.0, "b, 12 steps": 5.0, "c, 12 steps": 4.5}
    both = estimated(
        [(0.25, one), (0.75, two)], [one, two], [(0.5, one), (0.5, two)], choice=features
    )
    assert both.value == 4.5
    assert both.about.endswith("gives 9.5")
    alone = estimated([(1.0, one)], [one], [(1.0, one)], choice=features)
    assert alone.approximation is None
    assert alone.variants == {}

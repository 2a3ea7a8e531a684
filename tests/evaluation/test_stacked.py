"""States with part of their past: how far more of it might move the answer, and when that matters."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from o2td.evaluation import Outcome, Thresholds
from o2td.evaluation.estimators import stacked
from o2td.evaluation.estimators.stacked import ModelSystem, StackedEstimator


def model(steps: int | None, endless: float) -> Any:
    """A model with so many steps, whose value without an end is given."""
    found = ModelSystem.__new__(ModelSystem)
    found.steps = steps
    found.endless = lambda: endless  # type: ignore[method-assign]
    found.unlogged = lambda ahead: 0.25 * ahead  # type: ignore[method-assign]
    found.basis = SimpleNamespace(name="state with the step")  # type: ignore[assignment]
    found.cell = np.arange(6)
    return found


def made(steps: int | None = None, value: float = 3.0, endless: float = 4.0) -> StackedEstimator:
    found = StackedEstimator()
    found.fit = SimpleNamespace(system=model(steps, endless), value=value)  # type: ignore[assignment]
    found.column = 0
    return found


def study_of(**given: Any) -> Any:
    """Six episodes: two of one row, three of three, one of five."""
    lengths = np.zeros(8, dtype=np.int64)
    lengths[[1, 3, 5]] = [2, 3, 1]
    parts: dict[str, Any] = {
        "weighed": SimpleNamespace(lengths=lengths),
        "survey": SimpleNamespace(largest_discount=0.5, ahead=lambda: 2.0),
        "reference": SimpleNamespace(value=1.0),
        "grounds": SimpleNamespace(spread=2.0),
        "settings": SimpleNamespace(thresholds=Thresholds(), horizon=None),
        "steps": None,
        "past": SimpleNamespace(parts=("step",)),
        "influences": SimpleNamespace(found=lambda column, blend: (None, np.ones(2))),
    }
    return SimpleNamespace(**parts | given)


# Of rows at steps 0 to 4, six, four, four, one and one, discounted by half each.
SHARE = (4 / 4 + 1 / 8 + 1 / 16) / (6 + 4 / 2 + 4 / 4 + 1 / 8 + 1 / 16)


@pytest.mark.parametrize(("steps", "moved"), [(None, 2.0), (9, 3.0)])
def test_more_of_the_past_may_move_the_answer_as_far_in_rows_that_have_more(
    steps: int | None, moved: float
) -> None:
    """With a clock that is counted, the value without an end is compared."""
    found = made(steps).estimate(study_of())
    assert found.approximation == pytest.approx(moved * SHARE, rel=1e-12)
    assert found.value == 3.0
    assert found.about.startswith("plug-in model of 6 cells: state with the step")
    assert made().unlogged(study_of()) == 0.5


def test_without_a_past_that_helps_there_is_no_value() -> None:
    study = study_of(past=None)
    found = made().estimate(study)
    assert np.isnan(found.value)
    assert found.trouble.startswith("the past adds nothing to the state")
    assert made().missing(study_of()) == ""


@pytest.mark.parametrize(("value", "doubted"), [(20.0, True), (10.0, False)])
def test_a_past_that_moves_the_answer_far_is_a_doubt(value: float, doubted: bool) -> None:
    case: Any = SimpleNamespace(value=value, outcome=Outcome(value))
    found = list(made(value=value).doubts(case, study_of()))
    apart = abs(value - 1.0) * SHARE
    assert (apart > 0.1 * (value + 2.0)) == doubted == bool(found)
    if found:
        assert found[0][0] == "caution"
        assert found[0][2:] == ("width",)
        assert (
            f"moved the answer by {value - 1.0:.2g}; earlier rows might move it by {apart:.2g}"
            in (found[0][1])
        )


@pytest.mark.parametrize(
    ("steps", "horizon", "said"),
    [(9, None, "it would be 40"), (None, None, "it cannot be told"), (9, 9, None)],
)
def test_a_clock_that_was_found_is_a_doubt_unless_it_was_asked_for(
    steps: int | None, horizon: int | None, said: str | None
) -> None:
    case: Any = SimpleNamespace(value=1.5, outcome=Outcome(1.5), half_width=1.0)
    settings = SimpleNamespace(thresholds=Thresholds(approximation_caution=9.0), horizon=horizon)
    study = study_of(steps=9, settings=settings)
    found = list(made(steps, 1.5, 40.0).doubts(case, study))
    assert [said is not None and said in doubt[1] for doubt in found] == [True] * (said is not None)
    assert list(made(steps, 1.5, 40.0).doubts(case, study_of(settings=settings))) == []


@pytest.mark.parametrize("alarming", [True, False])
def test_the_test_of_memory_is_no_doubt_where_it_passes_with_the_past(
    monkeypatch: pytest.MonkeyPatch, alarming: bool
) -> None:
    monkeypatch.setattr(stacked, "seen", lambda study: "view")
    monkeypatch.setattr(stacked, "strata", lambda view, past: (view, past))
    found = SimpleNamespace(alarming=alarming)
    monkeypatch.setattr(stacked, "dependence", lambda view, stratum: (found, view, stratum))
    study = study_of()
    expected = ("clock",) if alarming else ("clock", "memory")
    assert StackedEstimator().spared(study) == expected
    assert StackedEstimator().spared(study_of(past=None)) == ("clock",)


def test_steps_are_counted_once() -> None:
    asked = []
    study = study_of(model=lambda basis, steps: asked.append((basis.name, steps)), steps=9)
    for parts in (("step", "action"), ("action",)):
        study.past = Named(parts)
        StackedEstimator().system(study)
    assert asked == [("past of step, action", None), ("past of action", 9)]


class Named:
    """A past that only has its parts."""

    def __init__(self, parts: tuple[str, ...]) -> None:
        self.parts = parts

    def __str__(self) -> str:
        return f"past of {', '.join(self.parts)}"

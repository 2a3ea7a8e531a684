"""Doubts that a family of estimators shares: at their thresholds, just below and just above."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from o2td.evaluation import Outcome, Thresholds
from o2td.evaluation.families import fit_doubts, hastened, lost, weight_doubts
from o2td.registry import ESTIMATORS

CAUTION, CANNOT = "caution", "cannot answer"


def grounds(**given: Any) -> Any:
    """A log without a doubt, but for what is given."""
    numbers: dict[str, Any] = {"effective": 90.0, "pareto": None, "share": None, "spread": 2.0}
    numbers |= {"mean_weight": (1.0, 0.1), "cut": 0.0, "thresholds": Thresholds()}
    return SimpleNamespace(**numbers | given)


def words(doubts: Any) -> list[tuple[str, str]]:
    """Each verdict with the first words of its reason."""
    return [(doubt[0], " ".join(doubt[1].split()[:3])) for doubt in doubts]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, []),
        ({"effective": 9.96}, [(CANNOT, "weights leave 10.0")]),
        ({"effective": 10.0}, [(CAUTION, "weights leave 10")]),
        ({"effective": 49.9}, [(CAUTION, "weights leave 50")]),
        ({"effective": 50.0}, []),
        ({"mean_weight": (0.75, 0.125)}, []),  # two standard errors below 1
        ({"mean_weight": (0.75, 0.124)}, [(CAUTION, "weights of histories")]),
        ({"mean_weight": (0.95, 0.0)}, []),
        ({"mean_weight": (0.949, 0.0)}, [(CAUTION, "weights of histories")]),
        ({"mean_weight": (0.5, 0.0), "effective": 49.0}, [(CAUTION, "weights leave 49")]),
        ({"pareto": 0.5}, []),
        ({"pareto": 0.51}, [(CAUTION, "the weights' variance")]),
        ({"pareto": 0.7}, [(CAUTION, "the weights' variance")]),
        ({"pareto": 0.71}, [(CANNOT, "the weights' tail")]),
        ({"share": 0.2}, []),
        ({"share": 0.21}, [(CAUTION, "one episode carries")]),
        (
            {"share": 0.5, "pareto": 0.9, "effective": 3.0},
            [
                (CANNOT, "weights leave 3.0"),
                (CANNOT, "the weights' tail"),
                (CAUTION, "one episode carries"),
            ],
        ),
    ],
)
def test_weights_of_whole_histories(given: dict[str, Any], expected: list[Any]) -> None:
    assert words(weight_doubts(grounds(**given))) == expected


def case_of(value: float = -2.0, **given: Any) -> Any:
    return SimpleNamespace(value=value, outcome=Outcome(value, **given))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"approximation": 0.0}, []),
        ({"approximation": 0.0, "condition": 1e13}, []),
        ({"approximation": 0.0, "condition": 1.01e13}, [(CAUTION, "the equations are")]),
        ({}, [(CAUTION, "the approximation error")]),
        ({"approximation": 0.4}, []),  # a tenth of |value| and spread
        ({"approximation": 0.41}, [(CAUTION, "other features would")]),
        ({"approximation": 1.0}, [(CAUTION, "other features would")]),
        ({"approximation": 1.01}, [(CANNOT, "other features change")]),
    ],
)
def test_equations_and_features_of_a_fit(given: dict[str, Any], expected: list[Any]) -> None:
    study: Any = SimpleNamespace(grounds=grounds())
    found = list(fit_doubts(case_of(**given), study))
    assert words(found) == expected
    assert [doubt[2:] for doubt in found] == [
        ("width",) if verdict == CAUTION and said.startswith("other") else ()
        for verdict, said in expected
    ]
    nothing: Any = SimpleNamespace(grounds=grounds(spread=0.0))
    assert list(fit_doubts(case_of(0.0, approximation=0.5), nothing)) == []


def history(name: str, carrying: float | None, steps: float, **given: Any) -> list[Any]:
    """What an estimator from weighted histories doubts of itself."""
    influence = None if carrying is None else SimpleNamespace(carrying=carrying)
    case: Any = SimpleNamespace(value=1.0, outcome=SimpleNamespace(influence=influence))
    weighed = SimpleNamespace(spread=lambda number: SimpleNamespace(carrying=steps))
    study: Any = SimpleNamespace(grounds=grounds(**given), weighed=weighed)
    return words(ESTIMATORS[name]().doubts(case, study))


@pytest.mark.parametrize(
    ("name", "carrying", "steps", "given", "hidden"),
    [
        ("is", 10.0, 9.9, {}, True),
        ("wis", 10.0, 9.9, {}, True),
        ("pdis", 10.0, 9.9, {}, False),
        ("wpdis", 10.0, 9.9, {}, False),
        ("is", 9.9, 9.8, {}, False),
        ("is", 40.0, 10.0, {}, False),
        ("is", None, 1.0, {}, False),
        ("is", 40.0, 1.0, {"effective": 50.0}, True),
        ("is", 40.0, 1.0, {"effective": 49.0}, False),
    ],
)
def test_weights_of_whole_episodes_hide_how_few_carry_each_step(
    name: str, carrying: float | None, steps: float, given: dict[str, Any], hidden: bool
) -> None:
    found = history(name, carrying, steps, **given)
    said = f"about {steps:.0f} episodes"
    assert ((CAUTION, said) in found) == hidden


@pytest.mark.parametrize(
    ("cut", "verdict"), [(0.01, None), (0.011, CAUTION), (0.5, CAUTION), (0.51, CANNOT)]
)
def test_histories_do_not_see_beyond_truncations(cut: float, verdict: str | None) -> None:
    expected = [] if verdict is None else [(verdict, "truncated episodes leave")]
    assert history("pdis", 90.0, 90.0, cut=cut) == expected


@pytest.mark.parametrize(
    ("cut", "base", "own", "expected"),
    [
        (0.01, CANNOT, None, []),
        (0.02, "trust", None, []),
        (0.02, CAUTION, None, []),
        (0.25, CAUTION, None, []),
        (0.26, CAUTION, None, [(CAUTION, "doubtful")]),
        (0.26, "trust", None, []),
        (0.25, CANNOT, None, [(CAUTION, "unknown")]),
        (0.26, CANNOT, None, [(CANNOT, "unknown")]),
        (0.02, CANNOT, object(), [(CAUTION, "there")]),
        (0.9, "trust", object(), [(CAUTION, "there")]),
    ],
)
def test_hybrids_are_as_doubtful_as_what_continues_truncated_episodes(
    cut: float, base: str, own: object, expected: list[Any]
) -> None:
    reference = SimpleNamespace(verdict=base, method="lstd")
    study: Any = SimpleNamespace(grounds=grounds(cut=cut), reference=reference, own=own)
    for name in ("dr", "wdr"):
        doubts = ESTIMATORS[name]().doubts(case_of(approximation=0.0), study)
        assert [(doubt[0], doubt[1].split()[-1]) for doubt in doubts] == expected


def hybrid(left: float, base: float | None, own: bool = False) -> Outcome:
    """The outcome of `wdr` whose column averages 0.25 about a fit of 3."""
    spread: Any = SimpleNamespace(mean=0.25, lanes=np.array([0.5, 0.0]))
    lead = SimpleNamespace(label="the lead")
    reference = SimpleNamespace(
        approximation=base, half_width=0.5, value=2.0, outcome=SimpleNamespace(condition=7.0)
    )
    study: Any = SimpleNamespace(
        corrected=lead,
        choice=SimpleNamespace(lead=lead if own else object()),
        survey=SimpleNamespace(left=lambda: left),
        reference=reference,
        own=object() if own else None,
        control=SimpleNamespace(mean=3.0),
        source=SimpleNamespace(own_values="their model"),
        influences=SimpleNamespace(spread=lambda column: spread),
    )
    estimator: Any = ESTIMATORS["wdr"]()
    estimator.column = 0
    found: Outcome = estimator.estimate(study)
    return found


def test_what_a_hybrid_cannot_correct_is_the_fits_error_by_the_discount_that_is_left() -> None:
    whole = hybrid(0.0, 0.1)
    assert (whole.value, whole.approximation, whole.condition) == (3.25, 0.0, 1.0)
    assert whole.lanes is not None
    assert whole.lanes.tolist() == [3.5, 3.0]
    assert whole.about == "weighted doubly robust, Q by LSTDQ on the other folds: the lead"
    cut = hybrid(0.2, 0.1)
    assert cut.approximation == pytest.approx(0.2 * (0.1 + 0.5))
    assert cut.condition == 7.0
    assert hybrid(0.2, None).approximation is None
    given = hybrid(0.2, 0.1, own=True)
    assert given.approximation == pytest.approx(0.2 * abs(3.0 - 2.0))
    assert given.about == "weighted doubly robust, their model, given and not fitted here"
    assert hybrid(0.2, 0.9, own=True).approximation == pytest.approx(0.2 * 1.4)
    assert hybrid(0.2, None, own=True).approximation is None


@pytest.mark.parametrize("name", ["lstd", "wis", "wdr", "lstdq"])
def test_rows_that_were_dropped_cost_each_family_what_it_needs_them_for(name: str) -> None:
    log: Any = grounds(hastened=0.01, hastened_actions=0.02, lost=0.03, lost_histories=0.04)
    (early, why), (gone, missing) = ESTIMATORS[name]().losses(log)
    fit = name in ("lstd", "lstdq")
    assert (early, gone) == (0.02 if name == "lstdq" else 0.01, 0.03 if fit else 0.04)
    assert (early, why) == hastened(early)
    assert f"values may be {early:.1%} too small" in why
    said = {"wis": "they are missing from", "wdr": "nothing corrects their part of"}
    assert missing.startswith(f"{gone:.1%} of the episodes lost their only row")
    assert (gone, missing) == lost(
        gone, f"{said.get(name, 'their start states are missing from')} the mean"
    )


@pytest.mark.parametrize(("name", "most"), [("lsetd", 1024), ("sotd", 1024), ("lstd_auto", 512)])
def test_what_is_too_large_runs_only_if_it_is_named(name: str, most: int) -> None:
    for width, large in ((most, False), (most + 1, True)):
        study: Any = SimpleNamespace(choice=SimpleNamespace(width=width))
        assert ESTIMATORS[name]().too_large(study) == large
    assert not ESTIMATORS["lstd"]().too_large(study)
    assert not ESTIMATORS["stacked"]().too_large(study)


def test_an_estimator_says_what_the_log_lacks() -> None:
    rows = {"next_target_probs": 1, "target_probs": 1, "action": 1}
    for name, said in (
        ("action", "the log has no actions"),
        ("target_probs", "the log has no per-action probabilities of the target"),
        (
            "next_target_probs",
            "the log has no per-action probabilities of the target, now and next",
        ),
    ):
        lacks = SimpleNamespace(rows=SimpleNamespace(**{**rows, name: None}))
        assert ESTIMATORS["lstdq"]().missing(SimpleNamespace(sample=lacks)) == said
    whole: Any = SimpleNamespace(sample=SimpleNamespace(rows=SimpleNamespace(**rows)))
    assert ESTIMATORS["lstdq"]().missing(whole) == ""


def test_a_failed_test_counts_less_against_what_takes_it_into_account() -> None:
    counts = {
        name: [ESTIMATORS[name]().fault(test) for test in ("memory", "clock")]
        for name in ("lstd", "lagged", "stacked", "magic", "wdr")
    }
    assert counts == {
        "lstd": [1.0, 1.0],
        "lagged": [0.5, 1.0],
        "stacked": [0.5, 1.0],
        "magic": [0.75, 0.75],
        "wdr": [1.0, 1.0],
    }

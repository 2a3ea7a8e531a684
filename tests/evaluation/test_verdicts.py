"""Words from numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from o2td.evaluation import Outcome, Thresholds
from o2td.evaluation.verdicts import (
    Case,
    Grounds,
    Interval,
    agreement,
    doubt_fits,
    judge,
    keep_in_range,
    recommend,
    veto,
)
from o2td.registry import ESTIMATORS


def test_a_shorter_interval_alone_never_makes_a_word_worse():
    study = SimpleNamespace(grounds=SimpleNamespace(thresholds=Thresholds(), spread=2.0))
    lstd, said = ESTIMATORS["lstd"](), []
    for half in (1.0, 0.1, 0.001):
        outcome = Outcome(3.0, approximation=0.3)
        case = Case(lstd, outcome, Interval(3.0 - half, 3.0 + half, "", half / 2.0))
        said.append(list(lstd.doubts(case, study)))
    assert said == [[], [], []]
    outcome = Outcome(3.0, approximation=0.8)
    case = Case(lstd, outcome, Interval(2.0, 4.0, "", 0.5))
    assert [doubt[0] for doubt in lstd.doubts(case, study)] == ["caution"]


def test_on_chosen_features_another_fit_goes_first_only_if_it_states_clearly_less():
    def case(name, half, approximation, beside):
        outcome = Outcome(3.0, approximation=approximation)
        found = Case(ESTIMATORS[name](), outcome, Interval(3.0 - half, 3.0 + half, "", half / 2.0))
        found.beside = beside
        return found

    lstd = case("lstd", 0.7, 0.3, False)
    assert recommend([lstd, case("lstdq", 0.65, 0.3, True)]) is lstd  # 0.95 of 1
    narrow = case("lstdq", 0.5, 0.3, True)
    assert recommend([lstd, narrow]) is narrow  # 0.8 of 1
    given = case("lstdq", 0.65, 0.3, False)
    assert recommend([lstd, given]) is given  # on given features the least error decides
    assert recommend([lstd, case("magic", 0.1, 0.0, True)]) is lstd  # that mends what is not broken


# -- doubts that all estimates share -------------------------------------------------------------------


def grounds(**given: Any) -> Grounds:
    """A log of a hundred episodes without a doubt, but for what is given."""
    numbers: dict[str, Any] = {
        "episodes": 100, "effective": 90.0, "pareto": None, "share": None, "support": 1.0,
        "step_support": (1.0, 0.01), "spread": 2.0, "cut": 0.0, "effective_rows": 500.0,
        "mean_weight": (1.0, 0.1), "endless": False, "hastened": 0.0, "hastened_actions": 0.0,
        "lost": 0.0, "lost_histories": 0.0, "thresholds": Thresholds(),
    }  # fmt: skip
    return Grounds(**numbers | given)


def spread_of(carrying: float = 40.0, error: float = 0.1, count: int = 100) -> Any:
    return SimpleNamespace(carrying=carrying, error=error, count=count, apart=lambda other: 0.3)


def case_of(
    name: str = "lstd",
    value: float = 2.0,
    half: float = 0.2,
    influence: Any = None,
    approximation: float | None = 0.0,
    error: float = 0.1,
    **given: Any,
) -> Case:
    outcome = Outcome(value, influence, approximation=approximation)
    found = Case(ESTIMATORS[name](), outcome, Interval(value - half, value + half, "", error))
    vars(found).update(given)
    return found


def judged(case: Case, **given: Any) -> list[tuple[str, str]]:
    """Verdicts and first words of the reasons after judging."""
    study: Any = SimpleNamespace(grounds=grounds(**given))
    judge(case, study)
    return [(verdict, " ".join(reason.split()[:3])) for verdict, reason, _ in case.notes]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, []),
        ({"episodes": 1}, [("cannot answer", "one episode: an")]),
        ({"episodes": 9}, [("cannot answer", "9 episodes: an")]),
        ({"episodes": 9, "unit": "user"}, [("cannot answer", "9 users: an")]),
        ({"episodes": 1, "unit": "user"}, [("cannot answer", "one user: an")]),
        ({"episodes": 10}, [("caution", "only 10 episodes")]),
        ({"episodes": 49}, [("caution", "only 49 episodes")]),
        ({"episodes": 50}, []),
        ({"support": 0.49}, [("cannot answer", "the log covers")]),
        ({"support": 0.5}, [("caution", "the log covers")]),
        ({"support": 0.94}, [("caution", "the log covers")]),
        ({"support": 0.95}, []),
        ({"effective_rows": 9.9}, [("cannot answer", "ratios leave 9.9")]),
        ({"effective_rows": 10.0}, [("caution", "ratios leave 10")]),
        ({"effective_rows": 29.9}, [("caution", "ratios leave 30")]),
        ({"effective_rows": 30.0}, []),
        ({"step_support": (1.0199, 0.0)}, []),
        ({"step_support": (1.0201, 0.0)}, [("caution", "the ratios average")]),
        ({"step_support": (1.5, 0.125)}, []),
        ({"step_support": (1.5, 0.12)}, [("caution", "the ratios average")]),
        ({"step_support": (2.0, 0.0)}, [("caution", "the ratios average")]),
        ({"step_support": (2.01, 0.0)}, [("cannot answer", "the ratios average")]),
        ({"endless": True}, [("cannot answer", "nothing terminates at")]),
        ({"hastened": 0.25}, [("caution", "the last rows")]),
        ({"hastened": 0.26}, [("cannot answer", "the last rows")]),
        ({"hastened": 0.025}, []),  # a tenth of 4 is half of the half-width
        ({"hastened": 0.026}, [("caution", "the last rows")]),
        ({"lost": 0.1}, [("caution", "10.0% of the")]),
    ],
)
def test_doubts_about_the_log_begin_at_their_thresholds(
    given: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    found = judged(case_of(), **given)
    assert found == expected


def test_estimates_without_ratios_do_not_rest_on_them() -> None:
    for estimated, mean, verdicts in (
        (False, 3.0, ["caution"]),
        (True, 3.0, []),
    ):
        case = case_of("lstdq")
        judged(case, effective_rows=1.0, step_support=(mean, 0.0), estimated=estimated)
        assert case.verdicts == verdicts
    fitted = case_of()
    judged(fitted, step_support=(3.0, 0.0), estimated=True)
    assert fitted.verdicts == ["cannot answer"]
    assert "the behaviour estimated from this log does not fit it" in fitted.reasons[0]
    given = case_of()
    judged(given, step_support=(3.0, 0.0))
    assert "check the probabilities" in given.reasons[0]


@pytest.mark.parametrize(
    ("share", "verdict"),
    [(0.05, None), (0.051, "caution"), (0.5, "caution"), (0.51, "cannot answer")],
)
def test_visits_to_states_that_no_row_leaves(share: float, verdict: str | None) -> None:
    bounds = Thresholds(support_caution=0.95)
    case = case_of(unlogged=share if share != 0.05 else 1.0 - 0.95)
    assert judged(case, thresholds=bounds) == (
        [] if verdict is None else [(verdict, f"about {share:.0%} of")]
    )


@pytest.mark.parametrize(
    ("half", "influence", "expected", "sound"),
    [
        (4.0, None, [], True),
        (4.01, None, [("cannot answer", "the interval is")], False),
        (np.inf, None, [("cannot answer", "no interval: too")], False),
        (0.2, spread_of(10.0), [], True),
        (0.2, spread_of(9.9), [("caution", "about 10 episodes")], False),
        (0.2, spread_of(1.49), [("caution", "about one episode")], False),
        (0.2, spread_of(1.5), [("caution", "about 2 episodes")], False),
        (0.2, spread_of(1.0, count=1), [], True),
        (0.2, spread_of(1.0, count=2), [("caution", "about one episode")], False),
        (0.0, spread_of(1.0, 2e-9), [("caution", "every episode gives")], True),
        (0.2, spread_of(1.0, 2e-9), [], True),
        (0.2, spread_of(1.0, 2.1e-9), [("caution", "about one episode")], False),
    ],
)
def test_doubts_about_width_and_variation(
    half: float, influence: Any, expected: list[tuple[str, str]], sound: bool
) -> None:
    case = case_of(half=half, influence=influence)
    assert judged(case) == expected
    assert case.sound == sound


def test_an_estimate_without_a_value_has_no_other_doubts_of_its_own() -> None:
    lost = Case(ESTIMATORS["lstd"](), Outcome.none("no rows"), Interval(0.0, 0.0, "", 0.0))
    assert judged(lost) == [("cannot answer", "no rows")]
    far = case_of(value=np.inf, approximation=None)
    assert judged(far) == [("cannot answer", "the estimate is")]
    assert not far.sound


def test_a_doubt_is_noted_once() -> None:
    case = case_of()
    case.note("caution", "why", "width")
    case.note("cannot answer", "why")
    assert case.notes == [("caution", "why", "width")]


# -- values out of range, and estimates that differ ---------------------------------------------------


@pytest.mark.parametrize(
    ("value", "half", "clipped", "verdicts"),
    [
        (1.0, 0.5, 1.0, []),
        (1.0 + 1e-10, 0.5, 1.0 + 1e-10, []),
        (1.2, 0.5, 1.0, ["trust"]),
        (1.2, 0.2, 1.0, ["trust"]),
        (1.25, 0.125, 1.25, ["cannot answer"]),
        (-2.25, 0.25, -2.0, ["trust"]),
        (-2.5, 0.25, -2.5, ["cannot answer"]),
        (np.nan, 0.5, np.nan, []),
    ],
)
def test_values_are_clipped_to_what_rewards_allow_or_refused(
    value: float, half: float, clipped: float, verdicts: list[str]
) -> None:
    case = case_of(value=value, half=half)
    keep_in_range(case, -2.0, 1.0)
    np.testing.assert_equal(case.value, clipped)
    assert case.verdicts == verdicts
    if verdicts == ["trust"]:
        ends = np.clip([value - half, value + half], -2.0, 1.0)
        assert (case.interval.low, case.interval.high) == tuple(ends)
        assert f"{value:.4g} was clipped" in case.reasons[0]


def test_distances_are_in_errors_of_the_difference_and_of_both_approximations() -> None:
    bounds = Thresholds()
    mine = case_of(influence=spread_of(), approximation=0.4)
    other = case_of("wdr", 4.0, influence=spread_of(), approximation=1.2, sound=True)
    scale = np.sqrt(0.3**2 + 0.4**2 + 1.2**2)  # 1.3
    (found,) = agreement(mine, [mine, other], bounds)
    assert found["method"] == "wdr"
    assert found["standard_errors"] == pytest.approx(2.0 / scale)
    assert mine.verdict == "trust"
    learner = case_of("tdrc", 4.0, influence=spread_of(), approximation=1.2, sound=True)
    (found,) = agreement(mine, [learner], bounds)
    assert found["standard_errors"] == pytest.approx(2.0 / 0.5)
    assert mine.verdict == "trust"  # a learner is no reason to doubt
    apart = case_of("wdr", 4.0, error=0.4, half=0.8, approximation=0.0)
    (found,) = agreement(case_of(error=0.3), [apart], bounds)
    assert found["standard_errors"] == pytest.approx(2.0 / 0.5)
    alike = SimpleNamespace(apart=lambda other: 0.0, carrying=40.0, error=0.1, count=100)
    (found,) = agreement(
        case_of(influence=alike, error=0.5), [case_of("dr", 4.0, influence=alike)], bounds
    )
    assert found["standard_errors"] == pytest.approx(2.0 / (0.2 * 0.5))
    same = case_of("dr", 2.0, error=0.0)
    assert agreement(case_of(error=0.0, value=0.0), [case_of("dr", 0.0, error=0.0)], bounds) == [
        {"method": "dr", "standard_errors": 0.0}
    ]
    assert agreement(case_of(error=0.0), [same], bounds)[0]["standard_errors"] == 0.0


@pytest.mark.parametrize(
    ("given", "doubted"),
    [
        ({"sound": True}, True),
        ({"sound": False}, False),
        ({"sound": True, "contradicted": True}, False),
        ({"sound": True, "value": 2.9}, False),
        ({"sound": True, "value": 2.91}, True),
        ({"sound": True, "verdicts": ["cannot answer"], "reasons": ["x"]}, None),
        ({"sound": True, "value": np.nan}, None),
    ],
)
def test_estimates_that_are_trusted_and_far_away_are_a_doubt(
    given: dict[str, Any], doubted: bool | None
) -> None:
    case = case_of(error=0.0, influence=spread_of())
    given = {"value": 3.5, **given}
    other = case_of("wdr", influence=spread_of(), **given)
    found = agreement(case, [other], Thresholds(agreement_caution=3.0 + 1e-9))
    assert bool(found) == (doubted is not None)
    assert case.verdicts == (["caution"] if doubted else [])
    if doubted:
        apart = (given["value"] - 2.0) / 0.3
        assert case.reasons == [f"wdr says {given['value']:.4g}, {apart:.1f} standard errors away"]


def test_enormous_distances_are_not_counted() -> None:
    near: Any = SimpleNamespace(apart=lambda other: 0.001, carrying=40.0, error=0.1, count=100)
    for value, said in ((2.0999, "99.9 standard"), (2.1001, "more than 100 standard")):
        case = case_of(influence=near, error=0.0)
        agreement(case, [case_of("dr", value, influence=near, error=0.0, sound=True)], Thresholds())
        assert said in case.reasons[0]


def study_of(corrections: Any = (), **given: Any) -> Any:
    settings = SimpleNamespace(thresholds=Thresholds())
    return SimpleNamespace(
        grounds=grounds(**given), settings=settings, corrections=lambda: list(corrections)
    )


def test_fits_that_the_nearest_history_contradicts_are_doubted_before_one_is_recommended() -> None:
    def apart(by: dict[int, float]) -> Any:
        return SimpleNamespace(apart=lambda other: by[id(other)], carrying=40.0, error=0.1, count=9)

    wide, narrow = spread_of(), spread_of()
    fit = case_of(influence=apart({id(wide): 2.0, id(narrow): 0.5}), sound=True)
    histories = [
        case_of("wis", 9.0, influence=wide, sound=True),
        case_of("wdr", 3.4, influence=narrow, sound=True),
        case_of("pdis", 9.0, sound=False),
    ]
    doubt_fits([fit, *histories], study_of())
    assert not fit.contradicted  # 1.4 is less than three errors of 0.5
    histories[1].outcome = Outcome(3.6, narrow, approximation=0.0)
    doubt_fits([fit, *histories], study_of())
    assert fit.contradicted
    assert fit.reasons == ["wdr says 3.6, 3.2 standard errors away"]
    doubted = case_of(influence=fit.outcome.influence, sound=False)
    doubt_fits([doubted, *histories], study_of())
    assert not doubted.contradicted
    assert not any(case.contradicted for case in histories)


@pytest.mark.parametrize(
    ("mean", "error", "half", "apart", "contradicted"),
    [
        (0.9, 0.0, 0.0, 0.3, False),
        (0.91, 0.0, 0.0, 0.3, True),
        (-0.91, 0.0, 0.0, 0.3, True),
        (0.91, 2.0, 0.0, 0.3, False),  # a fifth of the standard error of the value
        (0.91, 0.0, 4.0, 0.3, False),  # a fifth of half of the half-width
        (np.nan, 0.0, 0.0, 0.3, False),
    ],
)
def test_fits_are_tested_along_the_first_steps(
    mean: float, error: float, half: float, apart: float, contradicted: bool
) -> None:
    correction: Any = SimpleNamespace(mean=mean, apart=lambda influence: apart)
    corrections = [
        (4, SimpleNamespace(mean=0.0, apart=lambda i: 1.0)),
        (7, correction),
        (9, correction),
    ]
    fit = case_of(influence=spread_of(), sound=True, error=error, half=half)
    study = study_of(corrections)
    study.settings.thresholds = Thresholds(agreement_caution=3.0 + 1e-9)
    doubt_fits([fit], study)
    assert fit.contradicted == contradicted
    said = f"over the first 7 steps weighted histories change its value by {mean:.3g}, "
    assert [reason.startswith(said) for reason in fit.reasons] == [True] * contradicted
    for exempt in ("magic", "tdrc"):
        other = case_of(exempt, influence=spread_of(), sound=True, error=error, half=half)
        doubt_fits([other], study)
        assert not other.contradicted


def test_differences_of_the_size_of_the_value_are_a_doubt() -> None:
    usable = {"influence": spread_of(10.0), "half": 0.1}
    for other, doubted in (
        (case_of("wdr", 4.1, **usable), True),
        (case_of("wdr", 4.0, **usable), False),  # apart by half the larger value
        (case_of("wdr", 4.1, influence=spread_of(9.9)), False),
        (case_of("wdr", 4.1), False),
        (case_of("wdr", 4.1, **usable, faults=1.0), False),
        (case_of("tdrc", 4.1, **usable), False),
        (case_of("wdr", 4.1, **usable, verdicts=["cannot answer"]), False),
        (case_of("wdr", 4.1, **usable, approximation=0.7), False),  # less than three errors
    ):
        case = case_of(influence=spread_of())
        veto(case, [case, other], study_of())
        assert case.verdicts == (["caution"] if doubted else [])
    for cut, doubted in ((0.0, True), (0.02, False)):
        case = case_of(influence=spread_of())
        veto(case, [case_of("pdis", 4.1, **usable)], study_of(cut=cut))
        assert bool(case.verdicts) == doubted
        case = case_of(influence=spread_of())
        veto(case, [case_of("wdr", 4.1, **usable)], study_of(cut=cut))
        assert case.verdicts


def test_the_most_trusted_estimate_goes_first_then_the_least_faulty_fit_with_the_least_doubt() -> (
    None
):
    def caution(case: Case) -> Case:
        case.note("caution", "why")
        return case

    narrow, wide = case_of("lstd", half=0.1), case_of("lsetd", half=0.1)
    plugin = case_of("plugin", half=0.2, approximation=0.1)
    assert recommend([plugin, narrow]) is narrow
    assert recommend([plugin, wide]) is plugin  # the other is computed on request only
    assert recommend([wide]) is wide
    assert recommend([caution(case_of("lstd", half=0.1)), plugin]) is plugin
    assert recommend([case_of("lstd", half=0.1, faults=0.5), plugin]) is plugin
    assert recommend([case_of("lstd", half=0.1, contradicted=True), plugin]) is plugin
    half = case_of("lstd", half=0.1, contradicted=True, faults=0.5)
    assert recommend([half, case_of("plugin", faults=0.75)]) is half
    assert recommend([half, case_of("plugin", contradicted=True)]) is half
    assert recommend([case_of("wdr", half=0.01), plugin]) is plugin
    pdis = case_of("pdis", half=0.9)
    assert recommend([case_of("wis", half=0.01), pdis]) is pdis
    assert recommend([case_of("magic", half=0.01), plugin]) is plugin
    assert recommend([case_of("lstd", np.nan, half=0.0), plugin]) is plugin
    endless = case_of("lstd", half=np.inf)
    assert recommend([endless, plugin]) is plugin
    nothing = case_of("lstd", np.nan)
    assert recommend([nothing]) is nothing


@pytest.mark.parametrize(("half", "confirmed"), [(1.5, True), (1.51, False)])
def test_a_past_that_joined_the_state_needs_a_history_that_confirms_it(
    half: float, confirmed: bool
) -> None:
    class Spared:
        kind, mends, name = "fit", False, "stacked"

        def spared(self, study: Any) -> tuple[str, ...]:
            return ("clock", "memory")

    fit = case_of(sound=True)
    fit.estimator = Spared()  # type: ignore[assignment]
    fit.interval = Interval(1.5, 2.5, "", 0.1)
    history = case_of("wdr", 2.0, half=half, sound=True)
    doubt_fits([fit, history], study_of([(3, SimpleNamespace(mean=99.0, apart=lambda i: 0.1))]))
    assert fit.verdicts == ([] if confirmed else ["caution"])  # first steps are not for it
    assert not fit.contradicted

"""Words from numbers."""

from __future__ import annotations

from types import SimpleNamespace

from o2td.evaluation import Outcome, Thresholds
from o2td.evaluation.verdicts import Case, Interval, recommend
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

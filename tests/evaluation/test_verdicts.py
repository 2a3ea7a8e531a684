"""Words from numbers."""

from __future__ import annotations

from types import SimpleNamespace

from o2td.evaluation import Outcome, Thresholds
from o2td.evaluation.verdicts import Case, Interval
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

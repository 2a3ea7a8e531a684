"""Each estimator asked for by itself, on logs for which some of them have nothing to do."""

from __future__ import annotations

import pandas as pd
import pytest

from o2td import domains, evaluation
from o2td.registry import ESTIMATORS

from .logs import line_log, log_of


def one_decision() -> pd.DataFrame:
    log = line_log(60, 3, steps=1)
    later = [name for name in log if name.startswith("next_")]
    return log.drop(columns=["episode", "terminated", "truncated", *later])


LOGS = {
    "states": lambda: log_of(domains.random_walk(), 60, [0, 9]),  # no clock, no memory
    "observations": lambda: line_log(40, 2),
    "decisions": one_decision,
}


@pytest.mark.parametrize("kind", LOGS)
@pytest.mark.parametrize("name", sorted(ESTIMATORS.names()))
def test_an_estimator_asked_for_alone_answers_or_says_why_not(name, kind):
    discount = None if kind == "decisions" else 0.9
    answer = evaluation.evaluate(LOGS[kind](), discount=discount, methods=name, lanes=20)
    assert [one.method for one in answer.estimates] == [name]
    assert answer.verdict == "trust" or answer.reasons

"""The limit of diagonal SO-TD where it would take too long."""

from __future__ import annotations

import pytest

import o2td
from o2td import domains, exact
from o2td.errors import NoAnswerError
from o2td.solvers import diagonal_sotd


def test_a_limit_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = domains.garnet(states=60, features=8, seed=0)
    monkeypatch.setattr(diagonal_sotd, "_WORK", 0.0)
    monkeypatch.setattr(diagonal_sotd, "_LEAST", 2)
    with pytest.raises(NoAnswerError, match="not found within 2 steps on 60 states with 8"):
        o2td.DiagonalSOTD().limit(exact.model(problem))
    rows = {row.method: row for row in exact.analyze(problem, (0.0,))}
    assert "not found within 2 steps" in rows["DiagonalSOTD"].reason
    assert rows["SOTD"].rmse is not None

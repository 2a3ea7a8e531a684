"""Tests of the log join the passes, and what they find reaches the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from benchmarks.coverage_common import log_of
from o2td import evaluation
from o2td.evaluation import Finding, LogTest
from o2td.registry import LOG_TESTS


class Sum:
    def __init__(self, power: int) -> None:
        self.power, self.total, self.rows = power, 0.0, 0

    def add(self, episodes: evaluation.Episodes) -> None:
        self.total += float(np.sum(episodes.rows.reward**self.power))
        self.rows += len(episodes.rows)

    def merge(self, other: Sum) -> None:
        self.total, self.rows = self.total + other.total, self.rows + other.rows


class Rich(LogTest):
    name = "rich"
    title = "Are rewards larger than one on average?"

    def collect(self, study: evaluation.Study) -> Iterator[Any]:
        self.first, self.second = Sum(1), Sum(2)
        yield [self.first]
        assert study.survey.rows == self.first.rows  # what the first pass found is known now
        yield [self.second]

    def find(self, study: evaluation.Study) -> Finding:
        mean = self.first.total / study.survey.rows
        word = "caution" if mean < 1.0 else "trust"
        return Finding(self.name, mean, word, "rewards are small", "log larger ones")


@pytest.fixture
def rich(monkeypatch: pytest.MonkeyPatch) -> None:
    LOG_TESTS.names()
    monkeypatch.setattr(LOG_TESTS, "_members", dict(LOG_TESTS._members))
    LOG_TESTS.register("rich", Rich)


def test_a_test_collects_in_passes_and_speaks_in_the_answer(rich: None, walk: Any) -> None:
    log = log_of(walk[0], 60, 0)
    answer = evaluation.evaluate(log, 0.9, methods=["lstd"])
    found = next(test for test in answer.tests if test.name == "rich")
    assert found.figure == pytest.approx(log.reward.mean())
    assert not found.passed
    assert "rewards are small; log larger ones" in answer.reasons
    assert answer.verdict == "caution"
    assert found.as_dict() in answer.as_dict()["tests"]


def test_a_finding_needs_a_word_that_is_known() -> None:
    with pytest.raises(ValueError, match=r"one of .trust., .caution., .cannot answer."):
        Finding("rich", 1.0, "perhaps", "rewards are small")

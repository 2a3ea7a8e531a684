"""One reading of a log for several policies."""

from __future__ import annotations

import pytest

from o2td import evaluation
from o2td.evaluation.shared_log import SharedLog

from .test_compare import GAMMA, POLICIES, made_log


def test_a_log_that_is_not_held_gives_the_same(monkeypatch):
    log = made_log()
    both = evaluation.compare(log, discount=GAMMA, policies=POLICIES)
    monkeypatch.setattr(SharedLog.__init__, "__defaults__", (None, 0))
    found = evaluation.compare(log, discount=GAMMA, policies=POLICIES)
    one, two = found.difference("B", "A"), both.difference("B", "A")
    assert found["A"].diagnostics["passes"] > 1
    assert (one.value, one.low, one.high) == pytest.approx((two.value, two.low, two.high))

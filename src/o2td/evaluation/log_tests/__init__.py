"""Tests of a log, one per file; `o2td.registry.LOG_TESTS` has them by name."""

from __future__ import annotations

from o2td.evaluation.log_tests.alignment import Alignment
from o2td.evaluation.log_tests.clock import Clock
from o2td.evaluation.log_tests.drift import Drift
from o2td.evaluation.log_tests.ends import Ends
from o2td.evaluation.log_tests.independence import Independence
from o2td.evaluation.log_tests.memory import Memory
from o2td.evaluation.log_tests.propensities import Propensities
from o2td.evaluation.log_tests.support import Support
from o2td.evaluation.log_tests.tails import Tails
from o2td.registry import LOG_TESTS

__all__ = [
    "Alignment",
    "Clock",
    "Drift",
    "Ends",
    "Independence",
    "Memory",
    "Propensities",
    "Support",
    "Tails",
]

for _test in (Alignment, Clock, Drift, Ends, Independence, Memory, Propensities, Support, Tails):
    LOG_TESTS.register(_test.name, _test)

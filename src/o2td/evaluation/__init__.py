"""What would this policy be worth? The value of one policy from logs of another.

>>> from o2td import evaluation
>>> "lstd" in evaluation.METHODS
True
"""

from __future__ import annotations

from o2td.evaluation.compare import compare
from o2td.evaluation.comparison import Comparison, Standing
from o2td.evaluation.differences import Difference
from o2td.evaluation.episodes import Episodes
from o2td.evaluation.estimator import Estimator, Outcome
from o2td.evaluation.estimators import known
from o2td.evaluation.evaluate import evaluate
from o2td.evaluation.families import FitEstimator, HistoryEstimator, HybridEstimator
from o2td.evaluation.histories import histories
from o2td.evaluation.influence import Baseline, Column, Histories
from o2td.evaluation.log_test import Finding, LogTest
from o2td.evaluation.requirements import Requirement
from o2td.evaluation.result import Estimate, Evaluation
from o2td.evaluation.returns import ReturnEstimate
from o2td.evaluation.segments import Segment
from o2td.evaluation.statistic import Passes, Statistic
from o2td.evaluation.study import Study
from o2td.evaluation.thresholds import Thresholds
from o2td.evaluation.value_model import ValueModel, load_model

__all__ = [
    "METHODS",
    "Baseline",
    "Column",
    "Comparison",
    "Difference",
    "Episodes",
    "Estimate",
    "Estimator",
    "Evaluation",
    "Finding",
    "FitEstimator",
    "Histories",
    "HistoryEstimator",
    "HybridEstimator",
    "LogTest",
    "Outcome",
    "Passes",
    "Requirement",
    "ReturnEstimate",
    "Segment",
    "Standing",
    "Statistic",
    "Study",
    "Thresholds",
    "ValueModel",
    "compare",
    "evaluate",
    "histories",
    "load_model",
]


def __getattr__(name: str) -> tuple[str, ...]:
    """`METHODS`, the names of all estimators; those of other packages are found on first use."""
    if name == "METHODS":
        return known()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

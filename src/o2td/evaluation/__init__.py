"""What would this policy be worth? The value of one policy from logs of another.

>>> from o2td import evaluation
>>> "lstd" in evaluation.METHODS
True
"""

from __future__ import annotations

from o2td.evaluation.episodes import Episodes
from o2td.evaluation.evaluate import evaluate
from o2td.evaluation.log_test import Finding, LogTest
from o2td.evaluation.model import ValueModel, load_model
from o2td.evaluation.plan import METHODS
from o2td.evaluation.result import Estimate, Evaluation
from o2td.evaluation.statistic import Statistic
from o2td.evaluation.study import Study
from o2td.evaluation.thresholds import Thresholds

__all__ = [
    "METHODS",
    "Episodes",
    "Estimate",
    "Evaluation",
    "Finding",
    "LogTest",
    "Statistic",
    "Study",
    "Thresholds",
    "ValueModel",
    "evaluate",
    "load_model",
]

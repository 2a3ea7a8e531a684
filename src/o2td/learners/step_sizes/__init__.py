"""Step sizes: a number, or a rule, one file each.

| step size              | alpha_t                                                            |
|------------------------|--------------------------------------------------------------------|
| a number               | itself                                                             |
| `PowerDecay(c, p)`     | `c t^-p`                                                           |
| `"auto"`               | from the sizes of rows and traces so far (`step_sizes.auto`)       |
| `AlphaBound()`         | the largest that has not overshot yet                              |
| `SwiftBound(size, eta)`| at most a share eta of each row's own error                        |
| `TIDBD(initial, rate)` | one per feature, learned (weighted learners only)                  |

A rule of your own derives from `Rule` and implements `fill`.
"""

from __future__ import annotations

import math
from typing import Any

from o2td.arguments import as_float, shown
from o2td.errors import InputError
from o2td.learners.step_sizes.alpha_bound import AlphaBound
from o2td.learners.step_sizes.auto import Auto
from o2td.learners.step_sizes.constant import Constant
from o2td.learners.step_sizes.power_decay import PowerDecay
from o2td.learners.step_sizes.rule import Gauge, Measured, Rule
from o2td.learners.step_sizes.swift_bound import SwiftBound
from o2td.learners.step_sizes.tidbd import TIDBD

__all__ = [
    "TIDBD",
    "AlphaBound",
    "Auto",
    "Constant",
    "Gauge",
    "Measured",
    "PowerDecay",
    "Rule",
    "StepSize",
    "SwiftBound",
    "as_step_size",
    "rule_of",
]

StepSize = float | str | Rule


def as_step_size(name: str, value: Any, by_feature: bool = False) -> StepSize:
    """Validate a step size: a number, a rule (of any kind if `by_feature`) or "auto"."""
    if isinstance(value, Rule) and value.vectors and not by_feature:
        raise InputError(
            f"{name}={value!r} is a step size a feature, which TD and the other weighted learners take"
            " (WeightedLearner); give a number, another rule or 'auto' here"
        )
    if type(value) is Auto:
        return "auto"
    if isinstance(value, Rule) or (isinstance(value, str) and value == "auto"):
        return value
    if isinstance(value, dict) and set(value) == {"c", "p"}:
        return PowerDecay(value["c"], value["p"])
    found = as_float(value)
    if not (math.isfinite(found) and found >= 0.0):
        raise InputError(
            f'{name} must be a number >= 0, PowerDecay(c, p) or "auto"; got {shown(value)}'
        )
    return found


def rule_of(value: StepSize) -> Rule:
    """The rule that a step size stands for."""
    if isinstance(value, Rule):
        return value
    return Constant(value) if isinstance(value, float) else Auto()

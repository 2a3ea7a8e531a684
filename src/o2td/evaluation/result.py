"""What an evaluation returns: estimates with intervals and verdicts, diagnostics, a fitted model."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from o2td.errors import InputError
from o2td.evaluation.episodes import Floats
from o2td.evaluation.log_test import Finding
from o2td.evaluation.model import ValueModel

__all__ = ["Estimate", "Evaluation"]


@dataclass(frozen=True)
class Estimate:
    """One method's answer; what could not be computed is None, and `reason` says why.

    Parameters
    ----------
    method : str
        Its name, such as "lstd".
    value : float or None
        The target's expected discounted reward from the log's start states.
    low, high : float or None
        The interval, with the confidence that was asked for.
    interval : str
        How it was made: sandwich or bootstrap.
    approximation_error : float or None
        How far other features would move the answer; 0 for methods without features.
    verdict : str
        "trust", "caution" or "cannot answer".
    reason, reasons : str, list of str
        Why not "trust": in one sentence, and one by one.
    standard_error : float or None
        Of `value`, episodes being the units.
    about : str
        What the method does, for readers of the report.
    title, kind : str
        The estimator's full name, and "fit", "history", "hybrid" or "learner".
    """

    method: str
    value: float | None
    low: float | None
    high: float | None
    interval: str
    approximation_error: float | None
    verdict: str
    reason: str
    reasons: list[str] = field(default_factory=list)
    standard_error: float | None = None
    about: str = ""
    title: str = ""
    kind: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, none of them NaN or infinite."""
        return {name: finite(value) for name, value in vars(self).items()}

    def covers(self, truth: float, widened: bool = False) -> bool:
        """Whether `truth` lies in the interval, widened by the approximation error if asked."""
        if self.low is None or self.high is None:
            return False
        slack = (self.approximation_error or 0.0) if widened else 0.0
        return self.low - slack <= truth <= self.high + slack


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The answer to "what would this policy be worth?".

    `verdict` and `reasons` are about the question, those of an estimate about one method.
    `estimates` has the recommended one first. `diagnostics` is plain data, `features` says what was
    picked and why, `series` holds what figures draw, `tests` what was tested about the log. `model`
    predicts values of states: it is LSTD's fit, or where `methods` leaves that out the recommended
    one's, or the first one's that has one.
    """

    verdict: str
    reasons: list[str]
    estimates: list[Estimate]
    diagnostics: Mapping[str, Any]
    features: Mapping[str, Any]
    model: ValueModel | None = None
    series: Mapping[str, Any] = field(default_factory=dict)
    tests: list[Finding] = field(default_factory=list)

    @property
    def recommended(self) -> Estimate:
        """The first estimate."""
        return self.estimates[0]

    def __getitem__(self, method: str) -> Estimate:
        for estimate in self.estimates:
            if estimate.method == method:
                return estimate
        known = ", ".join(estimate.method for estimate in self.estimates)
        raise InputError(f"estimates: no {method!r}; there are {known}")

    def values(self, states: Any, probabilities: Any = None) -> Floats:
        """`V(s)` of observations or states by `model`, whose `method` says whose fit it is.

        Parameters
        ----------
        states
            (n, k) observations, or (n,) states.
        probabilities
            (n, A), the target's probabilities there: where only LSTDQ was asked for.
        """
        if self.model is None:
            raise InputError("values: no value function could be fitted to this log")
        return self.model.predict(states, probabilities)

    def as_dict(self) -> dict[str, Any]:
        """The object that `o2td evaluate --json` prints."""
        return {
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "estimates": [estimate.as_dict() for estimate in self.estimates],
            "diagnostics": finite(dict(self.diagnostics)),
            "features": finite(dict(self.features)),
            "series": finite(dict(self.series)),
            "tests": [finite(test.as_dict()) for test in self.tests],
        }

    def to_json(self, indent: int | None = None) -> str:
        """`as_dict` as JSON text; never NaN."""
        return json.dumps(self.as_dict(), indent=indent, allow_nan=False)


def finite(value: Any) -> Any:
    """The same with plain Python numbers, and None for what is not finite.

    >>> finite({"a": np.float64("nan"), "b": [np.int64(1), 0.5]})
    {'a': None, 'b': [1, 0.5]}
    """
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if isinstance(value, np.ndarray):
        return [finite(item) for item in value.tolist()]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return value

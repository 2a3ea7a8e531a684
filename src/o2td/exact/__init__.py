"""Exact answers for a finite problem: values, oblique projections, fixed points, stability, errors.

Uses dense linear algebra up to 2,000 states and sparse beyond, which never builds a dense (S, S)
matrix. A question without an answer raises a `NoAnswerError` that says why; nothing returns NaN.
"""

from __future__ import annotations

from o2td.exact.analysis import Landing, analyze
from o2td.exact.dynamics import FixedPoint, fixed_point
from o2td.exact.objectives import msbe, mse, mspbe, rmsbe, rmse, rmspbe, suboptimality
from o2td.exact.oblique import (
    amplification,
    directions,
    oblique_fixed_point,
    oblique_projection,
    optimal_direction,
)
from o2td.exact.truth import best_approximation, model, state_distribution, value

__all__ = [
    "FixedPoint",
    "Landing",
    "amplification",
    "analyze",
    "best_approximation",
    "directions",
    "fixed_point",
    "model",
    "msbe",
    "mse",
    "mspbe",
    "oblique_fixed_point",
    "oblique_projection",
    "optimal_direction",
    "rmsbe",
    "rmse",
    "rmspbe",
    "state_distribution",
    "suboptimality",
    "value",
]

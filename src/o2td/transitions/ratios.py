"""Ratios from probabilities, and probabilities from ratios."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td.arrays import Floats, freeze, refuse, vector


def ratio(rho: Any, target: Floats | None, behavior: Floats | None, n: int) -> Floats:
    """`rho` as given, else `target / behavior`, else 1."""
    if rho is not None:
        return vector("rho", rho, n, 0.0, np.inf)
    if target is None or behavior is None:
        return freeze(np.ones(n))
    with np.errstate(over="ignore"):
        quotient = target / behavior
    refuse("rho", quotient, ~np.isfinite(quotient), "target_prob / behavior_prob overflows")
    return freeze(quotient)


def implied(rho: Floats, behavior: Floats | None) -> Floats | None:
    """The target's probabilities implied by these ratios, or None if there are none."""
    if behavior is None:
        return None
    target = rho * behavior
    return None if (target > 1.0 + 1e-9).any() else freeze(np.minimum(target, 1.0))

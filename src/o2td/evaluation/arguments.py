"""Checks of the arguments of `evaluate`, before anything is read: one sentence per mistake."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td.arguments import as_float, is_whole, listed, shown
from o2td.errors import InputError, option
from o2td.evaluation.estimators import known
from o2td.evaluation.thresholds import Thresholds
from o2td.sparse import check_structure

EVERY = "all"
_LEAST_LANES = 20
_FARTHEST = 1_000_000_000  # with more steps, rounding adds up where nothing is discounted
_MOST_LANES = 100_000  # each keeps the sums of its own system


def check_arguments(
    confidence: Any,
    seed: Any,
    trace: Any,
    lanes: Any,
    thresholds: Any,
    features: Any,
    horizon: Any = None,
) -> tuple[float, float | None]:
    """Refuse what cannot be used, naming the argument and what to pass.

    Returns confidence and trace as floats.
    """
    if horizon is not None and (not is_whole(horizon) or horizon < 1):
        raise InputError(f"horizon: {shown(horizon)} is not a number of steps; pass one such as 25")
    if horizon is not None and horizon > _FARTHEST:
        raise InputError(
            f"horizon: {shown(horizon)} steps; pass at most {_FARTHEST:,}, or leave it out for all steps"
        )
    level = as_float(confidence)
    if not 0.0 < level < 1.0:
        raise InputError(f"confidence: {shown(confidence)} is not between 0 and 1; pass 0.95")
    if not _seed(seed):
        raise InputError(f"seed: {shown(seed)} is not a whole number from 0 up; pass one such as 0")
    if not is_whole(lanes) or (lanes != 0 and not _LEAST_LANES <= lanes <= _MOST_LANES):
        name, most = option("lanes", "--bootstrap"), f"{_MOST_LANES:,}"
        raise InputError(
            f"{name}: {shown(lanes)}; pass 0 (no bootstrap) or at least {_LEAST_LANES}, at most {most}"
        )
    if thresholds is not None and not isinstance(thresholds, Thresholds):
        raise InputError(
            f"thresholds: {type(thresholds).__name__} is not a table of thresholds; pass"
            " o2td.evaluation.Thresholds(episodes_caution=100), with the names to change"
        )
    decay = None if trace is None else as_float(trace)
    if decay is not None and not 0.0 <= decay <= 1.0:
        raise InputError(f"trace: {shown(trace)} is not in [0, 1]; pass one such as 0.9")
    if trace and isinstance(features, str) and features == "auto":
        raise InputError(
            f'trace: {trace} cannot be combined with features="auto", which chooses traces itself; name'
            ' features, such as "fourier:3", or leave it out'
        )
    if hasattr(features, "shape"):
        _check_table(features)
    return level, decay


def _check_table(features: Any) -> None:
    """Refuse an array that is not an (S, d) table of finite numbers."""
    if not isinstance(features.shape, tuple):
        raise InputError(f"features: {shown(features)} is not a table of numbers")
    if len(features.shape) != 2 or not all(features.shape):
        raise InputError(
            f"features: an array of shape {tuple(features.shape)}; pass (S, d), a row of features"
            " for each state"
        )
    if hasattr(features, "tocsr"):
        check_structure("features", features)
    values = getattr(features, "data", features) if hasattr(features, "tocsr") else features
    if np.asarray(values).dtype.kind not in "fiub":
        raise InputError(f"features: a table of {np.asarray(values).dtype}; pass numbers")
    bad = ~np.isfinite(np.asarray(values, dtype=np.float64))
    if bad.any():
        where = f" of state {int(np.argwhere(bad)[0][0])}" if bad.ndim == 2 else ""
        raise InputError(f"features: one{where} is not a finite number; correct the table")


def method_names(methods: Any) -> tuple[list[str] | None, bool]:
    """The requested methods, each once, or None; and whether every method was asked for."""
    if methods is None or (isinstance(methods, str) and methods.strip().lower() == EVERY):
        return None, methods is not None
    names = known()
    choice = f"choose from {', '.join(names)}, or {EVERY}"
    try:
        given = methods.split(",") if isinstance(methods, str) else listed("methods", methods, "")
    except InputError:
        raise InputError(f"methods: {shown(methods)} is not a list of names; {choice}") from None
    if not given or (isinstance(methods, str) and not methods):
        raise InputError(f"methods: none is named; {choice}; or leave it out for those that fit")
    asked = {}
    for one in given:
        name = one.strip().lower() if isinstance(one, str) else None
        if name not in names:
            raise InputError(f"methods: {shown(one)} is not known; {choice}")
        asked[name] = True
    return list(asked), False


def _seed(value: Any) -> bool:
    several = isinstance(value, (tuple, list)) or getattr(value, "ndim", 0) == 1
    parts = value if several else [value]
    return len(parts) > 0 and all(is_whole(part) and part >= 0 for part in parts)

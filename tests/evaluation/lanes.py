"""Weights and folds of episodes that depend on their keys alone; systems take any."""

from __future__ import annotations

from typing import Any

import numpy as np


def counts_of(key: Any, lanes: int) -> Any:
    return np.array([np.random.default_rng(int(k)).poisson(1.0, lanes) for k in key], dtype=float)


def fold_of(key: Any, folds: int) -> Any:
    return (np.asarray(key) % np.uint64(folds)).astype(np.int64)

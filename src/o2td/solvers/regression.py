"""Weighted linear regression of values by state, without squaring the condition number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from o2td.arrays import Floats
from o2td.linear_algebra import Solution, solve, triangle


def regress(
    phi: Any,
    value: Floats,
    weight: Floats,
    counts: Mapping[str, int] | None = None,
    rows: int = 0,
) -> Solution:
    """`argmin_theta sum_s weight_s (value_s - phi_s·theta)^2`; `phi` are means over `rows` rows.

    >>> regress(np.array([[1.0], [2.0]]), np.array([1.0, 2.0]), np.array([0.5, 0.5])).theta
    array([1.])
    """
    d = phi.shape[1]
    R = triangle(_blocks(phi, value, np.sqrt(weight)), d + 1)[:d]
    rows = max(rows, phi.shape[0])
    return solve(R[:, :d], R[:, d], 0.0, counts, triangular=True, rows=rows)


def _blocks(phi: Any, value: Floats, root: Floats) -> Iterator[Floats]:
    size = max(64, (1 << 20) // phi.shape[1])
    for low in range(0, phi.shape[0], size):
        rows = phi[low : low + size]
        dense = rows.toarray() if hasattr(rows, "toarray") else rows
        yield root[low : low + size, None] * np.column_stack([dense, value[low : low + size]])

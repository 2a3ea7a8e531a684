"""How heavy the tail of the weights is: the shape k of a generalised Pareto fit.

`P(X > x) = (1 + k x / sigma)^(-1/k)` for the excesses over a threshold. Moments of order above 1/k
do not exist, so with k > 0.5 the variance of a weighted mean is infinite, and with k > 0.7 the
mean itself is out of reach of any practical sample (Vehtari, Simpson, Gelman, Yao and Gabry 2024).
The fit is that of Zhang and Stephens (2009), a posterior mean over a grid in `theta = k / sigma`,
with the former paper's weak prior, worth ten observations, which pulls k towards 0.5.
"""

from __future__ import annotations

from math import floor, sqrt

import numpy as np

from o2td.arrays import Floats

_LEAST = 5  # excesses below which no shape is fitted


def tail_size(count: int) -> int:
    """Number of largest weights that make the tail: at most a fifth, at most 3 sqrt(count)."""
    return int(min(count / 5.0, 3.0 * sqrt(count)))


class Largest:
    """The `limit` largest of many numbers.

    >>> top = Largest(2)
    >>> for part in ([1.0, 5.0], [3.0, 4.0, 2.0]):
    ...     top.add(np.array(part))
    >>> top.sorted()
    array([5., 4.])
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._values: Floats = np.zeros(0)

    def add(self, values: Floats) -> None:
        """Take in more numbers."""
        self._values = np.concatenate([self._values, values])
        if len(self._values) > 2 * self.limit:
            self._values = self._top()

    def _top(self) -> Floats:
        if len(self._values) <= self.limit:
            return self._values
        return np.partition(self._values, -self.limit)[-self.limit :]

    def sorted(self) -> Floats:
        """The largest ones, in descending order."""
        return np.sort(self._top())[::-1]


def pareto_shape(weights: Floats, count: int | None = None) -> float | None:
    """The shape k of the tail of positive `weights`, or None if too few differ.

    Where the weights are only the largest ones, `count` says how many positive ones there are.

    >>> rng = np.random.default_rng(0)
    >>> round(pareto_shape(rng.pareto(2.0, 100_000) + 1.0), 1)
    0.5
    >>> pareto_shape(np.ones(1000)) is None
    True
    """
    weights = np.sort(weights[np.isfinite(weights) & (weights > 0.0)])
    size = min(tail_size(count or len(weights)), len(weights) - 1)
    if size < _LEAST:
        return None
    threshold = weights[-size - 1]
    excess = weights[-size:] - threshold
    excess = excess[excess > 1e-12 * max(threshold, 1e-300)]
    if len(excess) < _LEAST:
        return None
    return _fit(excess)


def _fit(x: Floats) -> float:
    n = len(x)
    scale = float(x[-1])
    x = x / scale
    grid = 30 + floor(sqrt(n))
    steps = np.arange(1, grid + 1) - 0.5
    quarter = x[max(floor(n / 4 + 0.5) - 1, 0)]
    b = 1.0 + (1.0 - np.sqrt(grid / steps)) / (3.0 * quarter)
    shape = np.log1p(-b[:, None] * x).mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(np.abs(shape) > 1e-300, -b / shape, 1.0)
        profile = n * (np.log(np.maximum(ratio, 1e-300)) - shape - 1.0)
    weight = np.exp(profile - profile.max())
    center = float((b * weight).sum() / weight.sum())
    k = float(np.log1p(-center * x).mean())
    return float((n * k + 10.0 * 0.5) / (n + 10.0))

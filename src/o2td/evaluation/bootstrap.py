"""Poisson bootstrap over episodes, and intervals that allow for skewness.

An episode's weight in lane l is a Poisson(1) count computed from `(seed, key of the episode, l)`
alone, so that chunks, files and machines see the same weights in any order (Chamandy, Muralidharan,
Najmi and Naidu 2012). Intervals are BCa (Efron 1987): with `G` the distribution of the lanes,
`z0 = Phi^-1(G(value))` and the acceleration `a = sum I^3 / (6 (sum I^2)^(3/2))` of the influence
values `I`,

    end(alpha) = G^-1(Phi(z0 + (z0 + z_alpha) / (1 - a (z0 + z_alpha)))).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import e, factorial, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[np.uint64]

LANES = 200
_BLOCK = 1 << 22  # counts held at a time
# Poisson(1) by inversion: how many of these steps lie below a uniform 64-bit word.
_STEPS = np.array(
    [int(2.0**64 * sum(1.0 / factorial(j) for j in range(k + 1)) / e) for k in range(12)],
    dtype=np.uint64,
)


@njit(cache=True, nogil=True)
def _counts(key: Any, seed: Any, steps: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        for lane in range(out.shape[1]):
            x = key[i] ^ seed
            x += np.uint64(lane + 1) * np.uint64(0x9E3779B97F4A7C15)
            for _ in range(2):  # the finaliser of splitmix64, twice
                x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                x ^= x >> np.uint64(31)
            k = 0
            while k < len(steps) and x >= steps[k]:
                k += 1
            out[i, lane] = k


def poisson_counts(key: Keys, seed: int, lanes: int = LANES) -> Floats:
    """Weights (episodes, lanes) of a Poisson bootstrap.

    >>> key = np.arange(3, dtype=np.uint64)
    >>> both, last = poisson_counts(key, 0, 4), poisson_counts(key[2:], 0, 4)
    >>> bool((both[2:] == last).all())
    True
    """
    out = np.empty((len(key), lanes))
    word = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    _counts(np.ascontiguousarray(key, dtype=np.uint64), word, _STEPS, out)
    return out


def weighted_means(values: Floats, key: Keys, seed: int, lanes: int = LANES) -> Floats:
    """The weighted mean of one number an episode (columns: several) in each lane."""
    table = np.column_stack([np.ones(len(key)), values])
    total = np.zeros((lanes, table.shape[1]))
    size = max(1, _BLOCK // lanes)
    for low in range(0, len(key), size):
        part = slice(low, low + size)
        total += poisson_counts(key[part], seed, lanes).T @ table[part]
    share = total[:, 1:] / np.maximum(total[:, :1], 1.0)
    return share[:, 0] if values.ndim == 1 else share


@dataclass(frozen=True)
class Interval:
    """Ends, the name of the construction, and the standard error by the influence values."""

    low: float
    high: float
    name: str
    standard_error: float


def standard_error(influence: Floats) -> float:
    """`sqrt(sum (I - mean)^2) / E` with the correction for the mean: the clustered sandwich.

    >>> round(standard_error(np.array([1.0, -1.0])), 3)
    1.0
    """
    count = len(influence)
    if count < 2:
        return float("inf")
    spread = influence - influence.mean()
    return sqrt(float(spread @ spread) / (count - 1) / count)


def sandwich(value: float, influence: Floats, confidence: float) -> Interval:
    """`value ± t se`: the closed form, symmetric."""
    from scipy.stats import t

    error = standard_error(influence)
    reach = float(t.ppf(0.5 + confidence / 2.0, max(len(influence) - 1, 1))) * error
    return Interval(value - reach, value + reach, "clustered sandwich", error)


def bca(value: float, lanes: Floats, influence: Floats, confidence: float) -> Interval:
    """Bias-corrected and accelerated ends from bootstrap lanes and influence values.

    The levels are widened as for a t distribution, `alpha = Phi(t_alpha sqrt(E / (E - 1)))`,
    because percentiles are too narrow where episodes are few (Hesterberg 2015, section 5).

    >>> rng = np.random.default_rng(0)
    >>> x = rng.exponential(size=200)
    >>> lanes = weighted_means(x, np.arange(200, dtype=np.uint64), 0, 2000)
    >>> found = bca(x.mean(), lanes, x - x.mean(), 0.95)
    >>> bool(found.high - x.mean() > x.mean() - found.low)  # longer where the tail is
    True
    """
    from scipy.stats import norm, t

    count = len(influence)
    error = standard_error(influence)
    lanes = lanes[np.isfinite(lanes)]
    if count < 2 or len(lanes) < 20 or not np.isfinite(value):
        return sandwich(value, influence, confidence)
    below = (np.count_nonzero(lanes < value) + 0.5 * np.count_nonzero(lanes == value)) / len(lanes)
    edge = 1.0 / (2.0 * len(lanes))
    z0 = float(norm.ppf(min(max(below, edge), 1.0 - edge)))
    spread = influence - influence.mean()
    squares = float(spread @ spread)
    a = float((spread**3).sum()) / (6.0 * squares**1.5) if squares > 0.0 else 0.0
    reach = float(t.ppf(0.5 + confidence / 2.0, count - 1)) * sqrt(count / (count - 1))
    ends = []
    for z in (-reach, reach):
        slope = max(1.0 - a * (z0 + z), 0.05)
        ends.append(float(norm.cdf(z0 + (z0 + z) / slope)))
    low, high = (_quantile(lanes, level) for level in ends)
    return Interval(min(low, value), max(high, value), "BCa bootstrap of episodes", error)


def _quantile(lanes: Floats, level: float) -> float:
    """A quantile; beyond the outermost lanes along a normal tail fitted to them."""
    from scipy.stats import norm

    edge = 1.0 / (len(lanes) + 1)
    inside = min(max(level, edge), 1.0 - edge)
    found = float(np.quantile(lanes, inside, method="weibull"))
    if inside == level:
        return found
    tail = float(norm.ppf(min(max(level, 1e-9), 1 - 1e-9))) - float(norm.ppf(inside))
    return found + tail * float(np.std(lanes))


def student(value: float, replicates: Floats, confidence: float, name: str) -> Interval:
    """`value ± t se` from the answers of a delete-a-group jackknife."""
    from scipy.stats import t

    groups = len(replicates)
    if groups < 2 or not np.isfinite(replicates).all():
        return Interval(float("-inf"), float("inf"), name, float("inf"))
    spread = replicates - replicates.mean()
    error = sqrt((groups - 1) / groups * float(spread @ spread))
    reach = float(t.ppf(0.5 + confidence / 2.0, groups - 1)) * error
    return Interval(value - reach, value + reach, name, error)

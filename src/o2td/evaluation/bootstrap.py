"""Poisson bootstrap over episodes, and intervals that allow for skewness.

An episode's weight in lane l is a Poisson(1) count computed from `(seed, key of the episode, l)`
alone, so chunks, files and machines see the same weights in any order (Chamandy, Muralidharan,
Najmi and Naidu 2012). Intervals are BCa (Efron 1987): with `G` the distribution of the lanes,
`z0 = Phi^-1(G(value))` and the acceleration `a = sum I^3 / (6 (sum I^2)^(3/2))` of the influence
values `I`,

    end(alpha) = G^-1(Phi(z0 + (z0 + z_alpha) / (1 - a (z0 + z_alpha)))).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import e, factorial, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from o2td.arrays import Floats
from o2td.compiled import njit
from o2td.kernels.resampling import mixed

if TYPE_CHECKING:
    from o2td.evaluation.moments import Spread

Keys = npt.NDArray[np.uint64]

LANES = 200
# Poisson(1) by inversion: the number of these steps below a uniform 64-bit word.
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
            x = mixed(mixed(x))
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


@dataclass(frozen=True)
class Interval:
    """Ends, the name of the construction, and the standard error by the influence values."""

    low: float
    high: float
    name: str
    standard_error: float


def sandwich(value: float, influence: Spread, confidence: float) -> Interval:
    """`value ± t se`: the closed form, symmetric."""
    from scipy.stats import t

    reach = float(t.ppf(0.5 + confidence / 2.0, max(influence.count - 1, 1))) * influence.error
    return Interval(value - reach, value + reach, "clustered sandwich", influence.error)


def bca(value: float, lanes: Floats, influence: Spread, confidence: float) -> Interval:
    """Bias-corrected and accelerated ends from bootstrap lanes and influence values.

    The levels are widened as for a t distribution, `alpha = Phi(t_alpha sqrt(E / (E - 1)))`,
    because percentile intervals are too narrow for few episodes (Hesterberg 2015, section 5).

    >>> from o2td.evaluation.moments import Spread
    >>> x = np.random.default_rng(0).exponential(size=200)
    >>> influence = Spread.of(x, np.arange(200, dtype=np.uint64), seed=0, lanes=2000)
    >>> found = bca(x.mean(), influence.lanes, influence, 0.95)
    >>> bool(found.high - x.mean() > x.mean() - found.low)  # longer where the tail is
    True
    """
    from scipy.stats import norm, t

    count = influence.count
    lanes = lanes[np.isfinite(lanes)]
    if count < 2 or len(lanes) < 20 or not np.isfinite(value):
        return sandwich(value, influence, confidence)
    # With few episodes many lanes repeat the value itself, up to rounding.
    same = np.abs(lanes - value) <= 1e-12 * (abs(value) + float(np.std(lanes)))
    below = float(np.where(same, 0.5, lanes < value).mean())
    edge = 1.0 / (2.0 * len(lanes))
    z0 = float(norm.ppf(min(max(below, edge), 1.0 - edge)))
    a = influence.skew / 6.0
    reach = float(t.ppf(0.5 + confidence / 2.0, count - 1)) * sqrt(count / (count - 1))
    ends = []
    for z in (-reach, reach):
        slope = max(1.0 - a * (z0 + z), 0.05)
        ends.append(float(norm.cdf(z0 + (z0 + z) / slope)))
    low, high = (_quantile(lanes, level) for level in ends)
    return Interval(min(low, value), max(high, value), "BCa bootstrap of episodes", influence.error)


def rule_of_three(
    value: float, count: float, confidence: float, error: float, scale: float | None = None
) -> Interval:
    """`value ± p scale` if all `count` episodes agree, with `(1 - p)^count = alpha`.

    Episodes of another kind, if their share is p, would have been seen with this confidence; p is
    about 3 / count at 95 % (Hanley and Lippman-Hand 1983). They are assumed to differ by up to
    `scale`, the size of the value itself unless given.

    >>> found = rule_of_three(10.0, 300, 0.95, 0.0)
    >>> round(found.low, 2), round(found.high, 2)
    (9.9, 10.1)
    """
    share = 1.0 - (1.0 - confidence) ** (1.0 / max(count, 1.0))
    reach = share * abs(value if scale is None else scale)
    return Interval(value - reach, value + reach, "rule of three: no episode differs", error)


def _quantile(lanes: Floats, level: float) -> float:
    """A quantile; beyond the outermost lanes it follows a normal tail fitted to them."""
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

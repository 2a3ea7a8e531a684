"""Numbers with intervals, all at 95 %: shares, means, medians, and ratios of means over runs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

_RESAMPLES = 2000


class ValueInterval(NamedTuple):
    """A number and the 95 % interval around it."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{number(self.value)} [{number(self.low)}, {number(self.high)}]"


def number(value: float | None, digits: int = 3) -> str:
    """A number for readers: `digits` significant digits, no exponent if it can be avoided.

    >>> number(0.01234), number(12345.6), number(float("inf"))
    ('0.0123', '12300', '∞')
    """
    if value is None or np.isnan(value):
        return "–"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value)}".replace("-", "−")
    size = abs(value)
    if not 1e-3 <= size < 1e6:
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        power = (
            str(int(exponent))
            .replace("-", "⁻")
            .translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
        )
        return f"{mantissa.replace('-', '−')}·10{power}"
    places = max(0, digits - 1 - int(np.floor(np.log10(size))))
    rounded = round(value, digits - 1 - int(np.floor(np.log10(size))))
    return f"{rounded:.{places}f}".replace("-", "−")


def percent(share: float) -> str:
    """A share as a percentage: one decimal below ten, none above.

    >>> percent(0.015), percent(0.5), percent(0.0)
    ('1.5 %', '50 %', '0 %')
    """
    value = 100.0 * share
    return f"{value:.1f} %" if 0.0 < value < 10.0 else f"{value:.0f} %"


def mean(values: Any) -> ValueInterval:
    """Mean with Student's interval; infinite if a value is.

    >>> mean([1.0, 2.0, 3.0]).value
    2.0
    """
    x = np.asarray(values, dtype=float)
    if not np.isfinite(x).all():
        return ValueInterval(np.inf, np.inf, np.inf)
    middle = float(x.mean())
    if len(x) < 2:
        return ValueInterval(middle, -np.inf, np.inf)
    half = float(stdtrit(len(x) - 1, 0.975) * x.std(ddof=1) / np.sqrt(len(x)))
    return ValueInterval(middle, middle - half, middle + half)


def median(values: Any) -> ValueInterval:
    """Median with the interval between order statistics (binomial, normal approximation).

    >>> median(range(1, 102)).value
    51.0
    """
    x = np.sort(np.asarray(values, dtype=float))
    n = len(x)
    half = 1.96 * np.sqrt(n) / 2.0
    low, high = int(np.floor(n / 2 - half)), int(np.ceil(n / 2 + half)) - 1
    middle = float(
        x[(n - 1) // 2] if n % 2 or np.isinf(x[n // 2]) else x[n // 2 - 1 : n // 2 + 1].mean()
    )
    return ValueInterval(middle, float(x[max(low, 0)]), float(x[min(high, n - 1)]))


def wilson(count: int, n: int) -> ValueInterval:
    """A share of n with Wilson's interval, which is also right near 0 and 1.

    >>> wilson(0, 200).low, round(wilson(0, 200).high, 3)
    (0.0, 0.019)
    """
    if n == 0:
        return ValueInterval(np.nan, 0.0, 1.0)
    z, share = 1.959963984540054, count / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if count == 0 else max(0.0, centre - half)
    high = 1.0 if count == n else min(1.0, centre + half)
    return ValueInterval(share, float(low), float(high))


def ratio_of_means(top: Any, bottom: Any) -> ValueInterval:
    """`mean(top) / mean(bottom)` of the same runs, with a percentile bootstrap over these.

    >>> ratio_of_means([1.0, 1.0], [2.0, 2.0])
    ValueInterval(value=0.5, low=0.5, high=0.5)
    """
    a, b = np.asarray(top, dtype=float), np.asarray(bottom, dtype=float)
    if not np.isfinite(a).all():
        return ValueInterval(np.inf, np.inf, np.inf)
    if not np.isfinite(b).all():
        return ValueInterval(0.0, 0.0, 0.0)
    drawn = np.random.default_rng(0).integers(len(a), size=(_RESAMPLES, len(a)))
    ratios = a[drawn].mean(axis=1) / b[drawn].mean(axis=1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return ValueInterval(float(a.mean() / b.mean()), float(low), float(high))


def slope(x: Any, y: Any) -> ValueInterval:
    """Slope of `log y` on `log x` with Student's interval: the exponent with which y grows in x.

    >>> round(slope([1, 10, 100, 1000], [2, 20, 200, 2000]).value, 6)
    1.0
    """
    u, v = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float))
    centred = u - u.mean()
    spread = float(centred @ centred)
    found = float(centred @ v / spread)
    rest = v - v.mean() - found * centred
    degrees = max(len(u) - 2, 1)
    half = float(stdtrit(degrees, 0.975) * np.sqrt(rest @ rest / degrees / spread))
    return ValueInterval(found, found - half, found + half)

"""Moments and bootstrap lanes of episodes' influence values, in one pass.

Sums of powers about the means of two parts, `a` and `b`, whose means differ by `d`, are combined
(Pébay 2008): `M2 = M2a + M2b + d^2 na nb / n`, and so on. An interval needs only these and one
weighted sum per bootstrap lane, so memory does not grow with the number of episodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from o2td.arrays import Floats
from o2td.evaluation.bootstrap import poisson_counts
from o2td.evaluation.episodes import Keys

_COUNTS = 1 << 20  # bootstrap counts kept at a time


@dataclass(frozen=True, eq=False)
class Spread:
    """What intervals and verdicts need to know about a number per episode.

    `error` is the standard error of its mean (of an influence value: the clustered sandwich), `skew`
    is `sum I^3 / (sum I^2)^(3/2)`, `carrying` the number of episodes `(sum I^2)^2 / sum I^4` that the
    variation rests on (all about the mean), `lanes` the mean in each bootstrap lane and `deviation`
    that of single values. Where episodes have users, `count`, `error`, `skew` and `carrying` are about
    sums by user. `values` are the numbers themselves about their mean, where they were kept; `among`
    has the moments of several numbers, of which this is one `column`, with their covariances.

    >>> found = Spread.of(np.array([1.0, -1.0]))
    >>> found.count, round(found.error, 3), found.skew, found.carrying
    (2, 1.0, 0.0, 2.0)
    """

    count: int
    mean: float
    error: float
    skew: float
    carrying: float
    lanes: Floats
    deviation: float
    values: Floats | None = None
    among: Moments | None = None
    column: int = -1

    @classmethod
    def of(cls, values: Floats, key: Keys | None = None, seed: int = 0, lanes: int = 0) -> Spread:
        """From an array of all values."""
        moments = Moments(1, seed, lanes)
        moments.add(values[:, None], np.zeros(len(values), dtype=np.uint64) if key is None else key)
        return moments.spread(0)

    def apart(self, other: Spread) -> float:
        """Standard error of the difference from another number of the same episodes.

        From their covariance, or else from their lanes; without either they count as independent.

        >>> key = np.arange(50, dtype=np.uint64)
        >>> one, shifted = (Spread.of(key % 5.0 + by, key, 0, 100) for by in (0.0, 3.0))
        >>> round(one.apart(shifted), 12)
        0.0
        """
        if self.among is not None and self.among is other.among:
            if self.column == other.column:
                return 0.0
            return self.among.error({self.column: 1.0, other.column: -1.0})
        if not len(self.lanes) or len(self.lanes) != len(other.lanes):
            return float(np.hypot(self.error, other.error))
        return float(np.std(self.lanes - other.lanes))


@dataclass(eq=False)
class Users:
    """Number of episodes and sums of several numbers by user; users are identified by hashes."""

    key: Keys
    sums: Floats  # (users, 1 + columns): the episodes, and the numbers

    @classmethod
    def none(cls, columns: int) -> Users:
        """No user yet."""
        return cls(np.zeros(0, dtype=np.uint64), np.zeros((0, 1 + columns)))

    def add(self, key: Keys, sums: Floats) -> None:
        """Add rows of sums; a user may occur more than once."""
        name, at = np.unique(np.concatenate([self.key, key]), return_inverse=True)
        total = np.zeros((len(name), sums.shape[1]))
        np.add.at(total, at.ravel(), np.concatenate([self.sums, sums]))
        self.key, self.sums = name, total

    def about(self, mean: float, column: int) -> Floats:
        """Each user's sum about the mean."""
        return np.asarray(self.sums[:, 1 + column] - self.sums[:, 0] * mean)


class Moments:
    """Count, means, central sums of powers 2 to 4, and lanes of several numbers per episode.

    Each number is kept in units of a power of two near its largest value, so that powers of
    exploding weights neither overflow nor lose digits.
    """

    def __init__(self, columns: int, seed: int = 0, lanes: int = 0, users: bool = False) -> None:
        self.count, self.seed = 0, seed
        self.users = Users.none(columns) if users else None
        self.exponent = np.full(columns, -1000)
        self.mean = np.zeros(columns)
        self.powers = np.zeros((3, columns))
        self.products = np.zeros((columns, columns))  # of two columns, about their means
        self.drawn = np.zeros(lanes)
        self.lanes = np.zeros((lanes, columns))

    def add(self, values: Floats, key: Keys) -> None:
        """Add (episodes, columns) values; the episodes' keys decide their bootstrap counts."""
        if len(values):
            with np.errstate(over="ignore", invalid="ignore"):  # of what is not finite
                self._add(values, key)

    def _add(self, values: Floats, key: Keys) -> None:
        top = np.abs(values).max(axis=0)
        self._scale(np.where(np.isfinite(top) & (top > 0.0), np.frexp(top)[1] - 1, -1000))
        values = np.ldexp(values, -self.exponent)
        mean = values.mean(axis=0)
        apart = values - mean
        square = apart**2
        powers = np.stack(
            [square.sum(axis=0), (square * apart).sum(axis=0), (square**2).sum(axis=0)]
        )
        self._join(len(values), mean, powers, apart.T @ apart)
        if self.users is not None:
            self.users.add(key, np.column_stack([np.ones(len(values)), values]))
        lanes = len(self.drawn)
        size = max(1, _COUNTS // max(lanes, 1))
        for low in range(0, len(values) if lanes else 0, size):
            counts = poisson_counts(key[low : low + size], self.seed, lanes)
            self.drawn += counts.sum(axis=0)
            self.lanes += counts.T @ values[low : low + size]

    def merge(self, more: Moments) -> None:
        """Add another one's sums."""
        self._scale(more.exponent)
        more._scale(self.exponent)
        self._join(more.count, more.mean, more.powers, more.products)
        self.drawn += more.drawn
        self.lanes += more.lanes
        if self.users is not None and more.users is not None:
            self.users.add(more.users.key, more.users.sums)

    def _scale(self, exponent: Floats) -> None:
        exponent = np.maximum(self.exponent, exponent)
        by = self.exponent - exponent
        self.exponent = exponent
        self.mean = np.ldexp(self.mean, by)
        self.powers = np.ldexp(self.powers, by * np.array([[2], [3], [4]]))
        self.products = np.ldexp(self.products, by[:, None] + by)
        self.lanes = np.ldexp(self.lanes, by)
        if self.users is not None:
            self.users.sums[:, 1:] = np.ldexp(self.users.sums[:, 1:], by)

    @property
    def units(self) -> int:
        """Number of episodes, or of users if they are known."""
        return self.count if self.users is None else len(self.users.key)

    def _join(self, nb: int, mean: Floats, powers: Floats, products: Floats) -> None:
        na, n = self.count, self.count + nb
        if not nb:
            return
        d, share = mean - self.mean, nb / n
        (a2, a3, a4), (b2, b3, b4) = self.powers, powers
        both = na * share  # na nb / n
        fourth = a4 + b4 + d**4 * both * (na * na - na * nb + nb * nb) / n**2
        fourth += 6.0 * d**2 * (na**2 * b2 + nb**2 * a2) / n**2 + 4.0 * d * (na * b3 - nb * a3) / n
        third = a3 + b3 + d**3 * both * (na - nb) / n + 3.0 * d * (na * b2 - nb * a2) / n
        self.powers = np.stack([a2 + b2 + d**2 * both, third, fourth])
        self.products = self.products + products + both * np.outer(d, d)
        self.mean = self.mean + d * share
        self.count = n

    def error(self, weights: dict[int, float]) -> float:
        """Standard error of a weighted sum of columns."""
        at = np.array(list(weights))
        exponent = self.exponent[at]
        top = int(exponent.max())
        each = np.array(list(weights.values())) * np.ldexp(1.0, exponent - top)
        count, n = self.units, self.count
        if count < 2:
            return float("inf")
        if self.users is None:
            square = float(each @ self.products[np.ix_(at, at)] @ each)
        else:
            sums = sum(x * self.users.about(self.mean[k], k) for x, k in zip(each, at, strict=True))
            square = float(np.square(sums).sum())
        return float(np.ldexp(sqrt(max(square, 0.0) * count / (count - 1)) / n, top))

    def spread(self, column: int) -> Spread:
        """The spread of one column."""
        unit = float(np.ldexp(1.0, int(self.exponent[column])))
        second, third, fourth = (float(power) for power in self.powers[:, column])
        n, count, mean = self.count, self.units, float(self.mean[column])
        lanes = self.lanes[:, column] / np.maximum(self.drawn, 1.0)
        deviation = unit * sqrt(second / n) if n > 1 else 0.0
        if self.users is not None:
            each = self.users.about(mean, column)
            second, third, fourth = (float((each**power).sum()) for power in (2, 3, 4))
        return Spread(
            count,
            unit * mean,
            unit * sqrt(second * count / (count - 1)) / n if count > 1 else float("inf"),
            third / second**1.5 if second > 0.0 else 0.0,
            second**2 / fourth if fourth > 0.0 else float("inf"),
            unit * np.where(self.drawn > 0.0, lanes, mean),  # a lane may have drawn nothing
            deviation,
            among=self,
            column=column,
        )

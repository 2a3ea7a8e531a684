"""Does one thing depend on another, given state and action? Score tests within strata.

With residuals `x~, y~` around the means of their stratum, `U = sum x~ y~` has mean 0 if y does not
depend on x, and variance `sum_k S_xx S_yy / (n_k - 1)` over strata (Mantel and Haenszel's, by
permutation within strata). In a Markov log `y~` is a martingale difference and x is known before,
so this also holds along episodes. If single rows dominate the sum, the sum of squares is the larger
variance and is used instead. Of many pairs (x, y) the strongest counts, by Bonferroni's rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np

from o2td.arrays import Bools, Floats, Ints
from o2td.evaluation.log_tests.seen import stratum_of, sums, without_means

ALARM = 0.005  # target probability of a false alarm per test; 0.01 is stated
_SPREAD = 30.0  # effective rows that a sum needs to count as normal
_DRAWN = 2.0  # weight, in rows, of the mean without the past
_ROUNDING = 1e-9  # of a score


@dataclass(frozen=True)
class Strongest:
    """The pair with the largest standardised sum: its columns, the sum, and its p-value."""

    x: int
    y: int
    z: float
    chance: float

    @property
    def alarming(self) -> bool:
        """Whether the p-value is too small for chance."""
        return self.chance < ALARM


NOTHING = Strongest(-1, -1, 0.0, 1.0)


def strongest(x: Floats, y: Floats, stratum: Ints | None = None) -> Strongest:
    """The strongest dependence between columns of x and of y, given the stratum.

    >>> rng = np.random.default_rng(0)
    >>> x, noise = rng.normal(size=(400, 1)), rng.normal(size=(400, 2))
    >>> strongest(x, noise).alarming, strongest(x, noise + 0.5 * x).alarming
    (False, True)
    """
    if not len(x):
        return NOTHING
    group = np.zeros(len(x), dtype=np.int64) if stratum is None else stratum
    x, y = without_means(x, group), without_means(y, group)
    count = np.bincount(group)
    free = 1.0 / np.maximum(count - 1.0, 1.0)
    xx, yy = x * x, y * y
    sxx, syy = (sums(part, group, len(count)) for part in (xx, yy))
    own, sharing = _shared(xx, yy)
    variance = np.maximum((sxx * free[:, None]).T @ syy, own)
    fine = (variance > 0.0) & (sharing > _SPREAD)
    score = np.zeros_like(own)
    score[fine] = (x.T @ y)[fine] / np.sqrt(variance[fine])
    return _most(score, int(fine.sum()))


def _shared(xx: Floats, yy: Floats) -> tuple[Floats, Floats]:
    """Sums of `x^2 y^2` and the effective number of rows in them; the squares are squared in place."""
    own = xx.T @ yy
    fourth = np.square(xx, out=xx).T @ np.square(yy, out=yy)
    sharing = np.divide(own * own, fourth, out=np.zeros_like(own), where=fourth > 0.0)
    return own, sharing


def clustered(x: Floats, y: Floats) -> Strongest:
    """The same with one row per independent episode: the variance is from their own squares."""
    together = np.zeros(len(x), dtype=np.int64)
    x, y = without_means(x, together), without_means(y, together)
    own, sharing = _shared(x * x, y * y)
    fine = sharing > _SPREAD / 2.0
    score = np.zeros_like(own)
    score[fine] = (x.T @ y)[fine] / np.sqrt(own[fine])
    return _most(score, int(fine.sum()))


def _most(score: Floats, tried: int) -> Strongest:
    if not tried:
        return NOTHING
    size = np.abs(score)
    equal = size >= (1.0 - _ROUNDING) * size.max()  # rounding must not choose among them
    i, j = max(zip(*np.nonzero(equal), strict=True), key=lambda pair: (pair[0], -pair[1]))
    z = float(score[i, j])
    return Strongest(int(i), int(j), z, min(1.0, tried * two_sided(z)))


def foretold(y: Floats, past: Ints, stratum: Ints, fit: Bools) -> Floats:
    """How well means by past, over the rows of `fit`, predict each of the other rows.

    `x~ y~` of each column, in units of its deviation, where x are the means by stratum and past. It
    averages 0 if y does not depend on the past, and the direction of a dependence need not be known:
    the rows of `fit` tell it.

    >>> rng = np.random.default_rng(0)
    >>> past, stratum = rng.integers(3, size=(2, 4000))
    >>> sign = np.where((past + stratum) % 2, 1.0, -1.0)  # cancels over strata
    >>> fit = np.arange(4000) % 2 == 0
    >>> y = 0.2 * sign[:, None] + rng.normal(size=(4000, 1))
    >>> rising(foretold(y, past, stratum, fit)[:, 0], 0, 0).alarming
    True
    >>> rising(foretold(y, rng.permutation(past), stratum, fit)[:, 0], 0, 0).alarming
    False
    """
    scale = y.std(axis=0)
    y = y / np.where(scale > 0.0, scale, 1.0)
    usual = np.broadcast_to(y[fit].mean(axis=0), y[~fit].shape)
    usual = means(y, stratum_of(stratum, past), fit, means(y, stratum, fit, usual))
    x, y = (without_means(part, stratum[~fit]) for part in (usual, y[~fit]))
    return np.asarray(x * y)


def means(y: Floats, code: Ints, fit: Bools, drawn: Floats) -> Floats:
    """Means of columns by code over the rows of `fit`, for the others, shrunk towards other means."""
    size, there = int(code.max()) + 1, code[~fit]
    total = sums(y[fit], code[fit], size) / _DRAWN
    count = np.bincount(code[fit], minlength=size) / _DRAWN
    return np.asarray((total[there] + drawn) / (count[there] + 1.0)[:, None])


def rising(each: Floats, x: int, y: int) -> Strongest:
    """Whether rows' parts sum to more than chance allows."""
    square = np.square(each)
    own = float(square.sum())
    if own <= 0.0 or own**2 < _SPREAD * float(np.square(square).sum()):
        return NOTHING
    z = float(each.sum() / np.sqrt(own))
    return Strongest(x, y, z, two_sided(z) / 2.0 if z > 0.0 else 1.0)


def two_sided(z: float) -> float:
    """Probability that a standard normal variable lies beyond ±z."""
    return erfc(abs(z) / sqrt(2.0))


def chi_square_chance(value: float, freedom: float) -> float:
    """Probability of a chi-square variable above `value`, by Wilson and Hilferty's cube root.

    >>> round(chi_square_chance(18.3, 10), 3)
    0.05
    """
    if freedom <= 0.0:
        return 1.0
    part = 2.0 / (9.0 * freedom)
    z = ((value / freedom) ** (1.0 / 3.0) - (1.0 - part)) / sqrt(part)
    return 0.5 * erfc(z / sqrt(2.0))


def poisson_chance(count: int, mean: float) -> float:
    """Probability of at least `count` events if `mean` are expected.

    >>> round(poisson_chance(3, 1.0), 3)
    0.08
    """
    if count <= 0:
        return 1.0
    if mean > 50.0:
        return 0.5 * erfc((count - 0.5 - mean) / sqrt(2.0 * mean))
    term, below = float(np.exp(-mean)), 0.0
    for k in range(count):
        below += term
        term *= mean / (k + 1)
    return max(1.0 - below, 0.0)


def excess_chance(probability: Floats, state: Ints, pair: Ints) -> float:
    """Chance that actions were taken so much more often than their logged probabilities allow.

    Where `b` is right, `1{a = k} / b` averages at most 1 in every state, for every action k, whatever
    else the policy knew and however it changed: 1 over all rows, less over those with `b` above a
    bound. It averages more for some action where `b` belongs to others. Of all pairs of state and
    action the worst counts, by Bonferroni's rule; those that few rows carry are left out.

    >>> rng = np.random.default_rng(0)
    >>> b = rng.choice([0.5, 0.95], size=4000)  # a policy that changed along the way
    >>> action = (rng.random(4000) > b).astype(int)
    >>> own, state = np.where(action == 0, b, 1 - b), np.zeros(4000, dtype=int)
    >>> excess_chance(own, state, action) > 0.01  # right, although it varies within a state
    True
    >>> excess_chance(rng.permutation(own), state, action) < 1e-6  # of other rows' actions
    True
    """
    rows = np.bincount(state).astype(np.float64)
    weight = np.divide(
        1.0, probability, where=probability * rows[state] >= 5.0, out=np.zeros(len(pair))
    )
    total, square, fourth = (np.bincount(pair, weight**k) for k in (1, 2, 4))
    expected = np.zeros(len(total))
    expected[pair] = rows[state]
    variance = square - total
    shared = np.divide(square**2, fourth, where=fourth > 0.0, out=np.zeros(len(total)))
    fine = (shared >= _SPREAD) & (variance > 0.0)
    if not fine.any():
        return 1.0
    z = float(((total - expected)[fine] / np.sqrt(variance[fine])).max())
    return min(1.0, 0.5 * float(fine.sum()) * erfc(z / sqrt(2.0)))

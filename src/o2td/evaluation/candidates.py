"""Feature maps that `features="auto"` considers, scaled to the data at hand.

Bounds are either the range of the data or its 1 % and 99 % quantiles, with values outside moved to
the edge: otherwise a few extreme rows would squeeze all others into the middle of every wave.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from o2td.arrays import Floats, Ints
from o2td.features import Fourier, Polynomial, Radial

TRACES = (0.0, 0.8)
RIDGES = (1e-8, 1e-5, 1e-3)
_QUANTILE = 0.01
_CENTERS = 200
_CENTERED = 3  # variables up to which this many centres are close to each other
_WIDTHS = (0.3, 0.6)  # of the median distance between rows
_LARGEST = 350  # features
_NEIGHBOURS = 4000  # rows from which centres are taken


def candidates(inputs: Floats, seed: int, rows: int) -> Iterator[Any]:
    """Fitted feature maps for observations (n, k), of which `inputs` is a sample of `rows` rows."""
    k = inputs.shape[1]
    largest = min(_LARGEST, max(rows // 20, 4))
    low, high = inputs.min(axis=0), inputs.max(axis=0)
    inner = np.quantile(inputs, [_QUANTILE, 1.0 - _QUANTILE], axis=0)
    # A variable that is nearly constant keeps its whole range.
    flat = inner[1] <= inner[0]
    tight = np.column_stack([np.where(flat, low, inner[0]), np.where(flat, high, inner[1])])
    wide = np.column_stack([low, high])
    for bounds in (wide, tight):
        for order, coupled in _waves(k, largest):
            yield Fourier(order, bounds=bounds, coupled=coupled).fit()
    for degree in (1, 3):
        if _monomials(k, degree) <= largest:
            yield Polynomial(degree, bounds=wide).fit()
    centers = min(_CENTERS, largest - 1)
    if centers >= 20 and k <= _CENTERED:
        yield from _radial(inputs, wide, centers, seed)


def nested(maps: list[Any]) -> list[tuple[int, Ints]]:
    """For each map, the largest map that contains its features, and their places in it.

    The waves (or monomials) of an order are among those of a higher order.

    >>> bounds = [(0.0, 1.0)]
    >>> nested([Fourier(1, bounds=bounds).fit(), Fourier(3, bounds=bounds).fit()])[0]
    (1, array([0, 1]))
    """
    found: list[tuple[int, Ints]] = [(k, np.arange(m.n_features_out_)) for k, m in enumerate(maps)]
    terms = [_terms(one) for one in maps]
    largest: list[int] = []
    for k in sorted(range(len(maps)), key=lambda k: -maps[k].n_features_out_):
        names, own = terms[k]
        for other in largest:
            kind, places = terms[other]
            if own and kind == names and own.keys() <= places.keys():
                found[k] = (other, np.array([places[term] for term in own]))
                break
        else:
            largest.append(k)
    return found


def _terms(features: Any) -> tuple[Any, dict[tuple[int, ...], int]]:
    """What two comparable maps must share, and the place of each feature by its term."""
    if isinstance(features, Fourier):
        listed = features.coefficients()
    elif isinstance(features, Polynomial):
        listed = features.powers()
    else:
        return None, {}
    kind = (type(features), np.asarray(features.bounds).tobytes())
    return kind, {tuple(term): place for place, term in enumerate(listed.tolist())}


def _waves(k: int, largest: int) -> list[tuple[int, bool | int]]:
    """Orders whose number of features is at most `largest`: all coupled, in pairs, or alone."""
    shapes: list[tuple[int, bool | int]] = []
    shapes += [(o, True) for o in (2, 3, 5, 7) if (o + 1) ** k <= largest]
    if k >= 3:
        pairs = k * (k - 1) // 2
        shapes += [(o, 2) for o in (2, 4, 5, 6, 7) if 1 + k * o + pairs * o * o <= largest]
    if k >= 2:
        shapes += [(o, False) for o in (5,) if 1 + k * o <= largest]
    return shapes


def _monomials(k: int, degree: int) -> int:
    from math import comb

    return comb(k + degree, degree)


def _radial(inputs: Floats, bounds: Floats, count: int, seed: int) -> Iterator[Any]:
    """Radial bases around rows of the data: half far apart, half where the data are dense."""
    rng = np.random.default_rng(seed)
    spread = inputs.std(axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    pool = inputs[rng.permutation(len(inputs))[:_NEIGHBOURS]]
    scaled = pool / spread
    far = farthest(scaled, count // 2)
    near = rng.permutation(len(pool))[: count - len(far)]
    centers = np.unique(np.concatenate([pool[far], pool[near]]), axis=0)
    median = median_distance(scaled)
    reach = bounds[:, 1] - bounds[:, 0]
    for width in _WIDTHS:
        each = width * median * spread / np.where(reach > 0.0, reach, 1.0)
        yield Radial(centers=centers, width=each, bounds=bounds).fit()


def farthest(rows: Floats, count: int) -> list[int]:
    """Indices of rows, each the farthest from those before it (Gonzalez 1985).

    >>> farthest(np.array([[0.0], [1.0], [5.0]]), 2)
    [0, 2]
    """
    chosen = [0]
    distance = ((rows - rows[0]) ** 2).sum(axis=1)
    while len(chosen) < min(count, len(rows)):
        best = int(distance.argmax())
        if distance[best] == 0.0:
            break
        chosen.append(best)
        distance = np.minimum(distance, ((rows - rows[best]) ** 2).sum(axis=1))
    return chosen


def median_distance(rows: Floats, sample: int = 500) -> float:
    """Median distance between rows, the usual width of a Gaussian kernel; 1 if all are equal.

    >>> median_distance(np.array([[0.0], [1.0], [3.0]]))
    2.0
    """
    rows = rows[:sample]
    square = (rows**2).sum(axis=1)
    between = np.maximum(square[:, None] + square - 2.0 * rows @ rows.T, 0.0)
    upper = between[np.triu_indices(len(rows), 1)]
    found = float(np.sqrt(np.median(upper))) if len(upper) else 0.0
    return found if found > 0.0 else 1.0

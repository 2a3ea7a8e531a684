"""The Fourier basis: `phi_c(x) = cos(pi c.u)`, with `u` the observation scaled to [0, 1]^k.

Konidaris, Osentoski & Thomas (2011), "Value function approximation in reinforcement learning using
the Fourier basis", AAAI. They divide the step size of feature c by ||c||; dividing the feature by
the square root of that does the same to a TD step, for any learner.
"""

from __future__ import annotations

from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arguments import whole
from o2td.arrays import Floats, Ints
from o2td.errors import InputError
from o2td.features.base import MAX_DENSE, product_within
from o2td.features.scaling import Bounds, Dense

_PRODUCT_FROM = 16  # length of a product's inner loop from which it beats one cosine per feature


class Fourier(Dense):
    """`phi_c(x) = cos(pi c.u)` for all `c` in {0..order}^k; the first one is constant.

    Parameters
    ----------
    order : int
        Largest frequency of each variable, in half waves over its range.
    bounds : sequence of (low, high) pairs, or an object with `low` and `high`, optional
        None means that they are learned from data.
    scale : None or "coefficient"
        "coefficient" divides feature c by sqrt(||c||) for c other than 0.
    coupled : bool or int
        False keeps only the c with at most one nonzero entry: 1 + k order features, useful for many
        variables. A number m keeps those with at most m: 2 couples the variables in pairs.
    clip : bool
        Move values out of bounds to the nearest bound. If False, the waves continue beyond it.

    The order of the features is that of `itertools.product`: the last variable changes fastest.
    Uncoupled: the constant, then frequencies 1 to order of each variable in turn.

    Examples
    --------
    >>> from o2td.features import Fourier
    >>> Fourier(2, bounds=[(0, 1)]).transform([[0.0], [0.5], [1.0]]).round(6) + 0.0
    array([[ 1.,  1.,  1.], [ 1.,  0., -1.], [ 1., -1.,  1.]])
    >>> Fourier(3).fit([[0.0, -1.0], [2.0, 1.0]]).n_features_out_
    16
    """

    feature = "fourier"
    spec = "fourier:ORDER"
    _waves: tuple[npt.NDArray[Any], ...]

    def __init__(
        self,
        order: int,
        bounds: Bounds = None,
        scale: str | None = None,
        coupled: bool | int = True,
        clip: bool = True,
    ) -> None:
        self.order = order
        self.bounds = bounds
        self.scale = scale
        self.coupled = coupled
        self.clip = clip

    def coefficients(self) -> Ints:
        """Return the integer vectors c, one per row, in the order of the features."""
        self._ready()
        return self._frequencies(self.n_features_in_)

    def _frequencies(self, k: int) -> Ints:
        if self._together(k) < k and self.coupled:
            return self._few(k)
        if self.coupled:
            m = self.order + 1
            places = np.array([m**j for j in range(k - 1, -1, -1)], dtype=np.int64)
            return np.arange(m**k)[:, None] // places % m
        frequency, variable = self._single(k)
        c = np.zeros((len(frequency), k), dtype=np.int64)
        c[np.arange(len(c)), variable] = frequency
        return c

    def _together(self, k: int) -> int:
        """Largest number of variables that share a feature."""
        if isinstance(self.coupled, bool):
            return k if self.coupled else 1
        return min(whole("coupled", self.coupled, 1), k)

    def _few(self, k: int) -> Ints:
        """The vectors c with few nonzero entries, ordered by their number, then as by `product`."""
        blocks = [np.zeros((1, k), dtype=np.int64)]
        for m in range(1, self._together(k) + 1):
            own = np.array(list(product(range(1, self.order + 1), repeat=m)), dtype=np.int64)
            for variables in combinations(range(k), m):
                c = np.zeros((len(own), k), dtype=np.int64)
                c[:, variables] = own.reshape(-1, m)
                blocks.append(c)
        return np.concatenate(blocks)

    def _single(self, k: int) -> tuple[Ints, Ints]:
        """The one frequency of each uncoupled feature, and its variable."""
        frequency = np.tile(np.arange(1, self.order + 1), k)
        return np.append(0, frequency), np.append(0, np.repeat(np.arange(k), self.order))

    def _build(self, k: int) -> int:
        order = whole("order", self.order, 0)
        if self.scale is not None and (
            not isinstance(self.scale, str) or self.scale != "coefficient"
        ):
            raise InputError(f'scale: {self.scale!r} is not known; pass None or "coefficient"')
        together = self._together(k)
        self._partly = bool(self.coupled) and together < k
        d = product_within([order + 1] * k, MAX_DENSE) if self.coupled else 1 + k * order
        if self._partly:
            d = sum(comb(k, m) * order**m for m in range(together + 1))
        if d is None or d > MAX_DENSE:
            shown = f"{order + 1}^{k}" if self.coupled else f"{d}"
            raise InputError(
                f"order: {order} with {k} variables makes {shown} features, more than "
                f"{MAX_DENSE:,}; lower it, pass coupled=False, or use tiles"
            )
        self._product = self.coupled and not self._partly and d // (order + 1) >= _PRODUCT_FROM
        if not self.coupled:
            frequency, variable = self._single(k)
            self._waves = (frequency.astype(np.float64), variable.astype(np.uint64))
        elif not self._product:
            self._waves = (self._frequencies(k).T.astype(np.float64, order="C"),)
        self._weights: Floats | None = None
        if self.scale == "coefficient":
            norm = np.sqrt(self._squared_norms(k))
            self._weights = 1.0 / np.sqrt(np.where(norm > 0, norm, 1.0))
        return d

    def _squared_norms(self, k: int) -> Floats:
        square = np.arange(self.order + 1, dtype=np.float64) ** 2
        if self._partly:
            return np.asarray((self._frequencies(k).astype(np.float64) ** 2).sum(axis=1))
        if not self.coupled:
            return np.concatenate([[0.0], np.tile(square[1:], k)])
        total = np.zeros(1)
        for _ in range(k):
            total = np.add.outer(total, square).ravel()
        return total

    def _map(self, u: Floats, out: Floats) -> None:
        from o2td.features import feature_loops

        if self._product:
            feature_loops.fourier_product(u, int(self.order), out)
        else:
            phases: Any = feature_loops.phases if self.coupled else feature_loops.phases_uncoupled
            phases(u, *self._waves, out)
            feature_loops.cos_pi(out.reshape(-1))
        if self._weights is not None:
            out *= self._weights

    def _names(self, inputs: list[str]) -> list[str]:
        return [_wave(c, inputs) for c in self.coefficients().tolist()]


def _wave(c: list[int], inputs: list[str]) -> str:
    terms = [x if f == 1 else f"{f} {x}" for f, x in zip(c, inputs, strict=True) if f]
    return f"cos(pi ({' + '.join(terms)}))" if terms else "1"

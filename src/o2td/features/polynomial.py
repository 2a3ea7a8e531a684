"""Polynomials: all products of at most `degree` variables, scaled to [-1, 1]."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np

from o2td.arguments import whole
from o2td.arrays import Floats, Ints
from o2td.errors import InputError
from o2td.features.base import MAX_DENSE
from o2td.features.scaling import Bounds, Dense


class Polynomial(Dense):
    """`phi_c(x) = prod_j v_j^(c_j)` for all c of total at most `degree`; the first one is 1.

    The variables are scaled to `v` in [-1, 1], where powers are far less correlated than on [0, 1].
    A constant column becomes 0.

    Parameters
    ----------
    degree : int
        Largest total degree. 1 gives the scaled variables themselves and a constant.
    bounds : sequence of (low, high) pairs, or an object with `low` and `high`, optional
        None means that they are learned from data.
    clip : bool
        Move values out of bounds to the nearest bound. If False, the powers grow beyond it.

    Examples
    --------
    >>> from o2td.features import Polynomial
    >>> phi = Polynomial(2, bounds=[(0, 2), (0, 1)])
    >>> phi.transform([[1.5, 0.0]])
    array([[ 1.  ,  0.5 , -1.  ,  0.25, -0.5 ,  1.  ]])
    >>> list(phi.get_feature_names_out())
    ['1', 'x0', 'x1', 'x0^2', 'x0 x1', 'x1^2']
    """

    feature = "polynomial"
    spec = "polynomial:DEGREE"
    _center = True

    def __init__(self, degree: int, bounds: Bounds = None, clip: bool = True) -> None:
        self.degree = degree
        self.bounds = bounds
        self.clip = clip

    def powers(self) -> Ints:
        """Return the exponents c, one per row, in the order of the features."""
        self._ready()
        powers = np.zeros((self.n_features_out_, self.n_features_in_), dtype=np.int64)
        for f in range(1, self.n_features_out_):
            powers[f] = powers[self._parent[f]]
            powers[f, self._variable[f]] += 1
        return powers

    def _build(self, k: int) -> int:
        degree = whole("degree", self.degree, 0)
        d = _count(k, degree)
        if d > MAX_DENSE:
            raise InputError(
                f"degree: {degree} with {k} variables makes more than {MAX_DENSE:,} features; "
                "lower it"
            )
        monomials = [
            m for n in range(degree + 1) for m in combinations_with_replacement(range(k), n)
        ]
        place = {m: f for f, m in enumerate(monomials)}
        self._parent = np.array([place[m[:-1]] for m in monomials], dtype=np.int64)
        self._variable = np.array([m[-1] if m else 0 for m in monomials], dtype=np.int64)
        return d

    def _map(self, u: Floats, out: Floats) -> None:
        from o2td.features.feature_loops import polynomial

        polynomial(u, self._parent, self._variable, out)

    def _names(self, inputs: list[str]) -> list[str]:
        return [_monomial(c, inputs) for c in self.powers().tolist()]


def _count(k: int, degree: int) -> int:
    """`(k + degree) over degree`, or something larger than allowed where that is larger."""
    few, many = sorted((k, degree))
    d = 1
    for i in range(1, few + 1):
        d = d * (many + i) // i
        if d > MAX_DENSE:
            break
    return d


def _monomial(powers: list[int], inputs: list[str]) -> str:
    factors = [x if p == 1 else f"{x}^{p}" for p, x in zip(powers, inputs, strict=True) if p]
    return " ".join(factors) or "1"

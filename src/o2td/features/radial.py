"""Radial basis: `phi_i(x) = exp(-||(u - c_i) / width||^2 / 2)`, `u` scaled to [0, 1]^k."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arrays import Floats
from o2td.errors import InputError
from o2td.features.base import MAX_DENSE, bins_of, numbers_in, product_within
from o2td.features.scaling import Bounds, Dense


class Radial(Dense):
    """`phi_i(x) = exp(-||(u - c_i) / width||^2 / 2)`.

    Parameters
    ----------
    bins : int or sequence of int, optional
        Number of centres along each variable, on an even grid from bound to bound.
    width : float or sequence of float, optional
        Standard deviation in units of the bounds' range. None means the distance between
        neighbouring centres (1 if a variable has a single centre).
    bounds : sequence of (low, high) pairs, or an object with `low` and `high`, optional
        None means that they are learned from data.
    normalize : bool
        Divide by the sum over i, so that rows are convex weights (which `Averager` needs).
    centers : (m, k) array, optional
        Centres in the units of the observations, instead of `bins`; needs `width`.
    clip : bool
        Move values out of bounds to the nearest bound.

    Examples
    --------
    >>> from o2td.features import Radial
    >>> Radial(3, bounds=[(0, 2)]).transform([[0.0], [1.0]]).round(3)
    array([[1.   , 0.607, 0.135], [0.607, 1.   , 0.607]])
    >>> phi = Radial(width=0.1, bounds=[(0, 2)], centers=[[0.5], [1.5]], normalize=True)
    >>> phi.transform([[1.0]])
    array([[0.5, 0.5]])
    """

    feature = "radial"
    spec = "radial:BINS"
    _switches = ("normalize", "clip")

    def __init__(
        self,
        bins: npt.ArrayLike | None = None,
        width: npt.ArrayLike | None = None,
        bounds: Bounds = None,
        normalize: bool = False,
        centers: npt.ArrayLike | None = None,
        clip: bool = True,
    ) -> None:
        self.bins = bins
        self.width = width
        self.bounds = bounds
        self.normalize = normalize
        self.centers = centers
        self.clip = clip

    @classmethod
    def from_spec(cls, *bins: Any, **options: Any) -> Radial:
        """`radial:5` is 5 centres per variable, `radial:5x3` is 5 by 3."""
        return cls(bins[0] if len(bins) == 1 else bins or None, **options)

    def _build(self, k: int) -> int:
        if (self.bins is None) == (self.centers is None):
            raise InputError("Radial: pass either bins= (a grid) or centers=")
        if self.bins is None:
            if self.width is None:
                raise InputError("width: needed with centers=, in units of the bounds' range")
            self._centers = numbers_in("centers", self.centers)
            if self._centers.ndim != 2 or self._centers.shape[1] != k:
                raise InputError(f"centers: shape {self._centers.shape}; pass (m, {k})")
            if not np.isfinite(self._centers).all():
                row = int(np.argmax(~np.isfinite(self._centers).all(axis=1)))
                raise InputError(f"centers: row {row} is not finite")
            d = len(self._centers)
        else:
            self._bins = bins_of(self.bins, k)
            d = product_within(self._bins, MAX_DENSE) or MAX_DENSE + 1
        if not 0 < d <= MAX_DENSE:
            raise InputError(f"bins, centers: pass 1 to {MAX_DENSE:,} centres, or use tiles")
        self._widths = self._each_width(k)
        return d

    def _each_width(self, k: int) -> Floats:
        if self.width is None:
            return 1.0 / np.maximum(self._bins - 1, 1)
        given = numbers_in("width", self.width)
        if given.shape not in ((), (1,), (k,)):
            raise InputError(f"width: has shape {given.shape}; pass one number or {k}")
        widths = np.broadcast_to(given, (k,)).copy()
        if not (np.isfinite(widths) & (widths > 0)).all():
            raise InputError(f"width: {self.width!r} is not positive and finite")
        return widths

    def _set_bounds(self, low: Floats, high: Floats) -> None:
        super()._set_bounds(low, high)
        if self.bins is None:
            self._scaled_centers = (self._centers - low) / self._width

    def _map(self, u: Floats, out: Floats) -> None:
        from o2td.features import feature_loops

        if self.bins is None:
            centers = self._scaled_centers
            feature_loops.radial(u, centers, self._widths, bool(self.normalize), out)
        else:
            feature_loops.radial_grid(u, self._bins, self._widths, bool(self.normalize), out)

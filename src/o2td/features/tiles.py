"""Tile coding: several offset grids, in each of which one tile is active.

Tiling t is displaced by `t (1, 3, 5, ...)` mod T steps of 1/T of a tile, T the number of tilings
(Miller & Glanz 1996; Sutton & Barto 2018, section 9.5.4), which spreads the borders better than
displacing all variables alike. After one multiplication everything is integer arithmetic, and
hashing mixes 64-bit words, so the columns are the same on any machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arguments import whole
from o2td.arrays import Floats, Ints
from o2td.errors import InputError
from o2td.features.base import MAX_SPARSE, bins_of, product_within
from o2td.features.scaling import Bounded, Bounds, dense_output

_MAX_TILINGS = 1 << 20  # each is a one in every row
_FAR = 2.0**52  # steps beyond which a position is no longer exact


class Tiles(Bounded):
    """`phi_i(x) = 1` where x lies in tile i, else 0: `tilings` ones per row.

    Parameters
    ----------
    tilings : int
        Number of overlaid grids. A power of two that is at least 4 times the number of variables
        makes all displacements differ.
    bins : int or sequence of int
        Number of tiles that span a variable's range. (Offset grids need one more, so a tiling has
        prod(bins + 1) columns, some of which are never active.)
    bounds : sequence of (low, high) pairs, or an object with `low` and `high`, optional
        None means that they are learned from data.
    hashed : int, optional
        Number of columns to hash all tiles into. Tiles of one row that collide in a column are
        summed, so a row always sums to `tilings`.
    seed : int
        Picks the hash function.
    bias : bool
        Append a column that is always 1.
    clip : bool
        Move values out of bounds to the nearest bound. If False (hashed only), tiles continue.
    sparse : bool
        Return a `scipy.sparse.csr_array` with sorted columns; if False, a dense array.

    Examples
    --------
    >>> from o2td.features import Tiles
    >>> tiles = Tiles(2, 2, bounds=[(0, 1)])
    >>> tiles.transform([[0.1], [0.3], [0.6]]).toarray()
    array([[1., 0., 0., 1., 0., 0.],
           [1., 0., 0., 0., 1., 0.],
           [0., 1., 0., 0., 1., 0.]])
    >>> Tiles(8, 8, bounds=[(0, 1)] * 2, hashed=512).transform([[0.2, 0.7]]).sum()
    np.float64(8.0)
    """

    feature = "tiles"
    spec = "tiles:TILINGSxBINS"
    _switches = ("bias", "clip", "sparse")

    def __init__(
        self,
        tilings: int,
        bins: npt.ArrayLike,
        bounds: Bounds = None,
        hashed: int | None = None,
        seed: int = 0,
        bias: bool = False,
        clip: bool = True,
        sparse: bool = True,
    ) -> None:
        self.tilings = tilings
        self.bins = bins
        self.bounds = bounds
        self.hashed = hashed
        self.seed = seed
        self.bias = bias
        self.clip = clip
        self.sparse = sparse

    @classmethod
    def from_spec(cls, tilings: Any, *bins: Any, **options: Any) -> Tiles:
        """`tiles:8x10` is 8 tilings of 10 bins, `tiles:8x10x4` has bins (10, 4)."""
        if not bins:
            raise InputError(f"features: tiles need two numbers, {cls.spec}, such as tiles:8x10")
        return cls(tilings, bins[0] if len(bins) == 1 else bins, **options)

    def _build(self, k: int) -> int:
        tilings = whole("tilings", self.tilings, 1, most=_MAX_TILINGS)
        whole("seed", self.seed, 0, most=2**64 - 1)
        self._bins = bins_of(self.bins, k)
        steps = np.arange(tilings)[:, None] * (2 * np.arange(k) + 1)
        self._shifts = (steps % tilings).astype(np.int64)
        sides = [int(b) + 1 for b in self._bins]
        columns: int | None
        if self.hashed is None:
            columns = product_within([tilings, *sides], MAX_SPARSE)
            if not self.clip:
                raise InputError("clip: False needs hashed=, as tiles out of bounds have no column")
        else:
            columns = whole("hashed", self.hashed, 1)
        if columns is None or columns + bool(self.bias) > MAX_SPARSE:
            raise InputError(
                f"tiles: more than {MAX_SPARSE:,} columns; pass hashed= with the number of "
                "columns that memory allows, or fewer bins"
            )
        if int(self._bins.max()) * tilings > _FAR:
            raise InputError("bins: bins times tilings is too large to place a tile exactly")
        if self.hashed is None:
            self._strides, self._per_tiling = _strides(sides), columns // tilings
        return columns + bool(self.bias)

    def transform(self, X: npt.ArrayLike, out: Floats | None = None) -> Any:
        """Map the rows of `X`. `out` is for dense results only."""
        array = self._observations(X)
        if not self.sparse:
            return self._dense(array, out)
        if out is not None:
            raise InputError("out: needs sparse=False")
        if self.hashed is None:
            return self._exact(array)
        return self._hashed(array)

    def _columns(self, u: Floats, out: npt.NDArray[Any]) -> None:
        from o2td.features import feature_loops

        if self.bias:
            out[:, -1] = self.n_features_out_ - 1
        if self.hashed is None:
            feature_loops.tiles(u, self._bins, self._shifts, self._strides, self._per_tiling, out)
            return
        if not self.clip and np.abs(u * (self._bins * self.tilings)).max(initial=0.0) > _FAR:
            raise InputError("X: a value lies too far out of bounds to be placed; pass clip=True")
        seed, size = np.uint64(self.seed), int(self.hashed)
        feature_loops.hashed_tiles(u, self._bins, self._shifts, seed, size, bool(self.clip), out)

    def _dense(self, array: npt.NDArray[Any], out: Floats | None) -> Floats:
        from o2td.features.feature_loops import add_ones

        result = dense_output(len(array), self.n_features_out_, out)
        result.fill(0.0)
        ones = self.tilings + bool(self.bias)
        for a, b, u in self._scaled(array, self.n_features_out_):
            columns = np.empty((b - a, ones), dtype=np.int32)
            self._columns(u, columns)
            add_ones(columns, result[a:b])
        return result

    def _exact(self, array: npt.NDArray[Any]) -> Any:
        ones = self.tilings + bool(self.bias)
        indices = np.empty((len(array), ones), dtype=np.int32)
        for a, b, u in self._scaled(array, ones):
            self._columns(u, indices[a:b])
        indptr = np.arange(len(array) + 1, dtype=_index_type(indices.size)) * ones
        return self._csr(np.ones(indices.size), indices.reshape(-1), indptr)

    def _hashed(self, array: npt.NDArray[Any]) -> Any:
        from o2td.features.feature_loops import sum_duplicates

        ones = self.tilings + bool(self.bias)
        data = np.empty(len(array) * ones)
        indices = np.empty(data.size, dtype=np.int32)
        indptr = np.zeros(len(array) + 1, dtype=_index_type(data.size))
        filled = 0
        for a, b, u in self._scaled(array, ones):
            columns = np.empty((b - a, ones), dtype=np.int32)
            self._columns(u, columns)
            filled = sum_duplicates(columns, filled, data, indices, indptr[a : b + 1])
        return self._csr(data[:filled], indices[:filled], indptr)

    def _csr(self, data: Floats, indices: npt.NDArray[Any], indptr: npt.NDArray[Any]) -> Any:
        from scipy.sparse import csr_array

        shape = (len(indptr) - 1, self.n_features_out_)
        result = csr_array((data, indices, indptr), shape=shape)
        result.has_canonical_format = True
        return result

    def _names(self, inputs: list[str]) -> list[str]:
        count = self.n_features_out_ - bool(self.bias)
        return [f"tile{c}" for c in range(count)] + ["1"] * bool(self.bias)


def _strides(sides: list[int]) -> Ints:
    """Places that one step of each variable moves, the last variable fastest."""
    return np.array([int(np.prod(sides[j + 1 :])) for j in range(len(sides))], dtype=np.int64)


def _index_type(size: int) -> type[np.int32 | np.int64]:
    return np.int32 if size <= MAX_SPARSE else np.int64

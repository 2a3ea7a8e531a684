"""Observations scaled to the unit cube: `u_j = (x_j - low_j) / (high_j - low_j)`.

The bounds are given, or learned from data (`fit`: one pass; `partial_fit`: chunk by chunk, so logs
of any size work; both give the same bounds). Every continuous feature map uses this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from o2td.arguments import switch
from o2td.arrays import Floats
from o2td.errors import InputError
from o2td.features.base import Transformer, as_matrix, numbers_in

_BLOCK = 1 << 16  # doubles written at a time: scaled rows and features stay in cache
_ENDLESS = float(np.finfo(np.float32).max)  # what 32-bit spaces write for "no bound"


class Box(Protocol):
    """Bounds as an object, such as a Gymnasium `Box`."""

    @property
    def low(self) -> npt.ArrayLike:
        """Least value of each variable."""

    @property
    def high(self) -> npt.ArrayLike:
        """Largest value of each variable."""


Bounds = Box | npt.ArrayLike | None  # None: learned from data


class Bounded(Transformer):
    """A map of continuous observations, which it first scales by their bounds."""

    bounds: Bounds
    clip: bool
    low_: Floats
    high_: Floats
    _switches: ClassVar[tuple[str, ...]] = ("clip",)
    _center: ClassVar[bool] = False  # scale to [-1, 1] with constant columns at 0, not to [0, 1]

    def _build(self, k: int) -> int:
        """Set up tables for `k` variables and return the number of features."""
        raise NotImplementedError

    def fit(self, X: npt.ArrayLike | None = None, y: object = None) -> Self:
        """Learn the bounds from `X`, or take those given; `X` may be left out if they are."""
        self._forget()
        if X is None:
            self._fit_known()
            return self
        if self.bounds is None and len(as_matrix(X)) == 0:
            raise InputError("X: has no rows to learn bounds from; pass rows, or bounds=")
        return self.partial_fit(X)

    def partial_fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Widen the bounds to include one more chunk of rows. Known bounds are not changed."""
        array = as_matrix(X)
        if self.bounds is not None and not self.__sklearn_is_fitted__():
            self._fit_known()
        if self.__sklearn_is_fitted__():
            self._check_width(array)
        self._remember_names(X)
        if len(array) == 0 or self.bounds is not None:
            return self
        low, high = array.min(axis=0).astype(np.float64), array.max(axis=0).astype(np.float64)
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            row, column = np.argwhere(~np.isfinite(np.asarray(array, dtype=np.float64)))[0]
            raise self._bad_value(int(row), int(column), array[row, column])
        if self.__sklearn_is_fitted__():
            low, high = np.minimum(low, self.low_), np.maximum(high, self.high_)
        self._set_bounds(low, high)
        return self

    def _fit_known(self) -> None:
        if self.bounds is None:
            raise InputError(
                f"{type(self).__name__} knows no bounds; call fit with rows, or pass bounds="
            )
        self._set_bounds(*as_bounds(self.bounds))

    def _set_bounds(self, low: Floats, high: Floats) -> None:
        with np.errstate(over="ignore"):
            width = high - low
        if not np.isfinite(width).all():
            j = int(np.argmax(~np.isfinite(width)))
            raise InputError(f"bounds of column {j}: ({low[j]}, {high[j]}) is too wide a range")
        if not self.__sklearn_is_fitted__():
            for name in self._switches:
                switch(name, getattr(self, name))
            self.n_features_in_ = len(low)
            self.n_features_out_ = self._build(len(low))
        self.low_, self.high_ = low, high
        # A constant column carries no information: an infinite width maps it to 0.
        self._width = np.where(width > 0, width, np.inf)
        self._gain = np.where(width > 0, 2.0 if self._center else 1.0, 0.0)
        self._shift = np.where(width > 0, -1.0 if self._center else 0.0, 0.0)

    def _ready(self) -> None:
        if not self.__sklearn_is_fitted__():
            self._fit_known()

    def _check_width(self, array: npt.NDArray[Any]) -> None:
        if array.shape[1] != self.n_features_in_:
            raise InputError(
                f"X: has {array.shape[1]} columns, {type(self).__name__} was made for "
                f"{self.n_features_in_}; pass the same columns"
            )

    def _bad_value(self, row: int, column: int, value: Any) -> InputError:
        names = getattr(self, "feature_names_in_", None)
        name = f"column {column}" if names is None else f"column {column} ({names[column]})"
        why = "is not finite" if not np.isfinite(value) else "overflows when it is scaled"
        return InputError(f"X: {name}, row {row}: {value} {why}; drop or repair the row")

    def _observations(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        self._ready()
        array = as_matrix(X)
        self._check_width(array)
        if hasattr(self, "feature_names_in_"):
            self._remember_names(X)
        return array

    def _scaled(self, array: npt.NDArray[Any], width: int) -> Iterator[tuple[int, int, Floats]]:
        """Blocks `(a, b, rows a to b scaled)`, small enough to stay in cache."""
        from o2td.features.feature_loops import scale

        k = array.shape[1]
        size = max(16, min(4096, _BLOCK // max(k, width)))
        scratch = np.empty((min(size, len(array)), k))
        for a in range(0, len(array), size):
            b = min(a + size, len(array))
            block = scratch[: b - a]
            block[...] = array[a:b]
            limits = (self.low_, self.high_, self._width, self._gain, self._shift)
            bad = scale(block, *limits, bool(self.clip))
            if bad >= 0:
                row, column = a + bad // k, bad % k
                raise self._bad_value(row, column, array[row, column])
            yield a, b, block

    def _learned(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        return {}, {"low": self.low_, "high": self.high_}

    def _restore(self, values: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self._set_bounds(*as_bounds(np.column_stack([arrays["low"], arrays["high"]])))

    def _plain(self, name: str, value: Any) -> Any:
        if name == "bounds" and value is not None:
            return np.column_stack(as_bounds(value))
        return super()._plain(name, value)


class Dense(Bounded):
    """A bounded map to dense rows."""

    def transform(self, X: npt.ArrayLike, out: Floats | None = None) -> Floats:
        """Map the rows of `X`, into `out` (C-contiguous float64) if given."""
        array = self._observations(X)
        result = dense_output(len(array), self.n_features_out_, out)
        for a, b, u in self._scaled(array, self.n_features_out_):
            self._map(u, result[a:b])
            if not (self.clip or np.isfinite(result[a:b]).all()):
                row = a + int(np.argmax(~np.isfinite(result[a:b]).all(axis=1)))
                raise InputError(f"X: the features of row {row} overflow; pass clip=True")
        return result

    def _map(self, u: Floats, out: Floats) -> None:
        raise NotImplementedError


class Scaling(Dense):
    """`u_j = (x_j - low_j) / (high_j - low_j)`: observations scaled to the unit cube.

    Parameters
    ----------
    bounds : sequence of (low, high) pairs, or an object with `low` and `high`, optional
        A Gymnasium `Box` is such an object. None means that they are learned from data.
    clip : bool
        Move values out of bounds to the nearest bound. If False, they leave [0, 1].

    A constant column becomes 0.

    Examples
    --------
    >>> from o2td.features import Scaling
    >>> Scaling(bounds=[(-1, 1), (0, 10)]).transform([[0.0, 5.0], [2.0, 1.0]])
    array([[0.5, 0.5], [1. , 0.1]])
    >>> scaling = Scaling().partial_fit([[1.0], [3.0]]).partial_fit([[5.0]])
    >>> scaling.low_, scaling.high_
    (array([1.]), array([5.]))
    """

    feature = "scaling"
    spec = "scaling"

    def __init__(self, bounds: Bounds = None, clip: bool = True) -> None:
        self.bounds = bounds
        self.clip = clip

    def _build(self, k: int) -> int:
        return k

    def _map(self, u: Floats, out: Floats) -> None:
        out[...] = u

    def _names(self, inputs: list[str]) -> list[str]:
        return inputs


def as_bounds(bounds: Box | npt.ArrayLike) -> tuple[Floats, Floats]:
    """`(low, high)` from pairs or from an object that has both, such as a Gymnasium `Box`."""
    pair = (
        (np.ravel(bounds.low), np.ravel(bounds.high))
        if hasattr(bounds, "low") and hasattr(bounds, "high")
        else _columns(bounds)
    )
    low, high = (numbers_in("bounds", side) for side in pair)
    if low.shape != high.shape or low.size == 0:
        raise InputError("bounds: pass one (low, high) pair a column")
    endless = ~((np.abs(low) < _ENDLESS) & (np.abs(high) < _ENDLESS))
    if endless.any():
        j = int(np.argmax(endless))
        raise InputError(
            f"bounds of column {j}: ({low[j]:g}, {high[j]:g}) are not finite; "
            "pass finite ones, or bounds=None to learn them from data"
        )
    if (low > high).any():
        j = int(np.argmax(low > high))
        raise InputError(f"bounds of column {j}: low {low[j]:g} is above high {high[j]:g}")
    return low, high


def _columns(bounds: object) -> tuple[Floats, Floats]:
    try:
        array = numbers_in("bounds", bounds)
    except InputError:
        array = np.empty(0)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError("bounds: pass one (low, high) pair a column, such as [(0, 1), (-2, 2)]")
    return array[:, 0], array[:, 1]


def dense_output(n: int, d: int, out: Floats | None) -> Floats:
    """`out` checked, or a new (n, d) array."""
    if out is None:
        return np.empty((n, d))
    if not isinstance(out, np.ndarray) or out.shape != (n, d) or out.dtype != np.float64:
        raise InputError(f"out: pass a float64 array of shape ({n}, {d})")
    if not (out.flags.c_contiguous and out.flags.writeable):
        raise InputError("out: pass a C-contiguous array that can be written")
    return out

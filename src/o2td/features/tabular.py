"""One weight per state, or one per group of states: `phi_i(s) = 1` where s is (in) i, else 0.

These maps also name the state of a row, `state_of(X)`, which SOTD and state emphasis need.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from o2td.arguments import whole
from o2td.arrays import Ints, as_array
from o2td.errors import InputError
from o2td.features.base import MAX_SPARSE, Transformer, as_states, bins_of, one_hot, product_within
from o2td.features.scaling import Bounded, Bounds

Groups = npt.ArrayLike | Mapping[int, int]  # of states


class OneHot(Transformer):
    """A map with exactly one feature active, whose number is `state_of(X)`."""

    def state_of(self, X: npt.ArrayLike) -> Ints:
        """Return the number of the active feature of each row, int64."""
        raise NotImplementedError

    def transform(self, X: npt.ArrayLike) -> Any:
        """Map each row to a `scipy.sparse.csr_array` row with a single one."""
        return one_hot(self.state_of(X), self.n_features_out_)


class Tabular(OneHot):
    """`phi(s) = e_s`: one feature per state.

    Parameters
    ----------
    n_states : int, optional
        None means one more than the largest state in the data.

    Examples
    --------
    >>> from o2td.features import Tabular
    >>> Tabular(3).transform([2, 0]).toarray()
    array([[0., 0., 1.], [1., 0., 0.]])
    >>> Tabular().fit([4, 1]).n_features_out_
    5
    """

    feature = "tabular"
    spec = "tabular"

    def __init__(self, n_states: int | None = None) -> None:
        self.n_states = n_states

    def fit(self, X: npt.ArrayLike | None = None, y: object = None) -> Self:
        """Take `n_states`, or learn it from the states `X`."""
        self._forget()
        if X is None:
            self._ready()
            return self
        if self.n_states is None and as_array("X", X).size == 0:
            raise InputError("X: has no rows to learn the states from; pass rows, or n_states=")
        return self.partial_fit(X)

    def partial_fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Extend the set of states by one more chunk of rows."""
        if self.n_states is not None:
            self._ready()
        states = as_states(X, self.n_states)
        if self.n_states is None and len(states):
            self._set(max(int(states.max()) + 1, getattr(self, "n_features_out_", 1)))
        return self

    def _set(self, n_states: int) -> None:
        if n_states > MAX_SPARSE:
            raise InputError(
                f"state: {n_states - 1} is too large for one feature per state; number them from 0"
            )
        self.n_features_in_, self.n_features_out_ = 1, n_states

    def _ready(self) -> None:
        if self.n_states is not None and not self.__sklearn_is_fitted__():
            self._set(whole("n_states", self.n_states, 1, most=MAX_SPARSE))
        super()._ready()

    def state_of(self, X: npt.ArrayLike) -> Ints:
        """Return the states, checked."""
        self._ready()
        return as_states(X, self.n_features_out_)

    def table(self, X: npt.ArrayLike | None = None) -> Any:
        """Return the feature matrix of all states, the identity (or of the rows `X` if given)."""
        if X is not None:
            return super().table(X)
        self._ready()
        return self.transform(np.arange(self.n_features_out_))

    def _names(self, inputs: list[str]) -> list[str]:
        return [f"state{s}" for s in range(self.n_features_out_)]

    def _learned(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        return {"n_states": self.n_features_out_}, {}

    def _restore(self, values: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self._set(whole("n_states", values["n_states"], 1))


class Aggregation(OneHot):
    """`phi(s) = e_g(s)`: one feature per group of states.

    Parameters
    ----------
    groups : (n_states,) array of int, or a mapping from state to group
        Group of each state. A state with -1 (or left out) has no group and raises when it occurs.

    For continuous observations use `Aggregation.grid(bins, bounds)`.

    Examples
    --------
    >>> from o2td.features import Aggregation
    >>> Aggregation([0, 0, 1]).table().toarray()
    array([[1., 0.], [1., 0.], [0., 1.]])
    >>> Aggregation.grid(10, bounds=[(-1, 1)]).state_of([[-1.0], [0.05], [1.0]])
    array([0, 5, 9])
    """

    feature = "groups"
    spec = "groups (from Python only)"

    def __init__(self, groups: Groups) -> None:
        self.groups = groups

    @staticmethod
    def grid(bins: npt.ArrayLike, bounds: Bounds = None, clip: bool = True) -> GridAggregation:
        """Aggregate continuous observations by the cell of a grid that they lie in."""
        return GridAggregation(bins, bounds, clip)

    @classmethod
    def from_spec(cls, *values: Any, **options: Any) -> Aggregation:
        """Refuse: a spec cannot hold a mapping."""
        raise InputError(
            "features: groups need a mapping, which only Python can pass; use aggregate:BINS"
        )

    def fit(self, X: npt.ArrayLike | None = None, y: object = None) -> Self:
        """Check the groups, and the states `X` if given."""
        self._forget()
        self._ready()
        if X is not None:
            self.state_of(X)
        return self

    def _ready(self) -> None:
        if self.__sklearn_is_fitted__():
            return
        self._groups = _group_array(self.groups)
        self.n_features_in_, self.n_features_out_ = 1, int(self._groups.max()) + 1

    def state_of(self, X: npt.ArrayLike) -> Ints:
        """Return the group of each state."""
        self._ready()
        states = as_states(X, len(self._groups))
        group = self._groups[states]
        if len(group) and group.min() < 0:
            row = int(np.argmax(group < 0))
            raise InputError(f"state: row {row} is {states[row]}, which groups= puts in no group")
        return group

    def table(self, X: npt.ArrayLike | None = None) -> Any:
        """Return the feature matrix of all states, (n_states, n_groups)."""
        self._ready()
        return self.transform(np.arange(len(self._groups)) if X is None else X)

    def _names(self, inputs: list[str]) -> list[str]:
        return [f"group{g}" for g in range(self.n_features_out_)]

    def _plain(self, name: str, value: Any) -> Any:
        return _group_array(value)

    def _learned(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        return {}, {}

    def _restore(self, values: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self._ready()


class GridAggregation(Bounded, OneHot):
    """`phi(x) = e_cell(x)`: one feature per cell of an even grid over the observations.

    Parameters
    ----------
    bins : int or sequence of int
        Number of cells along each variable.
    bounds : sequence of (low, high) pairs, or an object with `low` and `high`, optional
        None means that they are learned from data.
    clip : bool
        Assign values out of bounds to the nearest cell. If False, they raise an error.

    Examples
    --------
    >>> from o2td.features import GridAggregation
    >>> cells = GridAggregation((2, 3), bounds=[(0, 1), (0, 3)])
    >>> cells.state_of([[0.2, 2.5], [0.9, 0.5]])
    array([2, 3])
    >>> cells.transform([[0.2, 2.5]]).toarray()
    array([[0., 0., 1., 0., 0., 0.]])
    """

    feature = "aggregate"
    spec = "aggregate:BINS"

    def __init__(self, bins: npt.ArrayLike, bounds: Bounds = None, clip: bool = True) -> None:
        self.bins = bins
        self.bounds = bounds
        self.clip = clip

    @classmethod
    def from_spec(cls, *bins: Any, **options: Any) -> GridAggregation:
        """`aggregate:10` is 10 cells per variable, `aggregate:10x5` is 10 by 5."""
        if not bins:
            raise InputError(f"features: aggregate needs a number, {cls.spec}")
        return cls(bins[0] if len(bins) == 1 else bins, **options)

    def _build(self, k: int) -> int:
        self._bins = bins_of(self.bins, k)
        sides = [int(b) for b in self._bins]
        total = product_within(sides, MAX_SPARSE)
        if total is None:
            raise InputError(f"bins: more than {MAX_SPARSE:,} cells; pass fewer bins")
        strides = [int(np.prod(sides[j + 1 :])) for j in range(k)]
        self._strides = np.array(strides, dtype=np.int64)
        return total

    def state_of(self, X: npt.ArrayLike) -> Ints:
        """Return the cell of each row, int64; the last variable changes fastest."""
        from o2td.features.feature_loops import cells

        array = self._observations(X)
        state = np.empty(len(array), dtype=np.int64)
        for a, b, u in self._scaled(array, 1):
            outside = (u < 0) | (u > 1)
            if outside.any():
                row, column = np.argwhere(outside)[0]
                raise InputError(
                    f"X: column {column}, row {a + row}: {array[a + row, column]} is out of "
                    "bounds; widen them, or pass clip=True"
                )
            cells(u, self._bins, self._strides, state[a:b])
        return state

    def _names(self, inputs: list[str]) -> list[str]:
        return [f"cell{c}" for c in range(self.n_features_out_)]


def _group_array(groups: Groups) -> Ints:
    """Groups as an array over states, -1 for states without a group."""
    if isinstance(groups, Mapping):
        states = as_states(list(groups), MAX_SPARSE)
        array = np.full(int(states.max()) + 1 if len(states) else 0, -1, dtype=np.int64)
        array[states] = _whole(list(groups.values()))
    else:
        array = _whole(groups)
    if array.size == 0 or array.max() < 0 or array.min() < -1 or array.max() >= MAX_SPARSE:
        raise InputError("groups: pass one group per state, numbered 0, 1, … (-1: in no group)")
    return array


def _whole(groups: npt.ArrayLike) -> Ints:
    array = as_array("groups", groups)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError("groups: pass a one-dimensional array of integers, one group per state")
    return array.astype(np.int64)

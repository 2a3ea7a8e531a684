"""The container that every part of the library reads: a struct of arrays, one entry per transition.

Row t holds features `phi_t`, the reward `r_{t+1}`, the features `phi_{t+1}` of the successor, the
discount `gamma_{t+1}` of this transition (0 where it terminates), the ratio
`rho_t = pi(a_t|s_t) / b(a_t|s_t)`, and a flag that marks the start of a trajectory.

Features come in three layouts: dense rows, CSR rows, or rows of a table (`Transitions.from_table`),
which never builds the (n, d) array. Everything is validated here, once; code that receives a
`Transitions` need not check it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from o2td.arguments import choice, whole
from o2td.arrays import (
    Bools,
    FeatureRows,
    Floats,
    Ints,
    as_array,
    as_rows,
    check_finite,
    freeze,
    marks,
    optional,
    refuse,
    required_states,
    states,
    vector,
)
from o2td.errors import InputError
from o2td.transitions.joining import checked, join
from o2td.transitions.ratios import implied, ratio
from o2td.transitions.rows import DenseRows, Rows, SparseRows, own_rows, table_rows

__all__ = ["DenseRows", "Rows", "SparseRows", "Transitions"]

_VECTORS = (
    *("reward", "discount", "rho", "start", "state", "next_state", "target_prob"),
    *("behavior_prob", "interest", "next_state_2", "discount_2", "rho_2"),
)
_ROWS = {"phi": "state", "next_phi": "next_state", "next_phi_2": "next_state_2"}

Given = npt.ArrayLike | None  # a column that may be left out


class Transitions:
    """Transitions of one stream, validated at construction and immutable afterwards.

    Parameters
    ----------
    phi, next_phi : (n, d) array or scipy.sparse CSR array
        Features of states and successors. Rows of `next_phi` where `discount` is 0 are ignored.
    reward : (n,) array or scalar
        Reward received after the action.
    discount : (n,) array or scalar
        Discount gamma of the step, 0 where the episode ends.
    rho : (n,) array or scalar
        Importance ratio: the action's probability under the target policy divided by that under the
        behaviour policy. None means `target_prob / behavior_prob`, or 1 if those are not given.
    start : (n,) array of bool, optional
        True where a trajectory starts. If None, only the first row that a learner sees is a start.
    state, next_state : (n,) array of int, optional
        State indices, needed by methods that aggregate by state; -1 where `discount` is 0.
    target_prob, behavior_prob : (n,) array, optional
        Probability of the action under the target and the behaviour policy.
    interest : (n,) array, optional
        How much each row matters to emphatic methods; 1 if None.
    next_phi_2, discount_2, rho_2 : optional
        A second, independent successor of the same state, for double sampling.

    Examples
    --------
    >>> import numpy as np
    >>> from o2td import Transitions
    >>> phi = np.eye(3)
    >>> batch = Transitions(phi[[0, 1]], [0.0, 1.0], phi[[1, 2]], discount=[0.9, 0.0])
    >>> len(batch), batch.d, batch.layout
    (2, 3, 'dense')
    >>> batch[1:].reward
    array([1.])
    """

    __slots__ = (
        *("_low", "_next_phi", "_next_phi_2", "_phi"),
        *("d", "largest", "layout", "n", "table"),
        *_VECTORS,
    )

    d: int
    largest: float  # no feature that is used is larger in absolute value
    layout: str
    n: int
    table: Any
    reward: Floats
    discount: Floats
    rho: Floats
    start: Bools
    state: Ints | None
    next_state: Ints | None
    target_prob: Floats | None
    behavior_prob: Floats | None
    interest: Floats | None
    next_state_2: Ints | None
    discount_2: Floats | None
    rho_2: Floats | None

    def __init__(
        self,
        phi: FeatureRows,
        reward: npt.ArrayLike,
        next_phi: FeatureRows,
        discount: npt.ArrayLike,
        rho: Given = None,
        start: Given = None,
        state: Given = None,
        next_state: Given = None,
        target_prob: Given = None,
        behavior_prob: Given = None,
        interest: Given = None,
        next_phi_2: FeatureRows | None = None,
        discount_2: Given = None,
        rho_2: Given = None,
    ) -> None:
        rows = as_rows("phi", phi)
        n, self.d = rows.shape
        self.layout = "dense" if isinstance(rows, np.ndarray) else "csr"
        self.table = None
        self._set_vectors(n, reward, discount, rho, start, target_prob, behavior_prob, interest)
        self.state = states("state", state, n, None)
        self.next_state = states("next_state", next_state, n, self.discount)
        self.largest = check_finite("phi", rows)
        self._low = 0
        self._phi = rows
        self._next_phi = self._successor("next_phi", next_phi, self.discount)
        self._set_second(next_phi_2 is not None, discount_2, rho_2)
        self.next_state_2 = None
        self._next_phi_2 = (
            None
            if next_phi_2 is None
            else self._successor("next_phi_2", next_phi_2, cast(Floats, self.discount_2))
        )

    @classmethod
    def from_table(
        cls,
        table: FeatureRows,
        state: npt.ArrayLike,
        reward: npt.ArrayLike,
        next_state: npt.ArrayLike,
        discount: npt.ArrayLike,
        rho: Given = None,
        start: Given = None,
        target_prob: Given = None,
        behavior_prob: Given = None,
        interest: Given = None,
        next_state_2: Given = None,
        discount_2: Given = None,
        rho_2: Given = None,
    ) -> Transitions:
        """Transitions whose features are rows of `table`: `phi_t = table[state_t]`.

        >>> import numpy as np
        >>> batch = Transitions.from_table(np.eye(2), [0, 1], [0.0, 1.0], [1, -1], [0.9, 0.0])
        >>> batch.layout, batch.phi[1]
        ('table', array([0., 1.]))
        """
        self = cls.__new__(cls)
        self.table = as_rows("table", table)
        self.largest = check_finite("table", self.table)
        limit, self.d = self.table.shape
        self.layout = "table"
        self._low = 0
        self._phi = self._next_phi = self._next_phi_2 = None
        shape = as_array("state", state).shape
        if len(shape) != 1:
            raise InputError(f"state must be one-dimensional, got shape {shape}")
        n = shape[0]
        self._set_vectors(n, reward, discount, rho, start, target_prob, behavior_prob, interest)
        self.state = required_states("state", state, n, None, limit)
        self.next_state = required_states("next_state", next_state, n, self.discount, limit)
        self._set_second(next_state_2 is not None, discount_2, rho_2)
        self.next_state_2 = states("next_state_2", next_state_2, n, self.discount_2, limit)
        return self

    # -- access ------------------------------------------------------------------------------------

    @property
    def phi(self) -> Any:
        """Features (n, d). With layout "table" this gathers the rows, which copies them."""
        return self.table[self.state] if self.layout == "table" else self._window(self._phi)

    @property
    def next_phi(self) -> Any:
        """Features of the successors (n, d); gathered (copied) with layout "table"."""
        if self.layout == "table":
            return self._gather(self.next_state)
        return self._window(self._next_phi)

    @property
    def next_phi_2(self) -> Any:
        """Features of the second, independent successors, or None."""
        if self.layout == "table":
            return None if self.next_state_2 is None else self._gather(self.next_state_2)
        return self._window(self._next_phi_2)

    def _window(self, rows: Any) -> Any:
        """The rows of this slice. Slices of CSR rows share the whole array and begin at `_low`."""
        if rows is None or isinstance(rows, np.ndarray) or rows.shape[0] == self.n:
            return rows
        return rows[self._low : self._low + self.n]

    def rows(self, which: str = "phi") -> Rows:
        """The features as compiled kernels read them: a matrix (or CSR triple) and an index."""
        if type(which) is not str or which not in _ROWS:
            choice("which", which, tuple(_ROWS))
        if self.layout == "table":
            return table_rows(self.table, getattr(self, _ROWS[which]))
        return own_rows(getattr(self, f"_{which}"), self._low, self.n)

    @property
    def sparse(self) -> bool:
        """Whether the features are stored as CSR rows."""
        return not isinstance(self.table if self.layout == "table" else self._phi, np.ndarray)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: slice) -> Transitions:
        """A slice of consecutive rows, without copying."""
        if not isinstance(rows, slice) or rows.step not in (None, 1):
            raise InputError("Transitions take slices of consecutive rows, such as batch[10:20]")
        rows = slice(*(_bound(end) for end in (rows.start, rows.stop)))
        other = Transitions.__new__(Transitions)
        other.d, other.layout, other.table = self.d, self.layout, self.table
        other.largest = self.largest
        for name in _VECTORS:
            value = getattr(self, name)
            setattr(other, name, None if value is None else value[rows])
        for name in ("_phi", "_next_phi", "_next_phi_2"):
            value = getattr(self, name)
            setattr(other, name, value[rows] if isinstance(value, np.ndarray) else value)
        other._low = self._low + rows.indices(self.n)[0]
        other.n = len(other.reward)
        return other

    def retargeted(
        self,
        rho: Given = None,
        reward: Given = None,
        discount: Given = None,
    ) -> Transitions:
        """The same stream for another target policy, with other ratios, rewards or discounts.

        With `rho`, the target's probabilities become `rho behavior_prob`; they are dropped if that
        is unknown or exceeds 1. With `rho` or `discount`, a second successor is dropped, since its
        ratio and discount belong to the previous target.

        >>> import numpy as np
        >>> batch = Transitions(np.ones((2, 1)), 0.0, np.ones((2, 1)), 0.9)
        >>> batch.retargeted(reward=1.0).reward
        array([1., 1.])
        """
        other = self[:]
        if rho is not None:
            other.rho = vector("rho", rho, self.n, 0.0, np.inf)
            other.target_prob = implied(other.rho, self.behavior_prob)
        if rho is not None or discount is not None:
            other._next_phi_2 = other.next_state_2 = other.discount_2 = other.rho_2 = None
        if reward is not None:
            other.reward = vector("reward", reward, self.n)
        if discount is not None:
            other.discount = vector("discount", discount, self.n, 0.0, 1.0)
            needed = (other.discount != 0.0) & (self.discount == 0.0)
            if self.next_state is not None:
                bad = needed & (self.next_state < 0)
                refuse("discount", other.discount, bad, "that row has no successor")
            if self.layout != "table":
                largest = check_finite("next_phi", self.next_phi, needed)
                other.largest = max(self.largest, largest)
        return other

    def chunks(self, size: int) -> Iterator[Transitions]:
        """Consecutive slices of at most `size` rows.

        >>> import numpy as np
        >>> batch = Transitions(np.ones((5, 1)), 0.0, np.ones((5, 1)), 0.9)
        >>> [len(part) for part in batch.chunks(2)]
        [2, 2, 1]
        """
        size = whole("size", size, 1)
        if self.n <= size:
            return iter([self] if self.n else [])
        return (self[low : low + size] for low in range(0, self.n, size))

    @staticmethod
    def concatenate(parts: Sequence[Transitions] | Iterable[Transitions]) -> Transitions:
        """Concatenate batches in order; their layouts (and tables) must agree.

        >>> import numpy as np
        >>> one = Transitions(np.ones((2, 1)), 0.0, np.ones((2, 1)), 0.9)
        >>> len(Transitions.concatenate([one, one]))
        4
        """
        parts = checked(parts)
        first = parts[0]
        other = Transitions.__new__(Transitions)
        other.d, other.layout, other.table = first.d, first.layout, first.table
        other.largest = max(part.largest for part in parts)
        for name in _VECTORS:
            setattr(other, name, join(name, [getattr(part, name) for part in parts]))
        for name in _ROWS:
            rows = [None if part.layout == "table" else getattr(part, name) for part in parts]
            setattr(other, f"_{name}", join(name, rows))
        other._low = 0
        other.n = len(other.reward)
        return other

    def __repr__(self) -> str:
        return f"Transitions(n={self.n}, d={self.d}, layout={self.layout!r})"

    # -- construction ------------------------------------------------------------------------------

    def _gather(self, index: Ints | None) -> Any:
        return self.table[np.maximum(cast(Ints, index), 0)]

    def _set_vectors(
        self,
        n: int,
        reward: npt.ArrayLike,
        discount: npt.ArrayLike,
        rho: Given,
        start: Given,
        target_prob: Given,
        behavior_prob: Given,
        interest: Given,
    ) -> None:
        self.n = n
        self.reward = vector("reward", reward, n)
        self.discount = vector("discount", discount, n, 0.0, 1.0)
        self.target_prob = optional("target_prob", target_prob, n, 1.0)
        self.behavior_prob = optional("behavior_prob", behavior_prob, n, 1.0)
        if self.behavior_prob is not None and self.behavior_prob.min(initial=1.0) <= 0.0:
            refuse(
                "behavior_prob",
                self.behavior_prob,
                self.behavior_prob <= 0.0,
                "an action that was taken has a probability above 0",
            )
        self.rho = ratio(rho, self.target_prob, self.behavior_prob, n)
        self.interest = optional("interest", interest, n, np.inf)
        self.start = marks(start, n)

    def _successor(self, name: str, rows: Any, discount: Floats) -> Any:
        rows = as_rows(name, rows)
        if (rows.shape, isinstance(rows, np.ndarray)) != (
            self._phi.shape,
            isinstance(self._phi, np.ndarray),
        ):
            raise InputError(
                f"{name} must have the shape and layout of phi, {self._phi.shape} {self.layout};"
                f" got {rows.shape} {'dense' if isinstance(rows, np.ndarray) else 'csr'}"
            )
        self.largest = max(self.largest, check_finite(name, rows, discount != 0.0))
        return rows

    def _set_second(self, given: bool, discount_2: Given, rho_2: Given) -> None:
        self.discount_2 = self.rho_2 = None
        if given:
            second = self.discount if discount_2 is None else discount_2
            self.discount_2 = vector("discount_2", second, self.n, 0.0, 1.0)
            self.rho_2 = vector("rho_2", 1.0 if rho_2 is None else rho_2, self.n, 0.0, np.inf)
        elif discount_2 is not None or rho_2 is not None:
            raise InputError("discount_2 and rho_2 belong to a second successor: pass next_phi_2")


def _bound(end: Any) -> int | None:
    """One end of a slice."""
    return None if end is None else whole("the slice's bound", end, None)


def unchecked(table: Any, largest: float, **columns: Any) -> Transitions:
    """Transitions of a table, for samplers, whose columns are known to be right.

    `largest` bounds the absolute values in the table; columns are named as in `from_table`.
    """
    rows = Transitions.__new__(Transitions)
    rows.table, rows.largest, rows.layout, rows.d = table, largest, "table", table.shape[1]
    rows._low, rows._phi, rows._next_phi, rows._next_phi_2 = 0, None, None, None
    for name in _VECTORS:
        column = columns.get(name)
        setattr(rows, name, None if column is None else freeze(column))
    rows.n = len(rows.reward)
    return rows

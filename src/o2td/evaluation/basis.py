"""Features of a block's rows, in the three forms that estimates use.

Each gives, for weights `theta`: `here @ theta` (what an update corrects), `ahead @ theta` (the
discounted prediction of what follows) and `first @ theta` (the value where an episode starts).

| form | here | ahead | first |
|---|---|---|---|
| `States` | `phi(s)` | `gamma phi(s')` | `phi(s_0)` |
| `Actions` | `phi(s, a)` | `gamma sum_a' pi(a', s') phi(s', a')` | `sum_a pi(a, s_0) phi(s_0, a)` |
| `Cells` | one state of a table | its successor | the first state |
| `Own` | V(s) or Q(s, a) of the user's | gamma V(s') | V(s_0) |
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arguments import answer_of
from o2td.arrays import Bools, Floats, Ints, as_array, as_numbers, as_rows
from o2td.compiled import njit
from o2td.errors import InputError, option
from o2td.evaluation.episodes import Episodes
from o2td.sources.log_rows import LoneStarts

WIDEST = 2048  # dense features that a system of equations may have


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """Dense rows of one block: `here`, the successors, and `first` per episode.

    The successor of row `other[k]` is `after[k]`, that of any other row is the next row, or nothing
    at an end. `keep` is 0 in rows that cannot be used.
    """

    here: Floats
    first: Floats
    after: Floats
    other: Ints
    ends: Bools
    discount: Floats
    reward: Floats
    keep: Floats | None = None

    @cached_property
    def right(self) -> Floats:
        """`[here - discount ahead, r]`: the right factor of the equations."""
        right = np.empty((len(self.here), self.here.shape[1] + 1))
        ahead = (self.after, self.other, self.ends, self.discount)
        _differences(self.here, *ahead, self.reward, right)
        return right

    def some(self, index: Ints | slice) -> FeatureRows:
        """The same rows with some of the features; a slice stands for all."""
        if isinstance(index, slice):
            return self
        # `take` keeps rows contiguous, and is several times as fast as an index.
        here, first, after = (np.take(one, index, 1) for one in (self.here, self.first, self.after))
        return replace(self, here=here, first=first, after=after)

    def ahead(self, theta: Floats, value: Floats) -> Floats:
        """`discount ahead·theta`, where `value` is `here·theta`; both may have several columns."""
        ahead = np.zeros_like(value)
        ahead[:-1] = value[1:]
        ahead[self.ends] = 0.0
        if len(self.other):
            ahead[self.other] = self.after @ theta
        ahead *= self.discount[(slice(None), *[None] * (theta.ndim - 1))]
        return ahead

    def temporal_difference(self, theta: Floats, value: Floats | None = None) -> Floats:
        """`r + discount ahead·theta - here·theta`; `theta` may have several columns.

        `value` is `here·theta`, where that is known.
        """
        value = self.here @ theta if value is None else value
        each = (slice(None), *[None] * (theta.ndim - 1))
        delta = self.reward[each] + self.ahead(theta, value) - value
        return np.asarray(delta if self.keep is None else delta * self.keep[each])


@njit(cache=True, nogil=True)
def _differences(
    here: Any, after: Any, other: Any, ends: Any, discount: Any, reward: Any, out: Any
) -> None:
    """`[phi(s) - gamma phi(s'), r]` of each row; `after` is `phi(s')` of the rows `other`."""
    n, d = here.shape
    at = 0
    for t in range(n):
        elsewhere = at < len(other) and other[at] == t
        for j in range(d):
            ahead = 0.0
            if elsewhere:
                ahead = after[at, j]
            elif not ends[t]:
                ahead = here[t + 1, j]
            out[t, j] = here[t, j] - ahead * discount[t]
        out[t, d] = reward[t]
        at += elsewhere


class States:
    """Features of states: a transformer, a callable, or an (S, d) table."""

    uses_ratios = True

    def __init__(self, features: Any) -> None:
        self.features = features
        self._width = 0

    @property
    def tabular(self) -> bool:
        """Whether each row has one feature, which is 1."""
        return hasattr(self.features, "state_of")

    @property
    def name(self) -> str:
        """The features in words."""
        return describe(self.features)

    def phi(self, inputs: npt.NDArray[Any]) -> Floats:
        """Dense features of observations or states."""
        rows = apply(self.features, inputs)
        if rows.shape[1] > WIDEST:
            raise InputError(
                f"{option('features', '--features')}: {rows.shape[1]} features per row; evaluate takes"
                f" at most {WIDEST}, or any number that index states (tabular, aggregate)"
            )
        self._width = self._width or rows.shape[1]
        check_width(rows, self._width)
        return np.ascontiguousarray(rows.toarray() if hasattr(rows, "toarray") else rows)

    def both(self, block: Episodes) -> tuple[Floats, Floats]:
        """`phi(s)` and `phi(s')`; a successor that is the next row is not recomputed."""
        rows, other = block.rows, block.elsewhere
        here = self.phi(rows.input)
        ahead = np.empty_like(here)
        ahead[:-1] = here[1:]
        ahead[rows.terminated] = 0.0
        if len(other):
            ahead[other] = self.phi(rows.next_input[other])
        return here, ahead

    def first(self, lone: LoneStarts) -> Floats:
        """`phi(s_0)` of episodes without rows."""
        return self.phi(lone.input)

    def rows(self, block: Episodes) -> FeatureRows:
        """Rows of a block; a successor that equals the next row is read from there."""
        rows = block.rows
        here, other = self.phi(rows.input), block.elsewhere
        after = self.phi(rows.next_input[other]) if len(other) else here[:0]
        ahead = (after, other, rows.terminated, rows.discount)
        return FeatureRows(here, here[block.first[:-1]], *ahead, rows.reward)


class Actions:
    """Features of states and actions, one block of weights per action."""

    uses_ratios = False

    def __init__(self, states: States, n_actions: int) -> None:
        self.states, self.n_actions = states, n_actions

    @property
    def tabular(self) -> bool:
        """Whether each row has one feature, which is 1."""
        return self.states.tabular

    @property
    def name(self) -> str:
        """The features in words."""
        return f"{self.states.name} for each of {self.n_actions} actions"

    def first(self, lone: LoneStarts) -> Floats:
        """`sum_a pi(a, s_0) phi(s_0, a)` of episodes without rows."""
        assert lone.target_probs is not None  # noqa: S101  # or rows would have refused
        return _weighted(lone.target_probs, self.states.phi(lone.input))

    def rows(self, block: Episodes) -> FeatureRows:
        """Rows of a block; those whose successor has no probabilities are not used."""
        rows = block.rows
        if rows.action is None or rows.target_probs is None or rows.next_target_probs is None:
            raise InputError("logs: action values need actions and the target's probabilities")
        here, ahead = self.states.both(block)
        n, d = here.shape
        chance = rows.next_target_probs * rows.discount[:, None]
        known: Any = np.isfinite(chance).all(axis=1)
        keep: Floats | None = None if known.all() else known.astype(np.float64)
        if keep is not None:
            chance = np.where(known[:, None], chance, 0.0)
        taken = np.zeros((n, self.n_actions, d))
        taken[np.arange(n), rows.action.astype(np.int64)] = here
        following = (chance[:, :, None] * ahead[:, None, :]).reshape(n, -1)
        start = block.first[:-1]
        first = _weighted(rows.target_probs[start], here[start])
        ahead_of_all = (following, np.arange(n), rows.terminated, np.ones(n))
        return FeatureRows(taken.reshape(n, -1), first, *ahead_of_all, rows.reward, keep)


def _weighted(chance: Floats, phi: Floats) -> Floats:
    """`pi(a, s) phi(s)` of all actions, side by side."""
    return (chance[:, :, None] * phi[:, None, :]).reshape(len(phi), -1)


class Own:
    """The values of a model of the user's, as one feature whose weight is 1."""

    uses_ratios, tabular = True, False
    name = "a value model of the user's"
    features: Any = None

    def first(self, lone: LoneStarts) -> Floats:
        """`V(s_0)` of episodes of which only the start is known."""
        assert lone.value is not None  # noqa: S101
        return lone.value[:, None]

    def rows(self, block: Episodes) -> FeatureRows:
        """Rows of a block, as the log gives them."""
        rows = block.rows
        assert rows.value is not None  # noqa: S101
        assert rows.next_value is not None  # noqa: S101
        here = rows.value if rows.action_value is None else rows.action_value
        on = np.flatnonzero(~rows.terminated)
        ahead = (rows.next_value[on, None], on, rows.terminated, rows.discount)
        first = rows.value[block.first[:-1], None]
        return FeatureRows(here[:, None], first, *ahead, rows.reward)


class Cells:
    """One weight per state: the log's states, or features with a `state_of` that names the cell."""

    uses_ratios = True

    def __init__(self, features: Any) -> None:
        self.features = features

    @property
    def name(self) -> str:
        """The features in words."""
        return describe(self.features)

    def index(self, block: Episodes) -> tuple[Ints, Ints]:
        """The cell of each row and of its successor, -1 where it terminates."""
        rows = block.rows
        here = self.features.state_of(rows.input)
        ahead = np.where(rows.terminated, -1, self.features.state_of(rows.next_input))
        return here, ahead


def describe(features: Any) -> str:
    """One line about a feature map, without long arrays."""
    if hasattr(features, "shape"):
        return f"table of {features.shape[0]} states by {features.shape[1]} features"
    if not hasattr(features, "get_params"):
        return str(getattr(features, "__name__", type(features).__name__))
    shown = []
    for name, value in features.get_params().items():
        if value is None or name in ("bounds", "clip", "centers", "width"):
            continue
        shown.append(f"{name}={value}")
    if getattr(features, "centers", None) is not None:
        shown.insert(0, f"{len(features.centers)} centres")
    name = getattr(features, "feature", type(features).__name__)
    return f"{name}({', '.join(shown)})" if shown else str(name)


def apply(features: Any, inputs: npt.NDArray[Any]) -> Any:
    """Features (n, d), dense or sparse, from a transformer, a callable or an (S, d) table."""
    if hasattr(features, "shape"):
        if inputs.ndim != 1:
            raise InputError("features: a table of features needs a log with states")
        if len(inputs) and inputs.max() >= features.shape[0]:
            raise InputError(
                f"features: state {inputs.max()} is in the log, the table has"
                f" {features.shape[0]} rows"
            )
        return features[inputs]
    transform = features.transform if hasattr(features, "transform") else features
    rows = answer_of("features", transform, inputs)
    if hasattr(features, "state_dict"):  # one of o2td's own
        return rows
    rows = _numbers("features: what it returned", rows)
    if rows.ndim != 2 or rows.shape[0] != len(inputs):
        raise InputError(
            f"features: returned shape {rows.shape} for {len(inputs)} rows; return (rows, features)"
        )
    if not rows.shape[1]:
        raise InputError("features: returned no features; return at least one column")
    _check_finite(rows, inputs)
    return rows


def check_width(rows: Any, width: int) -> None:
    """Refuse a user's feature map that returns another number of features than before."""
    if rows.shape[1] != width:
        raise InputError(
            f"features: returned {rows.shape[1]} columns for some rows and {width} for others; return"
            " as many for any"
        )


def table_of(features: Any) -> Any:
    """A table of features, also of pandas or in half precision, as `apply` looks rows up in it."""
    return _numbers("features: the table", features)


def _numbers(name: str, rows: Any) -> Any:
    """What a user gave or returned, as a float64 array or a CSR array of numbers."""
    if hasattr(rows, "tocsr"):
        return as_rows(name, rows)
    rows = as_array(name, rows.detach().cpu() if hasattr(rows, "detach") else rows)
    return as_numbers(name, rows.astype(np.float32) if rows.dtype == np.float16 else rows)


def _check_finite(rows: Any, inputs: npt.NDArray[Any]) -> None:
    """Refuse a user's feature map that turns finite inputs into numbers that are not finite."""
    fine = np.isfinite(rows.data if hasattr(rows, "tocsr") else rows)
    if not fine.all():
        bad = inputs[int(np.argmin(fine.all(axis=1)))] if fine.ndim == 2 else "some input"
        raise InputError(f"features: not a finite number for {bad}; correct the feature map")

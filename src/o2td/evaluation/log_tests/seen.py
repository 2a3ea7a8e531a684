"""The sample of a log as the tests see it: codes of states and actions, steps, previous rows.

States are compared exactly. Observations that do not recur cannot be: for these, tests use
residuals of a regression on the observation's squares and products, action by action.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from o2td.arrays import Bools, Floats, Ints
from o2td.evaluation.episodes import Episodes
from o2td.sources.log_rows import NO_FINAL, UNLIKE

if TYPE_CHECKING:
    from o2td.evaluation.study import Study

ROWS = 20_000  # rows of the sample that are used
_FEW = 200  # up to this many distinct observations they are states
_OFTEN = 5  # visits per state, on average
_ACTIONS = 50
_ROUNDING = 1e-11  # of a column's range
_VARIABLES = 8  # beyond this, squares only

_views: WeakKeyDictionary[Study, Seen] = WeakKeyDictionary()


def seen(study: Study) -> Seen:
    """The sample that all tests of one evaluation share."""
    if study not in _views:
        info = study.source.info
        unlike = info.notes.get(UNLIKE, 0) / max(info.rows, 1)
        whole = not info.dropped.get(NO_FINAL, 0)
        mapped = study.source.mapped
        chained = bool(mapped.many("next_state") or mapped.many("next_observation"))
        _views[study] = Seen(_first(study.sample, ROWS), whole, unlike, chained)
    return _views[study]


def _first(sample: Episodes, rows: int) -> Episodes:
    """The sample, or every k-th episode of a large one, so that it spans the whole log."""
    every = -(-len(sample.rows) // rows)
    return sample if every == 1 else sample.pick(np.arange(sample.count) % every == 0)


class Seen:
    """Rows of whole episodes with codes."""

    def __init__(
        self,
        episodes: Episodes,
        whole: bool = True,
        unlike: float = 0.0,
        chained: bool = True,
    ) -> None:
        self.whole = whole  # whether every last row was kept, with its successor
        self.unlike = unlike  # share of rows whose columns give the target different probabilities
        self.chained = chained  # whether rows name what follows them, which shows their order
        self.kept: dict[str, Any] = {}  # results that several tests use
        self.episodes, self.rows = episodes, episodes.rows
        self.count, self.first = episodes.count, episodes.first
        self.length = np.diff(self.first)
        self.step: Ints = np.arange(len(self.rows)) - np.repeat(self.first[:-1], self.length)
        self.last = self.first[1:] - 1

    @cached_property
    def unit(self) -> Ints:
        """Number of the episode of each row."""
        return self.episodes.unit()

    @cached_property
    def _codes(self) -> tuple[Ints, Ints, bool]:
        rows = self.rows
        if rows.observation is None:
            both = np.concatenate([rows.input, rows.next_input])
            code = stratum_of(both - both.min())
            return code[: len(rows)], code[len(rows) :], True
        both = np.concatenate([rows.input, rows.next_input])
        part = both[:: max(len(both) // 2000, 1)]
        if len(np.unique(part, axis=0)) > min(_FEW, len(part) // _OFTEN):
            return np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64), False
        kinds, code = np.unique(both, axis=0, return_inverse=True)
        code = code.ravel()
        return code[: len(rows)], code[len(rows) :], len(kinds) <= 2 * _FEW

    @property
    def exact(self) -> bool:
        """Whether states recur, so that they can be compared exactly."""
        return self._codes[2]

    @property
    def state(self) -> Ints:
        """Code of the state."""
        return self._codes[0]

    @property
    def ahead(self) -> Ints:
        """Code of the next state, also at ends."""
        return self._codes[1]

    @property
    def states(self) -> int:
        """Number of codes."""
        return int(max(self.state.max(), self.ahead.max())) + 1

    @cached_property
    def action(self) -> Ints | None:
        """Code of the action, or None if there are no discrete actions."""
        action = self.rows.action
        if action is None or action.ndim != 1 or action.dtype.kind not in "iu":
            return None
        low = int(action.min())
        return action - low if action.max() - low < _ACTIONS else None

    @cached_property
    def pair(self) -> Ints:
        """Code of state and action, without gaps."""
        return stratum_of(self.state, *(() if self.action is None else (self.action,)))

    @cached_property
    def follows(self) -> Bools:
        """Rows that have a previous row in their episode."""
        return self.step > 0

    @cached_property
    def reward(self) -> Floats:
        """Rewards, with the outermost thousandth on either side clipped."""
        reward = self.rows.reward
        low, high = np.quantile(reward, [0.001, 0.999])
        return np.clip(reward, low, high)

    @cached_property
    def surprise(self) -> Floats:
        """The reward minus its mean given state and action."""
        return self.residual(self.reward[:, None])[:, 0]

    def residual(self, values: Floats) -> Floats:
        """Columns without what state and action explain."""
        if self.exact:
            return without_means(values, self.pair)
        values, basis = values - values[0], self._basis
        left = values - basis @ (basis.T @ values)
        left -= basis @ (basis.T @ left)  # the columns are orthonormal to eight digits only
        return without_rounding(left, values)

    def varies(self, number: Floats) -> float:
        """Share of a number's variance within states that stays given the action, too."""
        within = float(np.square(without_means(number[:, None], self.state)).sum())
        if within <= 1e-9 * float(np.square(number).sum()):
            return 0.0
        pairs = float(np.square(without_means(number[:, None], self.pair)).sum())
        freedom = (len(number) - self.state.max() - 1) / max(len(number) - self.pair.max() - 1, 1)
        return pairs / within * float(freedom)

    @cached_property
    def _basis(self) -> Floats:
        """Orthonormal columns that span the regression's features."""
        x = np.asarray(self.rows.input, dtype=np.float64).reshape(len(self.rows), -1)
        spread = x.std(axis=0)
        x = (x - x.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        d = x.shape[1]
        pairs = np.triu_indices(d) if d <= _VARIABLES else (np.arange(d), np.arange(d))
        phi = np.column_stack([np.ones(len(x)), x, x[:, pairs[0]] * x[:, pairs[1]]])
        if self.action is not None:
            marks = self.action[:, None] == np.unique(self.action)
            phi = (phi[:, None, :] * marks[:, :, None]).reshape(len(x), -1)
        few = len(x) < phi.shape[1]  # rows: the smaller matrix has the same eigenvalues
        values, vectors = np.linalg.eigh(phi @ phi.T if few else phi.T @ phi)
        kept = values > 1e-8 * values[-1]
        return np.asarray(
            vectors[:, kept] if few else phi @ (vectors[:, kept] / np.sqrt(values[kept]))
        )


def without_means(values: Floats, stratum: Ints) -> Floats:
    """Columns minus their mean in each stratum; exactly 0 where the stratum determines them.

    >>> without_means(np.array([[1e9], [1e9], [0.1]]), np.array([0, 0, 1])).tolist()
    [[0.0], [0.0], [0.0]]
    """
    size = int(stratum.max()) + 1
    count = np.maximum(np.bincount(stratum, minlength=size), 1)
    values = values - values[0]
    mean = (sums(values, stratum, size) / count[:, None])[stratum]
    return without_rounding(np.subtract(values, mean, out=mean), values)


def without_rounding(left: Floats, values: Floats) -> Floats:
    """What is left of columns, with 0 for rounding errors: a test would count them as data."""
    least = _ROUNDING * np.abs(values).max(axis=0, initial=0.0)
    left[np.abs(left) <= least] = 0.0
    return left


def sums(values: Floats, code: Ints, size: int) -> Floats:
    """Sums of columns by code."""
    from scipy.sparse import csc_array

    member = csc_array((np.ones(len(code)), code, np.arange(len(code) + 1)), (size, len(code)))
    return np.asarray(member @ values)


def marks(code: Ints, most: int, least: int = 20) -> tuple[Floats, Any]:
    """Indicators of the most frequent codes, and these codes."""
    count = np.bincount(code)
    order = np.argsort(-count, kind="stable")[:most]
    order = order[count[order] >= least]
    return (code[:, None] == order).astype(np.float64), order


def stratum_of(*codes: Any) -> Ints:
    """One code for several codes, without gaps."""
    code = np.zeros(len(codes[0]), dtype=np.int64)
    for one in codes:
        code = code * (int(one.max()) + 2) + one
    if int(code.max()) < 4 * len(code):  # without sorting
        present = np.bincount(code) > 0
        return np.asarray((np.cumsum(present) - 1)[code])
    return np.asarray(np.unique(code, return_inverse=True)[1])

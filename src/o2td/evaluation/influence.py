"""The pass that computes each episode's influence on every estimate.

The influence of episode e on a fit's `value = phi_0·theta` is its start state's part,
`phi_0,e·theta - value`, plus `E u·sum_t z_t delta_t` with `u = A^-T phi_0`: the clustered sandwich
sums its squares, and skewness is measured by it. The influence on a weighted history is a function
of its weights, rewards, and the errors of a value function fitted to other episodes. Everything
needed is known before this pass, so an episode leaves only its part in the moments, unless the
numbers themselves are asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from o2td.arguments import real, shown
from o2td.arrays import Floats, Ints
from o2td.errors import InputError
from o2td.evaluation.basis import Own
from o2td.evaluation.cells import CellSystem
from o2td.evaluation.episodes import Episodes, Keys
from o2td.evaluation.fitting import AnySystem, Blend, Fit, across, lone_parts, parts_of
from o2td.evaluation.histories import histories
from o2td.evaluation.horizon_features import StepsSystem
from o2td.evaluation.moments import Moments, Spread
from o2td.evaluation.select import own
from o2td.evaluation.survey import folds_of
from o2td.evaluation.systems import FOLDS


@dataclass(frozen=True, eq=False)
class Baseline:
    """A value function, fitted to all folds of episodes but one, for each of the folds.

    `system` computes with rows, `weights` (d, folds) were fitted without each fold, `mean` is the
    mean of `V(s_0)` over start states, each by the weights of its own fold. A value function that the
    user gives has weight 1 in every fold.
    """

    system: AnySystem
    weights: Floats  # (d, folds)
    mean: float

    @classmethod
    def of(cls, system: AnySystem, opened: float) -> Baseline:
        """The baseline of a filled system; `opened` is the number of starts."""
        if not isinstance(system, AnySystem):
            raise InputError(f"system must be one that a fit has filled, got {shown(system)}")
        real("opened", opened)
        own = isinstance(system.basis, Own)
        weights = np.ones((1, FOLDS)) if own else across(system)
        mean = float((system.fold_starts() * weights.T).sum() / max(opened, 1.0))
        return cls(system.light(), system.lift(weights), mean)


@dataclass(frozen=True, eq=False)
class Histories:
    """Whole episodes with the weights of their histories and the errors of baselines.

    Of `episodes`, `weight` is `w_t = rho_0 … rho_t`, `gone` the discount of the row's reward, `step`
    the row's number in its episode. Of baseline k, `first[k]` is `V(s_0)` by episode and `delta[k]` is
    `r + gamma V(s') - V(s)` by row.
    """

    episodes: Episodes
    weight: Floats
    gone: Floats
    step: Ints
    first: list[Floats]
    delta: list[Floats]


class Column(ABC):
    """One number per episode, its influence on an estimate; their mean is 0.

    Or their mean is the distance of the estimate from another, which is then added to it. It must
    be possible to pickle a column.
    """

    @abstractmethod
    def of(self, histories: Histories) -> Floats:
        """The number of each episode."""

    def alone(self, count: int, first: list[Floats]) -> Floats:
        """The same for `count` episodes without rows; `first` as in `Histories`."""
        return np.zeros(count)


Found = dict[int, tuple[Floats, Floats]]


@dataclass(eq=False)
class Sharing:
    """Fits (system, weights, adjoint) and baselines of one basis, by number."""

    fits: dict[int, tuple[Any, Floats, Floats]] = field(default_factory=dict)
    baselines: dict[int, Any] = field(default_factory=dict)

    @property
    def systems(self) -> list[Any]:
        """All systems."""
        return [one[0] for one in self.fits.values()] + [b.system for b in self.baselines.values()]

    def of(self, block: Episodes) -> tuple[Found, Found]:
        """`V(s_0)` and influences of rows for fits, `V(s_0)` and errors of rows for baselines.

        Features are computed once and read once for all of them.
        """
        any_system = self.systems[0]
        if isinstance(any_system, CellSystem):
            return (
                {k: system.influence(block, *more) for k, (system, *more) in self.fits.items()},
                {k: b.system.differences(block, b.weights) for k, b in self.baselines.items()},
            )
        rows, moved = any_system.basis.rows(block), {}
        fits = dict(self.fits)
        for k, (system, *more) in self.fits.items():
            if isinstance(system, StepsSystem):
                moved[k] = system.influence(block, rows, *more)
                del fits[k]
        weights = [theta for _, theta, _ in fits.values()]
        weights += [baseline.weights for baseline in self.baselines.values()]
        if not weights:
            return moved, {}
        both = np.column_stack(weights)
        adjoints = [adjoint for _, _, adjoint in fits.values()]
        # One product for all, stored column by column.
        value = (np.column_stack([both, *adjoints]).T @ rows.here.T).T
        value, along = value[:, : both.shape[1]], value[:, both.shape[1] :]
        first, delta = rows.first @ both, rows.temporal_difference(both, value)
        for n, (k, (system, _, _)) in enumerate(fits.items()):
            moved[k] = (first[:, n], system.moved(block, along[:, n], delta[:, n]))
        folds = (slice(n, n + FOLDS) for n in range(len(fits), both.shape[1], FOLDS))
        errors = {k: (first[:, f], delta[:, f]) for k, f in zip(self.baselines, folds, strict=True)}
        return moved, errors


@dataclass(eq=False)
class Influences:
    """Columns with one number per episode: for blends of fits, and for histories."""

    units: int  # episodes, including those without rows
    opened: float  # starts
    seed: int
    lanes: int
    keep: bool = False
    users: bool = False
    baselines: list[Baseline] = field(default_factory=list)
    fits: list[Fit] = field(default_factory=list)
    blends: list[Floats] = field(default_factory=list)
    columns: list[Column] = field(default_factory=list)
    kept: list[tuple[Ints, Keys, Floats]] = field(default_factory=list)
    moments: Moments | None = None
    bases: dict[int, Sharing] = field(default_factory=dict)
    _latest: list[tuple[Keys, Floats]] = field(default_factory=list)

    # -- what is wanted ----------------------------------------------------------------------------

    def blend(self, blend: Blend) -> int:
        """Track a weighted mean of fits; returns the number of its column."""
        for _, fit in blend:
            if fit not in self.fits:
                self.fits.append(fit)
        weights = np.zeros(len(self.fits))
        for weight, fit in blend:
            weights[self.fits.index(fit)] += weight
        self.blends.append(weights)
        return -len(self.blends)

    def want(self, column: Column) -> int:
        """Track a column of histories; returns its number."""
        self.columns.append(column)
        return len(self.columns) - 1

    def correct(self, baseline: Baseline) -> int:
        """Provide columns with the errors of a baseline; returns its number."""
        if baseline not in self.baselines:
            self.baselines.append(baseline)
        return self.baselines.index(baseline)

    # -- the pass ----------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, object]:
        """What a worker needs: systems without their sums."""
        self._prepare()
        return {**vars(self), "fits": [], "_latest": []}

    def _prepare(self) -> None:
        if self.moments is not None:
            return
        self.values = np.array([fit.value for fit in self.fits])
        self.mixed = np.zeros((len(self.fits), len(self.blends)))
        for column, weights in enumerate(self.blends):
            self.mixed[: len(weights), column] = weights
        columns = len(self.blends) + len(self.columns)
        self.moments = Moments(columns, self.seed, self.lanes, self.users)
        for k, fit in enumerate(self.fits):
            system, theta, adjoint = fit.system, fit.solution.theta, fit.system.adjoint()
            vectors = (system.lift(theta), system.lift(adjoint))
            self._sharing(system.whole).fits[k] = (system.light(), *vectors)
        for k, baseline in enumerate(self.baselines):
            self._sharing(baseline.system).baselines[k] = baseline

    def _sharing(self, system: AnySystem) -> Sharing:
        return self.bases.setdefault(id(system.basis), Sharing())

    def add(self, block: Episodes) -> None:
        """Take in episodes."""
        self._prepare()
        self._latest = []
        share = self.units / max(self.opened, 1.0)
        influence = np.zeros((block.count, len(self.values)))
        first = [np.empty(block.count) for _ in self.baselines]
        delta = [np.empty(len(block.rows)) for _ in self.baselines]
        episode = row = 0
        for part in parts_of(self._systems(), block):
            episode -= part.within  # it continues the last one
            at = slice(episode, episode + part.count)
            rows = slice(row, row + len(part.rows))
            fold = folds_of(part.key, FOLDS)
            mine = np.repeat(fold, np.diff(part.first))
            for shared in self.bases.values():
                moved, errors = shared.of(part)
                for k, (start, by) in moved.items():
                    apart = np.where(part.opens, start - self.values[k], 0.0)
                    influence[at, k] += share * apart + self.units * by
                for k, (start, error) in errors.items():
                    first[k][at][part.within :] = own(start, fold)[part.within :]
                    delta[k][rows] = own(error, mine)
            episode, row = at.stop, rows.stop
        self._take(block, influence @ self.mixed, Histories(block, *histories(block), first, delta))
        self._take_lone(block, share)

    def _systems(self) -> list[AnySystem]:
        return [system for shared in self.bases.values() for system in shared.systems]

    def _take(self, block: Episodes, blends: Floats, found: Histories) -> None:
        columns = [column.of(found) for column in self.columns]
        number = block.rows.episode[block.first[:-1]]
        self._note(np.column_stack([blends, *columns]), block.key, number)

    def _take_lone(self, block: Episodes, share: float) -> None:
        for lone in lone_parts(self._systems(), block):
            apart = np.zeros((len(lone), len(self.values)))
            for shared in self.bases.values():
                for k, (system, theta, _) in shared.fits.items():
                    apart[:, k] = system.start_values(lone, theta) - self.values[k]
            fold = folds_of(lone.key, FOLDS)
            first = [own(b.system.start_values(lone, b.weights), fold) for b in self.baselines]
            columns = [column.alone(len(lone), first) for column in self.columns]
            number = np.full(len(lone), -1)
            self._note(np.column_stack([share * apart @ self.mixed, *columns]), lone.key, number)

    def _note(self, values: Floats, key: Keys, number: Ints) -> None:
        assert self.moments is not None  # noqa: S101
        self.moments.add(values, key)
        self._latest.append((key, values))
        if self.keep:
            self.kept.append((number, key, values))

    def merge(self, other: Influences) -> None:
        """Add another one's moments."""
        self._prepare()
        if self.moments is not None and other.moments is not None:
            self.moments.merge(other.moments)
        self.kept += other.kept

    # -- what was found ----------------------------------------------------------------------------

    def latest(self, column: int) -> Floats:
        """A column's numbers for the episodes added last."""
        number = self._number(column)
        return np.concatenate([values[:, number] for _, values in self._latest])

    def latest_keys(self) -> Keys:
        """The keys of these episodes."""
        return np.concatenate([key for key, _ in self._latest])

    def spread(self, column: int) -> Spread:
        """Moments and lanes of a column."""
        assert self.moments is not None  # noqa: S101
        found = self.moments.spread(self._number(column))
        return replace(found, values=self._values(column)) if self.keep else found

    def found(self, column: int, blend: Blend) -> tuple[Spread, Floats]:
        """Influence of a blend, and its value in each lane: its own, or from the influence.

        Its own lanes are stretched about the value if they spread less than the influence's, which
        allow for cells whose few rows fit their value too well.
        """
        value = float(sum(weight * fit.value for weight, fit in blend))
        influence = self.spread(column)
        own_lanes = blend[0][1].lanes if len(blend) == 1 else None
        if own_lanes is None:
            return influence, value + influence.lanes
        narrow, wide = float(np.std(own_lanes)), float(np.std(influence.lanes))
        if 0.0 < narrow < wide:
            own_lanes = value + wide / narrow * (own_lanes - value)
        return influence, own_lanes

    def _values(self, column: int) -> Floats:
        found = np.concatenate([values[:, self._number(column)] for _, _, values in self.kept])
        return np.asarray(found - found.mean())

    def _number(self, column: int) -> int:
        return -column - 1 if column < 0 else len(self.blends) + column

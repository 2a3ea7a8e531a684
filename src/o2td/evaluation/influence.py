"""The pass that traces each episode's influence on every estimate.

The influence of episode e on a fit's `value = phi_0·theta` is its start state's part,
`phi_0,e·theta - value`, plus `E u·sum_t z_t delta_t` with `u = A^-T phi_0`: what the clustered
sandwich sums squares of, and what skewness is measured by. That of a weighted history is a function
of its weights, rewards, and the errors of a value function fitted to other episodes. All that it
needs is known before this pass, so nothing is kept of an episode but its part in the moments, unless
the numbers themselves are asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np

from o2td.arrays import Floats, Ints
from o2td.evaluation.basis import FeatureRows
from o2td.evaluation.cells import CellSystem
from o2td.evaluation.episodes import Episodes, Keys
from o2td.evaluation.fitting import (
    AnySystem,
    Blend,
    Fit,
    across,
    lone_parts,
    parts_of,
    shared_rows,
)
from o2td.evaluation.histories import histories
from o2td.evaluation.moments import Moments, Spread
from o2td.evaluation.select import own
from o2td.evaluation.survey import folds_of
from o2td.evaluation.systems import FOLDS

__all__ = ["Baseline", "Column", "Histories", "Influences"]


@dataclass(frozen=True, eq=False)
class Baseline:
    """A value function, fitted to all folds of episodes but one, for each of the folds.

    `system` goes over rows, `weights` (d, folds) are those without each fold, `mean` is the mean of
    `V(s_0)` over start states, each by the weights of its own fold.
    """

    system: AnySystem
    weights: Floats  # (d, folds)
    mean: float

    @classmethod
    def of(cls, system: AnySystem, opened: float) -> Baseline:
        """Of a system that has been filled; `opened` is the number of starts."""
        weights = across(system)
        mean = float((system.fold_starts() * weights.T).sum() / max(opened, 1.0))
        return cls(system.light(), system.lift(weights), mean)


@dataclass(frozen=True, eq=False)
class Histories:
    """Whole episodes, with the weights of their histories and the errors of baselines.

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
    """One number an episode: what it moves an estimate by, such that their mean is 0.

    Or such that their mean is how far the estimate is from another one, which is then added to it.
    A column must be one that can be pickled.
    """

    @abstractmethod
    def of(self, histories: Histories) -> Floats:
        """The number of each episode."""

    def alone(self, count: int, first: list[Floats]) -> Floats:
        """The same of `count` episodes of which only the start is known; `first` as in `Histories`."""
        return np.zeros(count)


@dataclass(eq=False)
class Influences:
    """Columns of numbers, one an episode: of blends of fits, and of histories."""

    units: int  # episodes, those included of which only the start is known
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

    # -- what is wanted ----------------------------------------------------------------------------

    def blend(self, blend: Blend) -> int:
        """Trace a weighted mean of fits; returns the number of its column."""
        for _, fit in blend:
            if fit not in self.fits:
                self.fits.append(fit)
        weights = np.zeros(len(self.fits))
        for weight, fit in blend:
            weights[self.fits.index(fit)] += weight
        self.blends.append(weights)
        return -len(self.blends)

    def want(self, column: Column) -> int:
        """Trace a column of histories; returns its number."""
        self.columns.append(column)
        return len(self.columns) - 1

    def correct(self, baseline: Baseline) -> int:
        """Let columns have the errors of a baseline; returns its number."""
        if baseline not in self.baselines:
            self.baselines.append(baseline)
        return self.baselines.index(baseline)

    # -- the pass ----------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, object]:
        """What a worker needs: systems without their sums."""
        self._prepare()
        return {**vars(self), "fits": []}

    def _prepare(self) -> None:
        if self.moments is not None:
            return
        order = sorted(range(len(self.fits)), key=lambda k: self._place(self.fits[k]))
        fits = [self.fits[k] for k in order]
        self.systems = [fit.system.light() for fit in fits]
        self.thetas = [fit.system.lift(fit.solution.theta) for fit in fits]
        self.adjoints = [fit.system.lift(fit.system.adjoint()) for fit in fits]
        self.values = np.array([fit.value for fit in fits])
        self.mixed = np.zeros((len(fits), len(self.blends)))
        for column, weights in enumerate(self.blends):
            whole = np.concatenate([weights, np.zeros(len(fits) - len(weights))])
            self.mixed[:, column] = whole[order]
        columns = len(self.blends) + len(self.columns)
        self.moments = Moments(columns, self.seed, self.lanes, self.users)

    def _place(self, fit: Fit) -> tuple[bool, int]:
        """Bases of baselines come last, where their errors are wanted; others by first use."""
        bases, own_basis = [one.system.whole.basis for one in self.fits], fit.system.whole.basis
        used = any(own_basis is one.system.basis for one in self.baselines)
        return used, next(k for k, basis in enumerate(bases) if basis is own_basis)

    def add(self, block: Episodes) -> None:
        """Take in episodes."""
        self._prepare()
        share = self.units / max(self.opened, 1.0)
        influence = np.zeros((block.count, len(self.systems)))
        first = [np.empty(block.count) for _ in self.baselines]
        delta = [np.empty(len(block.rows)) for _ in self.baselines]
        episode = row = 0
        for part in parts_of(self._all(), block):
            episode -= part.within  # it goes on with the last one
            at = slice(episode, episode + part.count)
            rows = slice(row, row + len(part.rows))
            shared: dict[int, FeatureRows] = {}
            for k, system in enumerate(self.systems):
                start, moved = _influence(system, part, shared, self.thetas[k], self.adjoints[k])
                apart = np.where(part.opens, start - self.values[k], 0.0)
                influence[at, k] += share * apart + self.units * moved
            for k, baseline in enumerate(self.baselines):
                start, errors = _errors(baseline, part, shared)
                first[k][at][part.within :] = start[part.within :]
                delta[k][rows] = errors
            episode, row = at.stop, rows.stop
        self._take(block, influence @ self.mixed, Histories(block, *histories(block), first, delta))
        self._take_lone(block, share)

    def _all(self) -> list[AnySystem]:
        return [*self.systems, *(baseline.system for baseline in self.baselines)]

    def _take(self, block: Episodes, blends: Floats, found: Histories) -> None:
        columns = [column.of(found) for column in self.columns]
        number = block.rows.episode[block.first[:-1]]
        self._note(np.column_stack([blends, *columns]), block.key, number)

    def _take_lone(self, block: Episodes, share: float) -> None:
        for lone in lone_parts(self._all(), block):
            pairs = zip(self.systems, self.thetas, strict=True)
            values = [system.start_values(lone, theta) for system, theta in pairs]
            apart = np.stack(values, axis=1) - self.values if values else np.zeros((len(lone), 0))
            fold = folds_of(lone.key, FOLDS)
            first = [own(b.system.start_values(lone, b.weights), fold) for b in self.baselines]
            columns = [column.alone(len(lone), first) for column in self.columns]
            number = np.full(len(lone), -1)
            self._note(np.column_stack([share * apart @ self.mixed, *columns]), lone.key, number)

    def _note(self, values: Floats, key: Keys, number: Ints) -> None:
        assert self.moments is not None  # noqa: S101
        self.moments.add(values, key)
        if self.keep:
            self.kept.append((number, key, values))

    def merge(self, other: Influences) -> None:
        """Add another one's moments."""
        self._prepare()
        if self.moments is not None and other.moments is not None:
            self.moments.merge(other.moments)
        self.kept += other.kept

    # -- what was found ----------------------------------------------------------------------------

    def spread(self, column: int) -> Spread:
        """Moments and lanes of a column."""
        assert self.moments is not None  # noqa: S101
        found = self.moments.spread(self._number(column))
        return replace(found, values=self._values(column)) if self.keep else found

    def found(self, column: int, blend: Blend) -> tuple[Spread, Floats]:
        """Influence of a blend, and its value in each lane: its own, or along the influence."""
        value = float(sum(weight * fit.value for weight, fit in blend))
        influence = self.spread(column)
        own_lanes = blend[0][1].lanes if len(blend) == 1 else None
        return influence, value + influence.lanes if own_lanes is None else own_lanes

    def _values(self, column: int) -> Floats:
        found = np.concatenate([values[:, self._number(column)] for _, _, values in self.kept])
        return np.asarray(found - found.mean())

    def _number(self, column: int) -> int:
        return -column - 1 if column < 0 else len(self.blends) + column


def _influence(
    system: AnySystem,
    block: Episodes,
    shared: dict[int, FeatureRows],
    theta: Floats,
    adjoint: Floats,
) -> tuple[Floats, Floats]:
    if isinstance(system, CellSystem):
        return system.influence(block, theta, adjoint)
    return system.influence(block, shared_rows(shared, system, block), theta, adjoint)


def _errors(
    baseline: Baseline, block: Episodes, shared: dict[int, FeatureRows]
) -> tuple[Floats, Floats]:
    """`V(s_0)` by episode and `delta` by row, by the weights of the episode's own fold."""
    fold = folds_of(block.key, FOLDS)
    mine = np.repeat(fold, np.diff(block.first))
    system, weights = baseline.system, baseline.weights
    if isinstance(system, CellSystem):
        first, delta = system.differences(block, weights)
    else:
        rows = shared_rows(shared, system, block)
        first, delta = rows.first @ weights, rows.temporal_difference(weights)
    return own(first, fold), own(delta, mine)

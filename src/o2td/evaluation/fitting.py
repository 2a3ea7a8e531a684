"""The pass that fits every system of equations that estimators need, together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from o2td.arrays import Floats, Ints
from o2td.evaluation.basis import Actions, FeatureRows
from o2td.evaluation.bootstrap import poisson_counts
from o2td.evaluation.cells import CellSystem
from o2td.evaluation.episodes import Episodes
from o2td.evaluation.survey import by_fold, folds_of
from o2td.evaluation.systems import FOLDS, FeatureSystem, fitting_rows, slices
from o2td.linear_algebra import Solution
from o2td.sources.log_rows import LoneStarts

AnySystem = FeatureSystem | CellSystem
_COUNTED = 1 << 14  # episodes whose bootstrap counts are kept at a time


@dataclass(frozen=True, eq=False)
class Fit:
    """A solved system: the value from the start states, and that of each bootstrap lane if any."""

    system: AnySystem
    solution: Solution
    value: float
    lanes: Floats | None = None

    @property
    def condition(self) -> float:
        """Condition number of the equations."""
        return float(self.solution.condition)

    def model(self) -> tuple[Floats, Any]:
        """The weights as one per feature (of action values: a row per action), and the feature map."""
        theta, basis = self.solution.theta, self.system.basis
        if isinstance(basis, Actions):
            return theta.reshape(basis.n_actions, -1), basis.states.features
        if isinstance(self.system, CellSystem):
            theta = self.system.table(theta, basis.features.n_features_out_)
        return theta, basis.features


Blend = list[tuple[float, Fit]]  # a weighted mean of fits
FEW = 8  # fewer fits than this have no middle half


class Fitting:
    """Systems fitted to a log together; those with the same basis share its features."""

    def __init__(self, lanes: int, seed: int) -> None:
        self.lanes, self.seed = lanes, seed
        self.systems: list[AnySystem] = []
        self._fits: dict[int, Fit] = {}

    def want(self, system: AnySystem) -> AnySystem:
        """Fit this system too; systems with the same basis are kept together."""
        whole = system.whole
        if not self.has(whole):
            alike = [k for k, one in enumerate(self.systems) if one.basis is whole.basis]
            self.systems.insert(alike[-1] + 1 if alike else len(self.systems), whole)
        return system

    def has(self, system: AnySystem) -> bool:
        """Whether this system is to be fitted."""
        return any(system.whole is one for one in self.systems)

    def add(self, block: Episodes) -> None:
        """Take in episodes."""
        wanted = any(system.wanted for system in self.systems)
        for part in parts_of(self.systems, by_fold(block)):
            fold = folds_of(part.key, FOLDS)
            counts = poisson_counts(part.key, self.seed, self.lanes) if wanted else None
            shared: dict[int, FeatureRows] = {}
            for system in self.systems:
                if isinstance(system, CellSystem):
                    system.add(part, fold, counts if system.wanted else None)
                else:
                    rows = shared_rows(shared, system, part)
                    system.add(part, rows, fold, counts if system.wanted else None)
            for lone in lone_parts(self.systems, part):
                fold = folds_of(lone.key, FOLDS)
                counts = poisson_counts(lone.key, self.seed, self.lanes) if wanted else None
                for system in self.systems:
                    system.add_starts(lone, fold, counts if system.wanted else None)

    def merge(self, other: Fitting) -> None:
        """Add another one's sums."""
        for mine, theirs in zip(self.systems, other.systems, strict=True):
            mine.merge(theirs)  # type: ignore[arg-type]  # the same kind, in the same order

    def fit(self, system: AnySystem) -> Fit:
        """Solve a system after the pass."""
        if id(system) not in self._fits:
            solution = system.solve()
            value = float(system.start() @ solution.theta)
            self._fits[id(system)] = Fit(system, solution, value, system.lane_values())
        return self._fits[id(system)]


def parts_of(systems: list[AnySystem], block: Episodes) -> list[Episodes]:
    """Episodes in parts whose features and bootstrap counts fit in memory."""
    dense = [system for system in systems if isinstance(system, FeatureSystem)]
    if not dense:
        return [block] if block.count <= _COUNTED else list(block.parts(_COUNTED))
    if all(system.d for system in dense):
        return slices(block, max(system.d for system in dense))
    probe = next(block.parts(1))  # one row: the first episode may be enormous
    return slices(block, max(system.basis.rows(probe).here.shape[1] for system in dense))


def lone_parts(systems: list[AnySystem], block: Episodes) -> Iterator[LoneStarts]:
    """Starts without rows, in parts whose features fit in memory."""
    if block.lone is None:
        return iter(())
    width = max((system.d for system in systems if isinstance(system, FeatureSystem)), default=1)
    return block.lone.parts(min(_COUNTED, fitting_rows(width)))


def shared_rows(
    shared: dict[int, FeatureRows], system: FeatureSystem, block: Episodes
) -> FeatureRows:
    """The rows of a basis, computed once for all systems that use it."""
    name = id(system.basis)
    if name not in shared:
        shared.clear()  # systems of one basis are adjacent: only one basis is in memory at a time
        shared[name] = system.basis.rows(block)
    return shared[name]


def across(system: AnySystem) -> Floats:
    """Weights fitted without each fold, side by side."""
    members = np.arange(FOLDS)
    return np.column_stack([system.solve(members != k).theta for k in members])


def usable(fits: list[Fit]) -> list[Fit]:
    """Fits with finite values, if any; of fewer than eight, those that agree."""
    return [fits[k] for k in sound(np.array([fit.value for fit in fits]))]


def sound(values: Floats) -> Ints:
    """Places of the finite values, of all if none is; of fewer than eight, those that agree.

    The middle half of eight or more leaves out odd ones by itself.
    """
    finite = np.flatnonzero(np.isfinite(values))
    if not len(finite):
        return np.arange(len(values))
    return finite if len(finite) >= FEW else finite[agreeing(values[finite])]


def agreeing(values: Floats) -> Any:
    """Which members of a panel lie within four robust deviations of its median.

    >>> agreeing(np.array([1.0, 1.1, 0.9, 60.0]))
    array([ True,  True,  True, False])
    """
    middle = np.median(values)
    apart = np.abs(values - middle)
    return apart <= 4.0 * 1.4826 * np.median(apart) + 1e-9 * (1.0 + abs(middle))


def middle(fits: list[Fit]) -> Blend:
    """The middle halves, by value, of the fits with and without traces, and their weights.

    Where the basis is too smooth, fits that bootstrap at every step and fits that hardly do err in
    different directions; a trace multiplies ratios, so fits with a trace count half as much. The
    middle half (whose average is Tukey's midmean) is not moved by a single odd basis.
    """
    groups = [[fit for fit in fits if (fit.system.trace > 0.0) == traced] for traced in (0, 1)]
    halves = [(weight, _half(group)) for weight, group in zip((2.0, 1.0), groups, strict=True)]
    total = sum(weight for weight, half in halves if half)
    return [(weight / total / len(half), fit) for weight, half in halves for fit in half]


def mean_of(blend: Blend) -> float:
    """The value of a weighted mean of fits."""
    return float(sum(weight * fit.value for weight, fit in blend))


def spread_of(fits: list[Fit], blend: Blend) -> float:
    """How far fits differ: the mean distance of the middle ones from their mean.

    With fewer than eight fits it is half their range.
    """
    if len(fits) < FEW:
        return float(np.ptp([fit.value for fit in fits])) / 2.0
    mean = mean_of(blend)
    return float(sum(weight * abs(fit.value - mean) for weight, fit in blend))


def _half(fits: list[Fit]) -> list[Fit]:
    return [fits[k] for k in middle_half(np.array([fit.value for fit in fits]))]


def middle_half(values: Floats) -> Ints:
    """Places of the middle half of some values, in their order.

    >>> middle_half(np.array([5.0, 1.0, 9.0, 4.0]))
    array([3, 0])
    """
    order = np.argsort(values, kind="stable")
    cut = len(order) // 4
    return order[cut : len(order) - cut]

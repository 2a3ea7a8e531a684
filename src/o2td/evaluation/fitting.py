"""Two passes for every system of equations at once: accumulate, then trace each episode's influence.

The influence of episode e on `value = phi_0·theta` is its start state's part,
`phi_0,e·theta - value`, plus `E u·sum_t z_t delta_t` with `u = A^-T phi_0`: what the clustered
sandwich sums squares of, and what skewness is measured by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from o2td.evaluation.basis import Rows
from o2td.evaluation.blocks import Block, Floats, Log
from o2td.evaluation.bootstrap import poisson_counts, weighted_means
from o2td.evaluation.cells import CellSystem
from o2td.evaluation.histories import Episodes
from o2td.evaluation.importance import Corrected
from o2td.evaluation.select import own
from o2td.evaluation.survey import by_fold, folds_of
from o2td.evaluation.systems import FOLDS, System, slices
from o2td.solvers.linear import Solution

AnySystem = System | CellSystem


@dataclass(eq=False)
class Fit:
    """One system solved: value from the start states, influence values, and lanes."""

    system: AnySystem
    solution: Solution
    value: float
    influence: Floats
    lanes: Floats

    @property
    def condition(self) -> float:
        """Condition number of the equations."""
        return float(self.solution.condition)


class Fitting:
    """Systems that are fitted to a log together."""

    def __init__(self, systems: list[AnySystem], lanes: int, seed: int) -> None:
        self.systems, self.lanes, self.seed = systems, lanes, seed

    def add(self, block: Block) -> None:
        """Take in a block: the first pass."""
        wanted = any(system.wanted for system in self.systems)
        for part in _parts(self.systems, by_fold(block)):
            fold = folds_of(part.key, FOLDS)
            counts = poisson_counts(part.key, self.seed, self.lanes) if wanted else None
            shared: dict[int, Rows] = {}
            for system in self.systems:
                if isinstance(system, CellSystem):
                    system.add(part, fold, counts if system.wanted else None)
                else:
                    rows = _shared(shared, system, part)
                    system.add(part, rows, fold, counts if system.wanted else None)

    def fits(self, log: Log, corrected: Corrected, lead: AnySystem) -> list[Fit]:
        """Solve, then trace influence and histories of the lead's errors: the second pass."""
        found: Influences = log.collect(Influences.of(self.systems, lead, corrected))
        return [
            self._fit(system, theta, held, found.opens)
            for system, theta, held in zip(self.systems, found.solutions, found.found, strict=True)
        ]

    def _fit(self, system: AnySystem, solution: Solution, held: Episodes, opens: Episodes) -> Fit:
        begun, count = opens["opens"], len(opens["opens"])
        value = float(system.start() @ solution.theta)
        apart = np.where(begun, held["first"] - value, 0.0) * (count / max(begun.sum(), 1))
        influence = apart + count * held["moved"]
        lanes = system.lane_values()
        if lanes is None and self.lanes:
            lanes = value + weighted_means(influence, opens["key"], self.seed, self.lanes)
        return Fit(system, solution, value, influence, np.zeros(0) if lanes is None else lanes)


@dataclass(eq=False)
class Influences:
    """The second pass over a log, with all that it needs and none of the sums."""

    systems: list[AnySystem]
    solutions: list[Solution]
    adjoints: list[Floats]
    lead: AnySystem
    across: Floats
    corrected: Corrected
    found: list[Episodes]
    opens: Episodes

    @classmethod
    def of(cls, systems: list[AnySystem], lead: AnySystem, corrected: Corrected) -> Influences:
        """Solve every system."""
        light = [system.light() for system in systems]
        return cls(
            light,
            [system.solve() for system in systems],
            [system.adjoint() for system in systems],
            light[systems.index(lead)],
            _across(lead),
            corrected,
            [Episodes() for _ in systems],
            Episodes(),
        )

    def add(self, block: Block) -> None:
        """Take in a block."""
        for part in _parts(self.systems, block):
            self.opens.add(opens=part.opens, key=part.key)
            shared: dict[int, Rows] = {}
            parts = zip(self.systems, self.solutions, self.adjoints, self.found, strict=True)
            for system, solution, adjoint, held in parts:
                first, moved = _influence(system, part, shared, solution.theta, adjoint)
                held.add(first=first, moved=moved)
            self.corrected.add(part, *_corrections(self.lead, part, shared, self.across))


def _parts(systems: list[AnySystem], block: Block) -> list[Block]:
    """A block in parts whose features fit in memory."""
    dense = [system for system in systems if isinstance(system, System)]
    if not dense:
        return [block]
    if all(system.d for system in dense):
        return slices(block, max(system.d for system in dense))
    probe = block.pick(np.arange(block.episodes) == 0)
    return slices(block, max(system.basis.rows(probe).here.shape[1] for system in dense))


def _shared(shared: dict[int, Rows], system: System, block: Block) -> Rows:
    """The rows of a basis, computed once for all systems that use it."""
    name = id(system.basis)
    if name not in shared:
        shared.clear()  # systems of one basis stand together: one basis in memory at a time
        shared[name] = system.basis.rows(block)
    return shared[name]


def _influence(
    system: AnySystem, block: Block, shared: dict[int, Rows], theta: Floats, adjoint: Floats
) -> tuple[Floats, Floats]:
    if isinstance(system, CellSystem):
        return system.influence(block, theta, adjoint)
    return system.influence(block, _shared(shared, system, block), theta, adjoint)


def _across(system: AnySystem) -> Floats:
    """Weights fitted without each fold, side by side."""
    members = np.arange(FOLDS)
    return np.column_stack([system.solve(members != k).theta for k in members])


def _corrections(
    system: AnySystem, block: Block, shared: dict[int, Rows], across: Floats
) -> tuple[Floats, Floats]:
    """`V(s_0)` by episode and `delta` by row, by the weights of the episode's own fold."""
    fold = folds_of(block.key, FOLDS)
    mine = np.repeat(fold, np.diff(block.first))
    if isinstance(system, CellSystem):
        first, delta = system.differences(block, across)
    else:
        rows = _shared(shared, system, block)
        first, delta = rows.first @ across, rows.temporal_difference(across)
    return own(first, fold), own(delta, mine)


def middle(fits: list[Fit]) -> list[tuple[float, Fit]]:
    """The middle halves, by value, of the fits without and with traces, and their weights.

    What bootstraps at every step and what hardly does err in different directions where the basis
    is too smooth; a trace multiplies ratios, so fits with one count half as much. The middle half
    (Tukey's midmean, once averaged) is deaf to a single odd basis.
    """
    groups = [[fit for fit in fits if (fit.system.trace > 0.0) == traced] for traced in (0, 1)]
    halves = [(weight, _half(group)) for weight, group in zip((2.0, 1.0), groups, strict=True)]
    total = sum(weight for weight, half in halves if half)
    return [(weight / total / len(half), fit) for weight, half in halves for fit in half]


def _half(fits: list[Fit]) -> list[Fit]:
    ordered = sorted(fits, key=lambda fit: fit.value)
    cut = len(ordered) // 4
    return ordered[cut : len(ordered) - cut]


def averaged(fits: list[tuple[float, Fit]]) -> tuple[float, Floats, Floats]:
    """Value, influence values and lanes of a weighted mean of several fits."""
    value = float(sum(weight * fit.value for weight, fit in fits))
    influence: Any = sum(weight * fit.influence for weight, fit in fits)
    lanes: Any = sum(weight * fit.lanes for weight, fit in fits)
    return value, influence, lanes

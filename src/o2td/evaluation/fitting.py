"""Two passes for every system of equations at once: accumulate, then trace each episode's influence.

The influence of episode e on `value = phi_0·theta` is its start state's part,
`phi_0,e·theta - value`, plus `E u·sum_t z_t delta_t` with `u = A^-T phi_0`: what the clustered
sandwich sums squares of, and what skewness is measured by. All that it needs is known before the
second pass, so nothing is kept of an episode but its part in the moments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from o2td.evaluation.basis import Rows
from o2td.evaluation.bootstrap import poisson_counts
from o2td.evaluation.cells import CellSystem
from o2td.evaluation.episodes import Episodes, Floats
from o2td.evaluation.importance import Corrected
from o2td.evaluation.moments import Moments, Spread
from o2td.evaluation.select import own
from o2td.evaluation.survey import by_fold, folds_of
from o2td.evaluation.systems import FOLDS, System, fitting_rows, slices
from o2td.solvers.linear import Solution
from o2td.sources.rows import LoneStarts

AnySystem = System | CellSystem
_COUNTED = 1 << 14  # episodes whose counts in the lanes are held at a time


@dataclass(frozen=True, eq=False)
class Fit:
    """One system solved: the value from the start states, and in its own lanes if it has some."""

    system: AnySystem
    solution: Solution
    value: float
    lanes: Floats | None = None

    @property
    def condition(self) -> float:
        """Condition number of the equations."""
        return float(self.solution.condition)


Blend = list[tuple[float, Fit]]  # a weighted mean of fits


class Fitting:
    """Systems that are fitted to a log together."""

    def __init__(self, systems: list[AnySystem], lanes: int, seed: int) -> None:
        self.systems, self.lanes, self.seed = systems, lanes, seed

    def add(self, block: Episodes) -> None:
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
            for lone in _lone_parts(self.systems, part):
                fold = folds_of(lone.key, FOLDS)
                counts = poisson_counts(lone.key, self.seed, self.lanes) if wanted else None
                for system in self.systems:
                    system.add_starts(lone, fold, counts if system.wanted else None)

    def merge(self, other: Fitting) -> None:
        """Add another one's sums."""
        for mine, theirs in zip(self.systems, other.systems, strict=True):
            mine.merge(theirs)  # type: ignore[arg-type]  # the same kind, in the same order

    def fits(self) -> list[Fit]:
        """Solve every system."""
        return [self._fit(system) for system in self.systems]

    def _fit(self, system: AnySystem) -> Fit:
        solution = system.solve()
        value = float(system.start() @ solution.theta)
        return Fit(system, solution, value, system.lane_values())


@dataclass(eq=False)
class Influences:
    """The second pass over a log, with all that it needs and none of the sums."""

    systems: list[AnySystem]
    thetas: list[Floats]
    adjoints: list[Floats]
    values: Floats
    blends: Floats  # (systems, columns)
    lead: AnySystem
    across: Floats
    corrected: Corrected
    moments: Moments

    @classmethod
    def of(
        cls,
        blends: list[Blend],
        lead: AnySystem,
        across: Floats,
        corrected: Corrected,
        seed: int,
        lanes: int,
    ) -> Influences:
        """One column for each weighted mean of fits, then those of the histories."""
        fits = list({id(fit): fit for blend in blends for _, fit in blend}.values())
        # The lead's features come last, where its errors are wanted.
        fits.sort(key=lambda fit: (fit.system.basis is lead.basis, id(fit.system.basis)))
        weights = np.zeros((len(fits), len(blends)))
        for column, blend in enumerate(blends):
            for weight, fit in blend:
                weights[fits.index(fit), column] += weight
        return cls(
            [fit.system.light() for fit in fits],
            [fit.solution.theta for fit in fits],
            [fit.system.adjoint() for fit in fits],
            np.array([fit.value for fit in fits]),
            weights,
            lead.light(),
            across,
            corrected,
            Moments(len(blends) + len(corrected.names), seed, lanes),
        )

    def add(self, block: Episodes) -> None:
        """Take in a block."""
        weighed = self.corrected.weighed
        share = weighed.units / max(weighed.totals.opened, 1.0)
        influence = np.zeros((block.count, len(self.systems)))
        starts, delta = np.empty(block.count), np.empty(len(block.rows))
        episode = row = 0
        for part in _parts([*self.systems, self.lead], block):
            episode -= part.within  # it goes on with the last one
            at = slice(episode, episode + part.count)
            shared: dict[int, Rows] = {}
            for k, system in enumerate(self.systems):
                first, moved = _influence(system, part, shared, self.thetas[k], self.adjoints[k])
                apart = np.where(part.opens, first - self.values[k], 0.0)
                influence[at, k] += share * apart + weighed.units * moved
            first, errors = _corrections(self.lead, part, shared, self.across)
            starts[at][part.within :] = first[part.within :]
            delta[row : row + len(errors)] = errors
            episode, row = at.stop, row + len(errors)
        columns = self.corrected.columns(block, starts, delta)
        self.moments.add(np.column_stack([influence @ self.blends, columns]), block.key)
        for lone in _lone_parts([*self.systems, self.lead], block):
            pairs = zip(self.systems, self.thetas, strict=True)
            values = np.stack([system.start_values(lone, theta) for system, theta in pairs], axis=1)
            first = own(self.lead.start_values(lone, self.across), folds_of(lone.key, FOLDS))
            apart = share * (values - self.values) @ self.blends
            self.moments.add(np.column_stack([apart, self.corrected.lone(first)]), lone.key)

    def merge(self, other: Influences) -> None:
        """Add another one's moments."""
        self.moments.merge(other.moments)

    def spreads(self) -> list[Spread]:
        """What was found in each column."""
        return [self.moments.spread(column) for column in range(len(self.moments.mean))]


def _parts(systems: list[AnySystem], block: Episodes) -> list[Episodes]:
    """A block in parts whose features and counts in the lanes fit in memory."""
    dense = [system for system in systems if isinstance(system, System)]
    if not dense:
        return [block] if block.count <= _COUNTED else list(block.parts(_COUNTED))
    if all(system.d for system in dense):
        return slices(block, max(system.d for system in dense))
    probe = next(block.parts(1))  # one row: the first episode may be enormous
    return slices(block, max(system.basis.rows(probe).here.shape[1] for system in dense))


def _lone_parts(systems: list[AnySystem], block: Episodes) -> Iterator[LoneStarts]:
    """Lone starts of a block, as many at a time as have features that fit in memory."""
    if block.lone is None:
        return iter(())
    width = max((system.d for system in systems if isinstance(system, System)), default=1)
    return block.lone.parts(min(_COUNTED, fitting_rows(width)))


def _shared(shared: dict[int, Rows], system: System, block: Episodes) -> Rows:
    """The rows of a basis, computed once for all systems that use it."""
    name = id(system.basis)
    if name not in shared:
        shared.clear()  # systems of one basis stand together: one basis in memory at a time
        shared[name] = system.basis.rows(block)
    return shared[name]


def _influence(
    system: AnySystem, block: Episodes, shared: dict[int, Rows], theta: Floats, adjoint: Floats
) -> tuple[Floats, Floats]:
    if isinstance(system, CellSystem):
        return system.influence(block, theta, adjoint)
    return system.influence(block, _shared(shared, system, block), theta, adjoint)


def across(system: AnySystem) -> Floats:
    """Weights fitted without each fold, side by side."""
    members = np.arange(FOLDS)
    return np.column_stack([system.solve(members != k).theta for k in members])


def _corrections(
    system: AnySystem, block: Episodes, shared: dict[int, Rows], across: Floats
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


def middle(fits: list[Fit]) -> Blend:
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

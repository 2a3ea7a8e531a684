"""Values from a model of the log's states and actions, over some steps or all.

`V_0 = 0`, `V_{k+1}(s) = sum_a pi(a, s) (r(s, a) + sum_s' gamma p(s', s, a) V_k(s'))` with means
over the rows of a state and action; the infinite horizon is the fixed point. The model does not
depend on time, so all rows of a state serve every step. A row at which a time limit ended the
episode gives its reward, but no successor. Actions never tried in a state are left out of the
target there, and its other actions are rescaled; the test of support says how much that is. Without
the target's probabilities of all actions, rows are weighted by their ratios instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from o2td.arrays import Bools, Floats, Ints
from o2td.evaluation.basis import Cells
from o2td.evaluation.cells import CellSystem
from o2td.evaluation.coverage import unlogged
from o2td.evaluation.episodes import Episodes, Log
from o2td.evaluation.steps_ahead import crossed, values_ahead, visits_ahead
from o2td.evaluation.systems import FOLDS, own_fit
from o2td.linear_algebra import Solution, conclude
from o2td.sources.log_rows import LoneStarts

_TINY = 1e-12
_DENSE = 1 << 24  # up to this many numbers the lanes' matrices are solved
_NEARLY = 1.0 - 1e-9


def steps_of(block: Episodes) -> Ints:
    """The number of each row within its episode, from 0."""
    return np.arange(len(block.rows)) - np.repeat(block.first[:-1], np.diff(block.first))


class HorizonLog(Log):
    """A log in which an episode ends after its first `steps` rows."""

    def __init__(self, log: Log, steps: int) -> None:
        super().__init__(log.source)
        self.log, self.steps = log, steps

    def blocks(self) -> Iterator[Episodes]:
        """Blocks of shortened episodes."""
        for block in self.log.blocks():
            yield ended(block, self.steps)
        self.passes = self.log.passes


def ended(block: Episodes, steps: int) -> Episodes:
    """The first `steps` rows of each episode, the last of which terminates."""
    short = block.shortened(steps)
    last = steps_of(short) == steps - 1
    rows = short.rows
    rows = replace(
        rows,
        terminated=rows.terminated | last,
        truncated=rows.truncated & ~last,
        discount=np.where(last, 0.0, rows.discount),
    )
    return replace(short, rows=rows)


class ModelSystem(CellSystem):
    """Sums by cell and action, and by cell, action and next cell; folds first, then lanes."""

    def __init__(
        self, basis: Cells, actions: int, steps: int | None, gamma: float, lanes: int = 0
    ) -> None:
        super().__init__(basis, lanes)
        self.actions, self.steps, self.gamma = actions, steps, gamma
        width = FOLDS + lanes
        # For each cell and action: sums of weights, of rewards, of weights with a known successor.
        self.own = np.zeros((0, 3, actions, width))
        self.squares = np.zeros((0, actions))  # sums of squared weights
        self.opening = np.zeros((0, width))
        self.policy = np.zeros((0, actions))
        self.pair = np.zeros((0, 3), dtype=np.int64)  # cell, action, next cell
        self.flow = np.zeros((0, width))

    @property
    def label(self) -> str:
        """Basis and horizon in words."""
        return self.basis.name if self.steps is None else f"{self.basis.name}, {self.steps} steps"

    @property
    def starts(self) -> Floats:
        """Number of starts in each cell, by fold."""
        return np.asarray(self.opening[:, :FOLDS].T)

    # -- accumulating ------------------------------------------------------------------------------

    def _coded(self, block: Episodes) -> tuple[Ints, Ints, Ints, Floats, Bools]:
        """Cell, action, next cell (-1 at an end), weight, and whether the successor is known."""
        rows = block.rows
        cut = np.zeros(len(rows), dtype=np.bool_)
        if self.steps is not None:
            cut = rows.terminated & (steps_of(block) == self.steps - 1)
        known = ~cut
        if cut.any() and rows.next_state is not None:
            known = ~cut | (rows.next_state >= 0)
            rows = replace(rows, terminated=rows.terminated & ~cut)
            block = replace(block, rows=rows)
        here, ahead = self.basis.index(block)
        if self.actions == 1:
            return here, np.zeros(len(here), dtype=np.int64), ahead, rows.rho, known
        taken = np.asarray(rows.action, dtype=np.int64)
        return here, taken, ahead, np.ones(len(here)), known

    def _gammas(self, block: Episodes, ahead: Ints) -> Floats:
        """Discount of each row, including rows that a time limit ended."""
        discount = block.rows.discount
        return np.where((discount == 0.0) & (ahead >= 0), self.gamma, discount)

    def add(self, block: Episodes, fold: Any, counts: Floats | None) -> None:
        """Take in a block; `fold` and `counts` belong to its episodes."""
        here, taken, ahead, weight, known = self._coded(block)
        self._grow(np.unique(np.concatenate([here, ahead[ahead >= 0]])))
        at, unit = self._place(here), block.unit()
        weights = self._shares(fold, counts, block.count)
        each = weights[unit]
        for k, value in enumerate((weight, weight * block.rows.reward, weight * known)):
            np.add.at(self.own[:, k], (at, taken), value[:, None] * each)
        with np.errstate(over="ignore"):
            np.add.at(self.squares, (at, taken), np.square(weight))
        begin = block.first[:-1][block.opens]
        np.add.at(self.opening, at[begin], each[begin])
        self._learn_policy(block, at)
        live = (ahead >= 0) & known & (weight > 0.0)
        to = self._place(ahead[live])
        code, where = np.unique(
            np.column_stack([at[live], taken[live], to]), axis=0, return_inverse=True
        )
        flow = np.zeros((len(code), each.shape[1]))
        np.add.at(
            flow,
            where.ravel(),
            (weight * self._gammas(block, ahead))[live][:, None] * each[live],
        )
        found = np.column_stack([self.cell[code[:, 0]], code[:, 1], self.cell[code[:, 2]]])
        self._add_flow(found, flow)

    def _learn_policy(self, block: Episodes, at: Ints) -> None:
        probs = block.rows.target_probs
        if self.actions == 1 or probs is None:
            self.policy[:] = 1.0
        else:
            self.policy[at] = probs[:, : self.actions]

    def _shares(self, fold: Any, counts: Floats | None, episodes: int) -> Floats:
        member = np.zeros((episodes, FOLDS + self.wanted))
        member[np.arange(episodes), fold] = 1.0
        if counts is not None:
            member[:, FOLDS:] = counts
        return member

    def add_starts(self, lone: LoneStarts, fold: Any, counts: Floats | None) -> None:
        """Add starts of episodes without rows."""
        cell = self.basis.features.state_of(lone.input)
        self._grow(np.unique(cell))
        np.add.at(self.opening, self._place(cell), self._shares(fold, counts, len(lone)))

    def _grow(self, seen: Ints) -> None:
        cell = np.union1d(self.cell, seen)
        if len(cell) == len(self.cell):
            return
        where = np.searchsorted(cell, self.cell)
        for name in ("own", "squares", "opening", "policy"):
            held = getattr(self, name)
            grown = np.zeros((len(cell), *held.shape[1:]))
            grown[where] = held
            setattr(self, name, grown)
        self.cell = cell

    def merge(self, other: CellSystem) -> None:
        """Add another one's sums."""
        assert isinstance(other, ModelSystem)  # noqa: S101
        self._grow(other.cell)
        at = self._place(other.cell)
        self.own[at] += other.own
        self.squares[at] += other.squares
        self.opening[at] += other.opening
        seen = other.policy.any(axis=1)
        self.policy[at[seen]] = other.policy[seen]
        self._add_flow(other.pair, other.flow)

    def _add_flow(self, triple: Ints, flow: Floats) -> None:
        joined, where = np.unique(np.concatenate([self.pair, triple]), axis=0, return_inverse=True)
        total, where = np.zeros((len(joined), flow.shape[1])), where.ravel()
        total[where[: len(self.pair)]] = self.flow
        total[where[len(self.pair) :]] += flow
        self.pair, self.flow = joined, total

    def light(self) -> ModelSystem:
        """The same without sums, for computing with rows."""
        made = ModelSystem(self.basis, self.actions, self.steps, self.gamma)
        made.cell = self.cell
        return made

    # -- the model ---------------------------------------------------------------------------------

    def _model(self, columns: Any) -> tuple[Floats, Floats, Floats]:
        """Policy over tried actions, mean rewards, and the flow of each triple."""
        own = self.own[..., columns].sum(axis=-1)
        tried = own[:, 0] > _TINY
        policy = np.where(tried, self.policy, 0.0)
        total = policy.sum(axis=1, keepdims=True)
        policy = np.divide(policy, total, out=np.zeros_like(policy), where=total > 0.0)
        reward = own[:, 1] / np.maximum(own[:, 0], _TINY)
        flow = self.flow[:, columns].sum(axis=1)
        at, taken, _ = self._triples()
        return policy, reward, flow / np.maximum(own[at, 2, taken], _TINY)

    def _triples(self) -> tuple[Ints, Ints, Ints]:
        return self._place(self.pair[:, 0]), self.pair[:, 1], self._place(self.pair[:, 2])

    def _chain(self, policy: Floats, flow: Floats) -> Floats:
        """The target's discounted transitions."""
        at, taken, to = self._triples()
        chain = np.zeros((self.d, self.d))
        np.add.at(chain, (at, to), policy[at, taken] * flow)
        return chain

    def _values(self, gain: Floats, chain: Floats) -> Floats:
        """`V` over the steps, or over an infinite horizon."""
        if self.steps is None:
            return np.asarray(np.linalg.solve(np.eye(self.d) - _NEARLY * chain, gain))
        return values_ahead(chain, gain, self.steps)

    def start(self, folds: Bools | None = None) -> Floats:
        """Share of starts in each cell."""
        opened = self.opening[:, _columns(folds)].sum(axis=1)
        return np.asarray(opened / max(opened.sum(), 1.0))

    def solve(self, folds: Bools | None = None) -> Solution:
        """Values of the cells that occurred, with all steps ahead."""
        policy, reward, flow = self._model(_columns(folds))
        theta = self._values((policy * reward).sum(axis=1), self._chain(policy, flow))
        return conclude(theta, "ok", self.d, 1.0, 0.0)

    def endless(self) -> float:
        """The same model's value over an infinite horizon."""
        policy, reward, flow = self._model(_columns(None))
        gain, chain = (policy * reward).sum(axis=1), self._chain(policy, flow)
        if self.gamma >= 1.0 and np.abs(chain.sum(axis=1)).min() > 1.0 - 1e-6:
            return float("inf")
        return float(self.start() @ np.linalg.solve(np.eye(self.d) - _NEARLY * chain, gain))

    def lane_values(self) -> Floats | None:
        """The value in each lane; None if they are too large, so that the influence is used."""
        if not self.wanted or self.wanted * self.d * self.d > _DENSE:
            return None
        values = np.empty(self.wanted)
        for lane in range(self.wanted):
            policy, reward, flow = self._model([FOLDS + lane])
            found = self._values((policy * reward).sum(axis=1), self._chain(policy, flow))
            opened = self.opening[:, FOLDS + lane]
            values[lane] = opened @ found / max(opened.sum(), 1.0)
        return values

    def unlogged(self, ahead: float) -> float:
        """Share of the target's visits in or beyond cells that no usable row starts from."""
        policy, _, flow = self._model(_columns(None))
        visits = self._visits(self._chain(policy, flow))
        far = ahead if self.steps is None else min(ahead, float(self.steps))
        return unlogged(visits, policy.any(axis=1), far)

    def untried(self, ahead: float) -> float:
        """Share of the target's visits to actions that no row has tried."""
        policy, _, flow = self._model(_columns(None))
        visits = self._visits(self._chain(policy, flow))
        missed = visits * np.where(policy > 0.0, 0.0, self.policy).sum(axis=1)
        known = np.repeat([True, False], self.d)
        return unlogged(np.concatenate([visits - missed, missed]), known, ahead)

    def _visits(self, chain: Floats) -> Floats:
        """The target's discounted visits, in total."""
        if self.steps is None:
            return np.asarray(np.linalg.solve(np.eye(self.d) - _NEARLY * chain.T, self.start()))
        return visits_ahead(chain, self.start(), self.steps)

    # -- influence ---------------------------------------------------------------------------------

    def adjoint(self) -> Floats:
        """Derivatives of the value in a row: `[u / n, r, d / m, pi / m, G]`, most per action.

        With visits `u_k(s)` after k steps, `G(s, s') = sum_k u_k(s) V_{T-k-1}(s')` and
        `d(s, a) = pi sum_s' p G`, a row `(s, a, r, s')` moves it by
        `pi u / n (r - mean r) + (pi gamma G(s, s') - d) / m`, m counting rows with known successors.
        It is enlarged by what fitting takes from residuals (`own_fit`).
        """
        policy, reward, flow = self._model(_columns(None))
        chain = self._chain(policy, flow)
        gain, visits = (policy * reward).sum(axis=1), self._visits(chain)
        if self.steps is None:
            cross = np.outer(visits, self._values(gain, chain))
        else:
            cross = crossed(chain, gain, self.start(), self.steps)
        at, taken, to = self._triples()
        mean = np.zeros((self.d, self.actions))
        np.add.at(mean, (at, taken), flow * cross[at, to])
        own = self.own[..., :FOLDS].sum(axis=-1)
        fitted = own_fit(own[:, 0], self.squares)
        each, known = (fitted / np.maximum(own[:, k], _TINY) for k in (0, 2))
        reach = policy * visits[:, None] * each
        return np.column_stack([reach, reward, policy * mean * known, policy * known, cross])

    def influence(self, block: Episodes, theta: Floats, adjoint: Floats) -> tuple[Floats, Floats]:
        """`V(s_0)` of each episode, and the influence of its rows."""
        here, taken, ahead, weight, known = self._coded(block)
        at, to = self._place(here), self._place(np.maximum(ahead, self.cell[0]))
        a = self.actions
        moved = adjoint[at, taken] * (block.rows.reward - adjoint[at, a + taken])
        onward = np.where(ahead >= 0, self._gammas(block, ahead) * adjoint[at, 4 * a + to], 0.0)
        flow = adjoint[at, 3 * a + taken] * onward - adjoint[at, 2 * a + taken]
        moved += np.where(known, flow, 0.0)
        return np.asarray(theta[at[block.first[:-1]]]), block.sums(weight * moved)


def _columns(folds: Bools | None) -> Ints:
    return np.flatnonzero(np.ones(FOLDS) if folds is None else folds)

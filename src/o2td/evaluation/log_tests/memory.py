"""Is the state Markov? Dependence on what came before, given state and action.

States that recur: next state, reward and end are tested against the previous action, state and
rewards and the step, within strata of state and action (`score`); against their means by the
previous state and action in other episodes; and the next state against what usually follows the
previous row, which shows rows out of order. Continuous observations: does the
previous row improve a regression of the change and the reward on observation and action, on
held-out episodes? The regression's own error must not count, so the gain has to be large.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from o2td.arrays import Bools, Floats, Ints
from o2td.evaluation.log_test import BIASED, Finding, LogTest
from o2td.evaluation.log_tests.clock import clock_step
from o2td.evaluation.log_tests.score import NOTHING, Strongest, foretold, rising, strongest
from o2td.evaluation.log_tests.seen import Seen, marks, seen, stratum_of
from o2td.evaluation.statistic import Passes
from o2td.evaluation.thresholds import CAUTION, TRUST

if TYPE_CHECKING:
    from o2td.evaluation.study import Study

_GAIN = 0.15  # share of the squared error that state and action leave
_ROWS = 50  # with a row before them
_STATES = 500  # most states for the comparison with the previous row
_RARE = 1e-3  # share of rows: rarer next states get no more weight than this
_ROUNDING = 1e-9
_MATCHED = 20_000  # rows matched with their nearest ones
_LEFT = 0.02  # of the variance: below this, the rest is the regression's own error
_REMEDY = (
    "add the relevant past to the state (the previous observation and action), or rely on weighted"
    " histories"
)


class Memory(LogTest):
    """Dependence on the past, given state and action."""

    name = "memory"
    title = "Given state and action, does what came before matter?"

    def collect(self, study: Study) -> Passes:
        """The sample is enough."""
        return iter(())

    def find(self, study: Study) -> Finding | None:
        """What was found."""
        view = seen(study)
        if int(view.follows.sum()) < _ROWS:
            return None
        return self._states(view) if view.exact else self._observations(view)

    def _states(self, view: Seen) -> Finding:
        found, causes, effects = own_dependence(view)
        if not found.alarming:
            return Finding(self.name, found.chance, TRUST, "the past adds nothing to the state")
        return Finding(
            self.name,
            found.chance,
            CAUTION,
            f"given state and action, {effects[found.y]} depends on {causes[found.x]}"
            f" ({abs(found.z):.1f} standard errors): the state does not determine what follows",
            _REMEDY,
            kinds=(),
            biased=BIASED,
        )

    def _observations(self, view: Seen) -> Finding:
        gain = _gain(view)
        if not gains_from_past(view):
            return Finding(self.name, gain, TRUST, "the past adds little to the observation")
        return Finding(
            self.name,
            gain,
            CAUTION,
            f"the previous row removes {gain:.0%} of the error in predicting what follows from"
            " observation and action: the observation is not the whole state",
            _REMEDY,
            kinds=(),
            biased=BIASED,
        )


def gains_from_past(view: Seen, paid: bool = True) -> bool:
    """Whether the previous row improves predictions from observations.

    Its reward is included if `paid`: that also helps a regression if rewards jump.
    """
    return not view.exact and int(view.follows.sum()) >= _ROWS and _gain(view, paid) >= _GAIN


def dependence(view: Seen, stratum: Ints) -> tuple[Strongest, list[str], list[str]]:
    """The strongest dependence on the past within strata, and names of causes and effects.

    If a clock ends episodes only rewards count: ends are for another test.
    """
    x, causes, y, effects = _columns(view)
    here, (steps, _) = np.flatnonzero(view.follows), clock_step(view)
    inner = slice(None) if steps is None else view.step[here] < steps - 1
    causes += ["the previous state and action", "what usually follows the row before"]
    paid, moved = _foretold(view, here[inner], stratum, y[inner], len(causes) - 2)
    tried = [
        strongest(x[inner], y[inner], stratum[here[inner]]),
        moved,
        _follows_before(view, here[inner], stratum, len(causes) - 1),
    ]
    if steps is not None:
        paid, _ = _foretold(view, here, stratum, y[:, :1], len(causes) - 2)
        tried.append(strongest(x, y[:, :1], stratum[here]))
    tried.append(paid)
    found = min(tried, key=lambda one: one.chance)
    return replace(found, chance=min(1.0, len(tried) * found.chance)), causes, effects


def out_of_order(view: Seen) -> Strongest:
    """Whether rows that follow each other seem to be out of order.

    Then next states resemble what usually follows the row before. Rewards stay with their rows: if
    they depend on the row before, the state is incomplete instead.
    """
    x, _, y, _ = _columns(view)
    here = np.flatnonzero(view.follows)
    found = _follows_before(view, here, view.pair, 0)
    if not found.alarming:
        return found
    paid = y[:, :1]
    if strongest(x, paid, view.pair[here]).alarming:
        return NOTHING
    return NOTHING if _foretold(view, here, view.pair, paid, 0)[0].alarming else found


def _foretold(
    view: Seen, here: Ints, stratum: Ints, y: Floats, place: int
) -> tuple[Strongest, Strongest]:
    """Whether the row before predicts rewards, the first column, and next states, the others.

    It should predict these rows as it does in the other half of the episodes.
    """
    fit = view.unit[here] % 2 == 0
    if min(fit.sum(), (~fit).sum()) < _ROWS:
        return NOTHING, NOTHING
    each = foretold(y, view.pair[here - 1], stratum[here], fit)
    return rising(each[:, 0], place, 0), rising(each[:, 1:].sum(axis=1), place, 1)


def _follows_before(view: Seen, here: Ints, stratum: Ints, place: int) -> Strongest:
    """Whether the next state resembles what usually follows the row before.

    `sum_j x~_j y~_j / p_j` over next states j is summed over rows: `x_j` is how often j follows the
    row before's state and action in the other half of the episodes, `y_j` whether it comes now.
    """
    if len(here) < _ROWS:
        return NOTHING
    ahead = np.where(view.rows.terminated, view.states, view.ahead)
    size, held = view.states + 1, view.unit % 2 == 1
    if size > _STATES:
        return NOTHING
    chance = np.empty((2, int(view.pair.max()) + 1, size))
    for half, other in enumerate((~held, held)):
        count = np.zeros(chance.shape[1:])
        np.add.at(count, (view.pair[~other], ahead[~other]), 1.0)
        share = count.sum(axis=0) / max(count.sum(), 1.0)
        chance[half] = (count + share) / (count.sum(axis=1, keepdims=True) + 1.0)
    before = view.pair[here - 1] + chance.shape[1] * held[here]
    each = _sums_of_products(chance.reshape(-1, size), before, ahead[here], stratum[here])
    return rising(each, place, 1)


def _sums_of_products(usual: Floats, before: Ints, comes: Ints, stratum: Ints) -> Floats:
    """`sum_j x~_j y~_j / p_j` of each row, multiplied out, so that no row needs a vector."""
    from scipy.sparse import csr_array

    group, size = stratum_of(stratum), usual.shape[1]
    count, place = np.bincount(group)[:, None], stratum_of(before, group)
    one = np.zeros(int(place.max()) + 1, dtype=np.int64)
    one[place] = np.arange(len(place))  # a row of each group with each row before
    shape = (len(count), len(usual))
    met = csr_array((np.bincount(place).astype(np.float64), (group[one], before[one])), shape)
    came = np.bincount(group * size + comes, minlength=len(count) * size).reshape(-1, size)
    mean_x, mean_y = np.asarray(met @ usual) / count, came / count
    weight = 1.0 / np.maximum(np.bincount(comes, minlength=size) / len(group), _RARE)
    from_before, of_group = usual * weight, np.einsum("gj,gj,j->g", mean_x, mean_y, weight)
    crossed = np.einsum("uj,uj->u", from_before[before[one]], mean_y[group[one]])
    own = weight[comes] * (usual[before, comes] - mean_x[group, comes])
    each = own - crossed[place] + of_group[group]
    each[np.abs(each) <= _ROUNDING * weight.max()] = 0.0  # what the state determines
    return np.asarray(each)


def own_dependence(view: Seen) -> tuple[Strongest, list[str], list[str]]:
    """The dependence within states and actions, computed once."""
    if "memory" not in view.kept:
        view.kept["memory"] = dependence(view, view.pair)
    found: tuple[Strongest, list[str], list[str]] = view.kept["memory"]
    return found


def _columns(view: Seen) -> tuple[Floats, list[str], Floats, list[str]]:
    """Previous and following values, with names, of rows that have a previous row."""
    rows, here = view.rows, np.flatnonzero(view.follows)
    before = here - 1
    total = np.cumsum(view.surprise)
    begun = np.repeat(total[view.first[:-1]] - view.surprise[view.first[:-1]], view.length)
    past = (total[before] - begun[before]) / np.sqrt(view.step[here])
    columns = [view.reward[before], view.surprise[before], past, view.step[here]]
    causes = ["the previous reward"] * 2 + ["earlier rewards", "the step"]
    if view.action is not None:
        chosen, _ = marks(view.action[before], 6)
        columns.append(chosen)
        causes += ["the previous action"] * chosen.shape[1]
    chosen, _ = marks(view.state[before], 8)
    columns.append(chosen)
    causes += ["the previous state"] * chosen.shape[1]
    ends = rows.terminated[here]
    next_state, _ = marks(np.where(ends, view.states, view.ahead[here]), 8)
    y = np.column_stack([view.reward[here], next_state])
    effects = ["the reward", *["the next state"] * next_state.shape[1]]
    return np.column_stack(columns), causes, y, effects


def _gain(view: Seen, paid: bool = True) -> float:
    """Share of the squared error on held-out episodes that the previous row removes."""
    name = f"gain {paid}"
    if name not in view.kept:
        view.kept[name] = _taken_away(view, paid)
    return float(view.kept[name])


def _taken_away(view: Seen, paid: bool) -> float:
    rows, here = view.rows, np.flatnonzero(view.follows & ~view.rows.terminated)
    if len(here) < 200:
        return 0.0
    inputs = np.asarray(rows.input, dtype=np.float64).reshape(len(rows), -1)
    change = np.asarray(rows.next_input, dtype=np.float64).reshape(len(rows), -1) - inputs
    y = np.column_stack([change, view.reward])[here]
    spread = y.std(axis=0)
    y = (y - y.mean(axis=0))[:, spread > 1e-9] / spread[spread > 1e-9]
    now = view._basis[here] * np.sqrt(len(rows))
    past = inputs[here] - inputs[here - 1]
    past = past - past.mean(axis=0)
    apart = past.std(axis=0)
    past = np.divide(past, apart, out=np.zeros_like(past), where=apart > 0.0)
    reward = view.reward[here - 1]
    more = np.column_stack([past, past**2])
    if paid:
        more = np.column_stack([more, reward - reward.mean()])
    action = np.zeros(len(rows), dtype=np.int64) if view.action is None else view.action
    before = np.eye(int(action.max()) + 1)[action[here - 1]]
    by_action = (more[:, :, None] * before[:, None, :]).reshape(len(here), -1)
    if view.action is not None:
        more = np.column_stack([more, before])
    held = view.unit[here] % 2 == 1
    left = _held_out(now, y, held)
    fewer = _held_out(np.column_stack([now, more]), y, held)
    large = left > _LEFT
    gain = float(np.max(1.0 - fewer[large] / left[large], initial=0.0))
    if gain < _GAIN:
        return gain
    more = np.column_stack([before, by_action])
    return min(gain, _gain_of_neighbours(inputs[here], action[here], more, y[:, large], held))


def _gain_of_neighbours(x: Floats, action: Ints, past: Floats, y: Floats, held: Bools) -> float:
    """The same from differences between rows and the nearest ones, for each action by itself.

    A bend in the dynamics, such as a full battery, is not memory, although the past helps a smooth
    regression to predict it; rows at almost the same place need no such help.
    """
    from scipy.spatial import cKDTree

    keep = np.linspace(0, len(x) - 1, min(len(x), _MATCHED)).astype(np.int64)
    x, action, past, y, held = x[keep], action[keep], past[keep], y[keep], held[keep]
    scale = x.std(axis=0)
    z = np.divide(x, scale, out=np.zeros_like(x), where=scale > 0.0)
    left, fewer = np.zeros((2, y.shape[1]))
    for one in np.unique(action):
        sides = []
        for half in (held, ~held):
            own = np.flatnonzero(half & (action == one))
            if len(own) > 4 * past.shape[1]:
                nearest = np.asarray(cKDTree(z[own]).query(z[own], k=2)[1])[:, 1]
                sides.append((own, own[nearest]))
        if len(sides) < 2:
            continue
        here, there = (np.concatenate(side) for side in zip(*sides, strict=True))
        apart, judged = y[here] - y[there], held[here]
        near = np.column_stack([z[here] - z[there], np.ones(len(here))])
        known = np.column_stack([near, past[here] - past[there]])
        left += judged.sum() * _held_out(near, apart, judged)
        fewer += judged.sum() * _held_out(known, apart, judged)
    return float(np.max(1.0 - fewer / np.maximum(left, 1e-300), initial=0.0, where=left > 0.0))


def _held_out(x: Floats, y: Floats, held: Bools) -> Floats:
    """Mean squared error of each column on the held-out rows."""
    fit, judge = ~held, held
    gram = x[fit].T @ x[fit]
    gram[np.diag_indices(len(gram))] += 1e-6 * np.trace(gram) / len(gram)
    weights = np.linalg.solve(gram, x[fit].T @ y[fit])
    return np.asarray(((y[judge] - x[judge] @ weights) ** 2).mean(axis=0))

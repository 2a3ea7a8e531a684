"""Whether the logged probabilities are those of the actions taken.

By state: how often each action was taken, against its logged probability. Where this probability
varies (the policy saw more than the state, or changed): whether the action was taken more often than
it allows. Where it does not vary: whether the probabilities of the state's actions sum to 1, which
rounded ones often do not. By observation: if `b` is right, `1{a = k} / b` averages 1 for every action
k, whatever else is known about the row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from o2td.evaluation.log_test import Finding, LogTest
from o2td.evaluation.log_tests.score import ALARM, chi_square_chance, excess_chance, two_sided
from o2td.evaluation.log_tests.seen import Seen, seen
from o2td.evaluation.statistic import Passes
from o2td.evaluation.thresholds import CAUTION, TRUST

if TYPE_CHECKING:
    from o2td.evaluation.study import Study

_EXPECTED = 5.0  # with fewer rows of an action a state is not judged by it
_VARIES = 0.01  # share of the variance within states that may stay given the action
_OFF = 0.03  # from 1: smaller errors of a sum hardly matter
_ROWS = 0.05  # share of rows in states whose sums are off
_REMEDY = (
    "drop the column so that the behaviour is estimated, or log the policy's own probabilities"
)


class Propensities(LogTest):
    """Calibration of the behaviour's logged probabilities."""

    name = "propensities"
    title = "Are the logged probabilities those of the actions that were taken?"

    def collect(self, study: Study) -> Passes:
        """The sample is enough."""
        return iter(())

    def find(self, study: Study) -> Finding | None:
        """What was found."""
        view = seen(study)
        taken = view.rows.behavior_prob
        if taken is None or view.action is None or study.source.behavior_model is not None:
            return None
        off = _off(view) if view.exact else 0.0
        if off > _ROWS:
            said = f"in {off:.0%} of the rows the logged probabilities of the state's actions do not sum"
            return Finding(self.name, off, CAUTION, f"{said} to 1, as if rounded", _REMEDY)
        chance = _by_state(view) if view.exact else _by_observation(view)
        if chance >= ALARM:
            return Finding(self.name, chance, TRUST, "actions were taken as often as logged")
        return Finding(
            self.name,
            chance,
            CAUTION,
            f"actions were not taken as often as the logged probabilities say (p = {chance:.1g})",
            _REMEDY,
        )


def _off(view: Seen) -> float:
    """Share of rows in states whose actions' probabilities do not sum to 1.

    If not every action was tried there, or if it is not known how many there are, only sums above 1
    are wrong.
    """
    taken, probs = view.rows.behavior_prob, view.rows.target_probs
    assert taken is not None  # noqa: S101
    if view.varies(taken) > _VARIES:
        return 0.0
    state = np.zeros(int(view.pair.max()) + 1, dtype=np.int64)
    state[view.pair] = view.state
    mean = np.bincount(view.pair, taken) / np.bincount(view.pair)
    total, tried = np.bincount(state, mean), np.bincount(state)
    off = total > 1.0 + _OFF
    if probs is not None:
        off |= (tried == probs.shape[1]) & (total < 1.0 - _OFF)
    return float(off[view.state].mean())


def _by_state(view: Seen) -> float:
    taken = view.rows.behavior_prob
    assert taken is not None and view.action is not None  # noqa: S101, PT018
    if view.varies(taken) > _VARIES:
        return excess_chance(taken, view.state, view.pair)
    there = np.bincount(view.state)
    count = np.bincount(view.pair)
    mean = np.bincount(view.pair, taken) / count
    state = np.zeros(len(count), dtype=np.int64)
    state[view.pair] = view.state
    visits = there[state].astype(np.float64)
    expected = visits * mean
    spread = expected * (1.0 - mean)
    fine = (expected >= _EXPECTED) & (visits - expected >= _EXPECTED) & (mean < 1.0)
    if not fine.any():
        return 1.0
    z = (count[fine] - expected[fine]) / np.sqrt(spread[fine])
    # All but one action of a state are free: each square is weighted by 1 - b.
    value = float((z**2 * (1.0 - mean[fine])).sum())
    freedom = float((1.0 - mean[fine]).sum())
    worst = min(1.0, len(z) * two_sided(float(np.abs(z).max())))
    return min(1.0, 2.0 * min(chi_square_chance(value, freedom), worst))


def _by_observation(view: Seen) -> float:
    taken = view.rows.behavior_prob
    assert taken is not None and view.action is not None  # noqa: S101, PT018
    x = np.asarray(view.rows.input, dtype=np.float64).reshape(len(view.rows), -1)
    spread = x.std(axis=0)
    x = (x - x.mean(axis=0))[:, spread > 0.0] / spread[spread > 0.0]
    phi = np.column_stack([np.ones(len(x)), np.clip(x, -3.0, 3.0)])
    actions = np.unique(view.action)
    worst = 0.0
    for action in actions:
        apart = (view.action == action) / np.maximum(taken, 1e-12) - 1.0
        each = phi * apart[:, None]
        total, size = np.abs(each.sum(axis=0)), np.sqrt((each**2).sum(axis=0))
        worst = max(worst, float(np.divide(total, size, out=total, where=size > 0.0).max()))
    return float(min(1.0, len(actions) * phi.shape[1] * two_sided(worst)))

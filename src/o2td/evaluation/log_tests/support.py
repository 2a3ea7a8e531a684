"""Does the log cover what the target would do? Untried actions, weighted by the target's visits.

The target is followed through the transitions of the log, state by state. If it takes an action
that was never tried there, nothing is known about what follows: the figure is the share of its
visits there and afterwards. An action that the target itself might not have tried in so few rows
counts less, by that probability, and what the target's own log of this size would miss on average is
subtracted. Without the target's probabilities of all actions, the probability of tried actions is the
mean ratio in that state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from o2td.arrays import Floats
from o2td.evaluation.coverage import NEARLY
from o2td.evaluation.log_test import Finding, LogTest
from o2td.evaluation.log_tests.seen import Seen, seen
from o2td.evaluation.statistic import Passes
from o2td.evaluation.thresholds import CANNOT, CAUTION, TRUST

if TYPE_CHECKING:
    from o2td.evaluation.study import Study

_MOST = 3000  # states for which visits are computed
_SURE = 3.0  # standard errors by which ratios must average less than 1


class Support(LogTest):
    """Share of the target's visits that lead to untried actions."""

    name = "support"
    title = "Were the target's actions tried in the states where it takes them?"

    def collect(self, study: Study) -> Passes:
        """The sample is enough."""
        return iter(())

    def find(self, study: Study) -> Finding | None:
        """What was found."""
        view = seen(study)
        if not view.exact or view.states > _MOST:
            return None
        known = _known(view)
        if known is None:
            return None
        share = _lost(view, known, study.survey.ahead())
        bounds = study.settings.thresholds
        if share <= 1.0 - bounds.support_caution:
            return Finding(self.name, share, TRUST, "the target's actions were tried where it goes")
        return Finding(
            self.name,
            share,
            CANNOT if share > 1.0 - bounds.support_none else CAUTION,
            f"{share:.0%} of the target's visits follow actions that were never tried in their state",
            "log these actions in these states, or evaluate a policy closer to the logged one",
        )


def _known(view: Seen) -> Floats | None:
    """The target's probability, by state, of actions that were tried there.

    It may exceed 1: what a log of the target's own is expected to miss is added.
    """
    rows, size = view.rows, view.states
    count = np.bincount(view.state, minlength=size)
    if rows.target_probs is not None and view.action is not None:
        probs = rows.target_probs
        tried = np.zeros((size, probs.shape[1]), dtype=np.bool_)
        action = np.asarray(rows.action)
        if action.max() >= probs.shape[1]:
            return None
        tried[view.state, action] = True
        # What the same number of the target's own rows would have missed is chance, not a gap.
        missed = (1.0 - np.clip(probs, 0.0, 1.0)) ** count[view.state][:, None]
        inside = probs * (np.where(tried[view.state], 1.0, missed) + missed * (1.0 - missed))
        inside = inside.sum(axis=1)
        return np.asarray(np.bincount(view.state, inside, minlength=size) / np.maximum(count, 1))
    mean = np.bincount(view.state, rows.rho, minlength=size) / np.maximum(count, 1)
    square = np.bincount(view.state, rows.rho**2, minlength=size) / np.maximum(count, 1)
    error = np.sqrt(np.maximum(square - mean**2, 0.0) / np.maximum(count - 1, 1))
    missing = mean + _SURE * error < 1.0 - 1e-9
    return np.where(missing & (count > 10), mean, 1.0)


def _lost(view: Seen, known: Floats, ahead: float) -> float:
    """Share of the target's discounted visits that lie beyond known actions."""
    rows, size = view.rows, view.states
    weight = np.bincount(view.state, rows.rho, minlength=size)
    scale = np.divide(np.minimum(known, 1.0), weight, out=np.zeros(size), where=weight > 0.0)
    flow = np.zeros((size, size))
    np.add.at(flow, (view.state, view.ahead), rows.rho * rows.discount)
    chain = NEARLY * flow * scale[:, None]
    start = np.bincount(view.state[view.first[:-1]], view.episodes.opens, minlength=size)
    visits = np.linalg.solve(np.eye(size) - chain.T, start / max(start.sum(), 1.0))
    visits = np.maximum(visits, 0.0)
    there = np.bincount(view.state, minlength=size) > 0  # others are `unlogged`
    outside = float((visits * (1.0 - known))[there].sum()) * ahead
    inside = float((visits * known)[there].sum())
    return outside / (inside + outside) if outside > 0.0 else 0.0

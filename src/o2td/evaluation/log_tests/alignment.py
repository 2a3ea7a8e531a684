"""Do the entries of a row belong together? Rewards, actions, ratios and successors.

- Rewards one row early or late: the state, action and next state of another row explain the reward
  much better than those of its own row.
- Ratios and probabilities of another action: given state and action, they should hardly vary, unless
  the policy saw more than the state, or changed; even then the probabilities average as they should.
- The target's probabilities of all actions against that of the action taken.
- Next states against the states of the next rows. Without a column of next states: whether what comes
  next resembles what usually follows the row before, as in a log whose rows are out of order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from o2td.arrays import Floats, Ints
from o2td.evaluation.log_test import Finding, LogTest
from o2td.evaluation.log_tests.memory import out_of_order
from o2td.evaluation.log_tests.score import ALARM, excess_chance
from o2td.evaluation.log_tests.seen import Seen, seen, stratum_of, without_means
from o2td.evaluation.statistic import Passes
from o2td.evaluation.thresholds import CAUTION, TRUST

if TYPE_CHECKING:
    from o2td.evaluation.study import Study

_MARGIN = 0.05  # by this share of the variance another row must explain the reward better
_EXPLAINED = 0.15  # and at least this share it must explain
_VARIES = 0.25  # share of the variance within a state that remains given the action
_DIFFER = 0.01  # share of rows


class Alignment(LogTest):
    """Columns that belong to another row or action."""

    name = "alignment"
    title = "Do rewards, actions, ratios and next states of a row belong together?"

    def collect(self, study: Study) -> Passes:
        """The sample is enough."""
        return iter(())

    def find(self, study: Study) -> Finding | None:
        """The first doubt found."""
        view = seen(study)
        for doubt in (_successors, _order, _chosen, _ratios, _rewards):
            found = doubt(view)
            if found is not None:
                figure, sentence, remedy = found
                return Finding(self.name, figure, CAUTION, sentence, remedy)
        return Finding(self.name, 0.0, TRUST, "the entries of a row belong together")


Doubt = tuple[float, str, str] | None


def _successors(view: Seen) -> Doubt:
    here = np.flatnonzero(view.follows)
    if not len(here):
        return None
    said, came = view.rows.next_input[here - 1], view.rows.input[here]
    differ = (said != came).reshape(len(here), -1).any(axis=1)
    share = float(differ.mean())
    if share <= _DIFFER:
        return None
    return (
        share,
        f"in {share:.0%} of the rows the next state is not the state of the next row",
        "check the order of rows and the column of next states",
    )


def _order(view: Seen) -> Doubt:
    if view.chained or not view.exact:
        return None
    found = out_of_order(view)
    if not found.alarming:
        return None
    return (
        found.chance,
        "next states resemble what usually follows the row before"
        f" ({found.z:.1f} standard errors): rows seem to be out of order",
        "sort the rows of each episode by time; if they are sorted, log the next state with each row",
    )


def _chosen(view: Seen) -> Doubt:
    share = view.unlike
    if share <= _DIFFER:
        return None
    return (
        share,
        f"in {share:.0%} of the rows the target's probability of the action taken is not the one in"
        " the columns of all actions",
        "check that action k is the k-th of these columns",
    )


def _ratios(view: Seen) -> Doubt:
    if not view.exact or view.action is None:
        return None
    taken = view.rows.behavior_prob
    share = view.varies(view.rows.rho if taken is None else taken)
    if share <= _VARIES:
        return None
    if taken is not None and excess_chance(taken, view.state, view.pair) >= ALARM:
        return None
    return (
        share,
        f"given state and action the logged probabilities still vary ({share:.0%} of the variance"
        " within a state): they seem to belong to other actions",
        "check that probabilities and actions are from one row, and the state is what the policy saw",
    )


def _rewards(view: Seen) -> Doubt:
    if not view.exact:
        return None
    code = stratum_of(view.pair, np.where(view.rows.terminated, view.states, view.ahead))
    inner = np.flatnonzero(view.follows & np.append(view.follows[1:], False))
    if len(inner) < 200:
        return None
    reward = view.rows.reward[inner]
    own = _explained(reward, code[inner])
    late, early = _explained(reward, code[inner - 1]), _explained(reward, code[inner + 1])
    if max(late, early) < max(_EXPLAINED, own + _MARGIN):
        return None
    where, row = ("late", "before") if late > early else ("early", "after")
    return (
        max(late, early) - own,
        f"rewards seem to be one row {where}: the row {row} explains {max(late, early):.0%} of their"
        f" variance, their own row {own:.0%}",
        "move each reward to the row of the action that earned it",
    )


def _explained(values: Floats, code: Ints) -> float:
    """Share of the variance between strata, adjusted for their number; 0 if there are too many."""
    total = float(np.square(values - values.mean()).sum())
    strata = len(np.unique(code))
    free = len(values) - strata
    if total <= 0.0 or free < len(values) // 4:
        return 0.0
    left = float(np.square(without_means(values[:, None], code)).sum())
    return 1.0 - (left / free) / (total / (len(values) - 1))

"""Do episodes end by a clock? Ends that depend on the step and not on the state.

If the state determines when an episode ends, the probability of an end given state and action does
not depend on the step. Two signs that it does: all episodes that reach the last step end there
although the same states and actions, or the nearest observations, hardly ever end earlier (the
product of these probabilities except the largest, since some step is the last in any log); and a
trend of ends over steps, given state and action. A single longest episode gives itself away if its
length is a round number and it ends where hardly any other does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from o2td.arrays import Bools, Floats, Ints
from o2td.evaluation.log_test import BIASED, Finding, LogTest
from o2td.evaluation.log_tests.score import ALARM, strongest
from o2td.evaluation.log_tests.seen import Seen, seen
from o2td.evaluation.statistic import Passes
from o2td.evaluation.thresholds import CAUTION, TRUST

if TYPE_CHECKING:
    from o2td.evaluation.study import Study

_NEAR = 20  # rows whose observations are nearest
_LOOKED = 50  # last rows whose neighbours are looked at
_ROUND = (1000, 500, 100, 50, 10, 5, 1)  # each a multiple of the next


def clock_step(view: Seen) -> tuple[int | None, float]:
    """The number of steps after which a clock ends episodes, if one does, and its p-value."""
    if "clock" not in view.kept:
        view.kept["clock"] = _clock_step(view)
    found: tuple[int | None, float] = view.kept["clock"]
    return found


def _clock_step(view: Seen) -> tuple[int | None, float]:
    rows = view.rows
    longest = int(view.length.max())
    if not view.whole or longest < 2:
        return None, 1.0
    at = np.flatnonzero(view.step == longest - 1)
    ended = rows.terminated[at]
    if not ended.all():
        return None, 1.0
    if len(at) == 1:
        found = _alone(view, int(at[0]), longest) if view.exact else 1.0
        return (longest if found < ALARM else None), found
    before = view.step < longest - 1
    chance = np.sort(_recurring(view, at, before) if view.exact else _nearby(view, at, before))
    found = float(np.exp(np.log(chance[:-1]).sum()))
    return (longest if found < ALARM else None), found


def _alone(view: Seen, last: int, longest: int) -> float:
    """Chance that a longest episode has so round a length and ends where so few others do."""
    ends = np.bincount(view.pair, view.rows.terminated)
    rate = ends / np.bincount(view.pair)
    seldom = ends[rate <= rate[view.pair[last]]].sum() / ends.sum()
    both = float(seldom) / next(unit for unit in _ROUND if longest % unit == 0)
    return both * (1.0 - float(np.log(both)))  # of two p-values, by Fisher's rule


def _recurring(view: Seen, at: Ints, before: Bools) -> Floats:
    """How often the same state and action ended an episode earlier."""
    size = int(view.pair.max()) + 1
    tried = np.bincount(view.pair[before], minlength=size)
    ends = np.bincount(view.pair[before], view.rows.terminated[before], minlength=size)
    return np.asarray(((ends + 1.0) / (tried + 1.0))[view.pair[at]])


def _nearby(view: Seen, at: Ints, before: Bools) -> Floats:
    """How often the nearest observations with the same action ended an episode earlier."""
    x = np.asarray(view.rows.input, dtype=np.float64).reshape(len(view.rows), -1)
    spread = x.std(axis=0)
    x = x / np.where(spread > 0.0, spread, 1.0)
    found = []
    for row in at[:_LOOKED]:
        alike = before if view.action is None else before & (view.action == view.action[row])
        others = np.flatnonzero(alike if alike.any() else before)
        apart = np.square(x[others] - x[row]).sum(axis=1)
        near = others[np.argpartition(apart, min(_NEAR, len(others)) - 1)[:_NEAR]]
        found.append((view.rows.terminated[near].sum() + 1.0) / (len(near) + 1.0))
    return np.array(found)


class Clock(LogTest):
    """Ends that depend on the step and not on the state."""

    name = "clock"
    title = "Do episodes end because of what happened, or by a clock?"

    def collect(self, study: Study) -> Passes:
        """The sample is enough."""
        return iter(())

    def find(self, study: Study) -> Finding | None:
        """What was found."""
        view = seen(study)
        rows = view.rows
        if not view.whole or not rows.terminated.any() or view.length.max() < 2:
            return None
        asked = study.settings.horizon
        if asked is not None:
            said = f"the value over {asked} steps was requested, so ends by a clock do no harm"
            return Finding(self.name, float(asked), TRUST, said)
        steps, chance = clock_step(view)
        if steps is not None:
            share = float((view.length == steps).mean())
            return Finding(
                self.name,
                share,
                CAUTION,
                f"{share:.0%} of the episodes end at step {steps}, although the same states and actions"
                " seldom end earlier: a clock ended them, but the log marks them as terminated",
                f"if you want the value over {steps} steps, pass horizon={steps}; if episodes would have"
                " continued, mark these rows as truncated",
                biased=BIASED,
            )
        chance = min(chance, trend(view))
        if chance < ALARM:
            return Finding(
                self.name,
                chance,
                CAUTION,
                "whether episodes end depends on the step, not only on state and action"
                f" (p = {chance:.1g})",
                "add the remaining time to the state, or look for missing episodes",
                biased=BIASED,
            )
        return Finding(self.name, chance, TRUST, "ends do not follow a clock")


def trend(view: Seen, below: int | None = None) -> float:
    """p-value of a trend of ends over the steps below this one, given state and action."""
    rows = np.flatnonzero(view.step < (len(view.step) if below is None else below))
    if not view.exact or not len(rows):
        return 1.0
    step = view.step[rows]
    step = np.minimum(step, np.quantile(step, 0.99))
    x = np.column_stack([step, step > 0.5 * step.max()]).astype(np.float64)
    y = view.rows.terminated[rows, None].astype(np.float64)
    return strongest(x, y, view.pair[rows]).chance

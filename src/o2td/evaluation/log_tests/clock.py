"""Do episodes end by a clock? Ends that depend on the step and not on the state.

If the state determines when an episode ends, the probability of an end given state and action does
not depend on the step. Two signs that it does: all episodes that reach the last step end there
although the same states and actions hardly ever end earlier (the product of these probabilities
except the largest, since some step is the last in any log); and a trend of ends over steps, given
state and action.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from o2td.evaluation.log_test import BIASED, Finding, LogTest
from o2td.evaluation.log_tests.score import ALARM, strongest
from o2td.evaluation.log_tests.seen import Seen, seen
from o2td.evaluation.statistic import Passes
from o2td.evaluation.thresholds import CAUTION, TRUST

if TYPE_CHECKING:
    from o2td.evaluation.study import Study

__all__ = ["Clock", "clock_step"]

_LEAST = 2  # episodes that end together


def clock_step(view: Seen) -> tuple[int | None, float]:
    """The number of steps after which a clock ends episodes, if one does, and its p-value."""
    rows = view.rows
    longest = int(view.length.max())
    if not view.whole or longest < 2:
        return None, 1.0
    at = np.flatnonzero(view.step == longest - 1)
    ended = rows.terminated[at]
    if len(at) < _LEAST or not ended.all():
        return None, 1.0
    before = view.step < longest - 1
    group = view.pair if view.exact else np.zeros(len(rows), dtype=np.int64)
    size = int(group.max()) + 1
    tried = np.bincount(group[before], minlength=size)
    ends = np.bincount(group[before], rows.terminated[before], minlength=size)
    chance = np.sort(((ends + 1.0) / (tried + 1.0))[group[at]])
    found = float(np.exp(np.log(chance[:-1]).sum()))
    return (longest if found < ALARM else None), found


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
            said = f"the value over {asked} steps is asked for: a clock is what it needs"
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
        trend = _trend(view)
        if trend < ALARM:
            return Finding(
                self.name,
                trend,
                CAUTION,
                "whether episodes end depends on the step, not only on state and action"
                f" (p = {trend:.1g})",
                "add the remaining time to the state, or look for missing episodes",
                biased=BIASED,
            )
        return Finding(self.name, min(chance, trend), TRUST, "ends do not follow a clock")


def _trend(view: Seen) -> float:
    if not view.exact:
        return 1.0
    step = np.minimum(view.step, np.quantile(view.step, 0.99))
    x = np.column_stack([step, step > 0.5 * step.max()]).astype(np.float64)
    y = view.rows.terminated[:, None].astype(np.float64)
    return strongest(x, y, view.pair).chance

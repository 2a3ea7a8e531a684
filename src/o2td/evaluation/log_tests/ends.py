"""Are ends missing? Episodes whose record stops without an end, depending on the state.

A record that stops by a clock or at random stops equally often in all states at a step. If it stops
more often in some states, something happened there that the log does not show. Long episodes are
missing if ends, given state and action, become more frequent towards a step that no episode passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from o2td.evaluation.log_test import Finding, LogTest
from o2td.evaluation.log_tests.clock import clock_step, trend
from o2td.evaluation.log_tests.score import ALARM, NOTHING, strongest
from o2td.evaluation.log_tests.seen import Seen, marks, seen
from o2td.evaluation.statistic import Passes
from o2td.evaluation.thresholds import CAUTION, TRUST

if TYPE_CHECKING:
    from o2td.evaluation.study import Study


class Ends(LogTest):
    """Records that stop depending on the state."""

    name = "ends"
    title = "Are ends of episodes missing from the log?"

    def collect(self, study: Study) -> Passes:
        """The sample is enough."""
        return iter(())

    def find(self, study: Study) -> Finding | None:
        """What was found."""
        view = seen(study)
        steps, _ = clock_step(view)
        if steps is not None and (chance := trend(view, steps - 1)) < ALARM:
            return Finding(
                self.name,
                chance,
                CAUTION,
                f"no episode goes beyond step {steps}, and ends become more frequent towards it"
                f" (p = {chance:.1g}): longer episodes seem to be missing",
                "log all episodes, whatever their length",
            )
        cut = np.zeros(len(view.rows), dtype=np.float64)
        cut[view.last[~view.rows.terminated[view.last]]] = 1.0
        share = float(cut.sum() / view.count)
        if not share or not view.whole:
            return None
        step = np.minimum(view.step, 200)
        stops, there = np.bincount(step, cut), np.bincount(step)
        mixed = np.flatnonzero(((stops > 0.0) & (stops < there))[step])  # not by a clock alone
        found = NOTHING
        if len(mixed):
            found = strongest(_causes(view)[mixed], cut[mixed, None], step[mixed])
        if not found.alarming:
            return Finding(
                self.name, share, TRUST, "where records stop does not depend on the state"
            )
        return Finding(
            self.name,
            share,
            CAUTION,
            f"{share:.0%} of the records stop without an end, and more often in some states"
            f" ({abs(found.z):.1f} standard errors): ends seem to be missing there",
            "log the last row of every episode, whatever ended it",
        )


def _causes(view: Seen) -> np.ndarray:
    """Indicators of the next states, or next observations."""
    if view.exact:
        stays = view.ahead == view.state
        return np.column_stack([marks(view.ahead, 12)[0], view.reward, stays])
    ahead = np.asarray(view.rows.next_input, dtype=np.float64).reshape(len(view.rows), -1)
    return np.column_stack([ahead, view.reward])

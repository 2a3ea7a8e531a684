"""Whether the log stays the same from its beginning to its end.

Rewards, next states and ends given state and action, and start states, against the place of the
episode in the log: a trend, and the middle against the ends. Sums are by episode, which are
independent of each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from o2td.arrays import Floats
from o2td.evaluation.log_test import Finding, LogTest
from o2td.evaluation.log_tests.score import clustered
from o2td.evaluation.log_tests.seen import Seen, marks, seen
from o2td.evaluation.statistic import Passes
from o2td.evaluation.thresholds import CAUTION, TRUST

if TYPE_CHECKING:
    from o2td.evaluation.study import Study

__all__ = ["Drift"]

_LEAST = 30  # episodes


class Drift(LogTest):
    """Change along the log."""

    name = "drift"
    title = "Do rewards, transitions or start states change along the log?"

    def collect(self, study: Study) -> Passes:
        """The sample is enough."""
        return iter(())

    def find(self, study: Study) -> Finding | None:
        """What was found."""
        view = seen(study)
        if view.count < _LEAST:
            return None
        y, effects = _effects(view)
        place = np.linspace(-1.0, 1.0, view.count)
        x = np.column_stack([place, place**2 - (place**2).mean()])
        found = clustered(x, y)
        if not found.alarming:
            return Finding(self.name, found.chance, TRUST, "nothing changes along the log")
        return Finding(
            self.name,
            found.chance,
            CAUTION,
            f"{effects[found.y]} change along the log ({abs(found.z):.1f} standard errors): the answer"
            " is about a mixture of then and now",
            "evaluate the latest episodes alone",
        )


def _effects(view: Seen) -> tuple[Floats, list[str]]:
    """One row an episode: sums of what state and action do not explain, and marks of starts."""
    rows = view.rows
    columns = [view.reward, np.abs(view.reward), rows.terminated.astype(np.float64)]
    names = ["rewards given state and action"] * 2 + ["ends given state and action"]
    if view.exact:
        ahead, _ = marks(view.ahead, 12)
        columns += list(ahead.T)
        names += ["transitions"] * ahead.shape[1]
    else:
        change = np.asarray(rows.next_input, dtype=np.float64).reshape(len(rows), -1)
        columns += list(change.T)
        names += ["transitions"] * change.shape[1]
    each = view.episodes.sums(view.residual(np.column_stack(columns)))
    each /= np.sqrt(view.length)[:, None]
    begin = view.first[:-1]
    if view.exact:
        starts, _ = marks(view.state[begin], 6)
    else:
        starts = np.asarray(rows.input, dtype=np.float64)[begin].reshape(view.count, -1)
    return np.column_stack([each, starts]), names + ["start states"] * starts.shape[1]

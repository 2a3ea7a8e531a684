"""Whether the log stays the same from its beginning to its end.

Rewards, next states and ends given state and action, and start states, are tested against the
episode's place in the log: a trend, and the middle against both ends. Sums are by episode, and
episodes are independent of each other. If states recur, the squared trends of next states are also
added up over states and actions, since the trends themselves may cancel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from o2td.arrays import Floats
from o2td.evaluation.log_test import Finding, LogTest
from o2td.evaluation.log_tests.score import ALARM, chi_square_chance, clustered
from o2td.evaluation.log_tests.seen import Seen, marks, seen, stratum_of, without_means
from o2td.evaluation.statistic import Passes
from o2td.evaluation.thresholds import CAUTION, TRUST

if TYPE_CHECKING:
    from o2td.evaluation.study import Study

_LEAST = 30  # episodes
_OFTEN = 8  # a next state that occurs less often counts as rare


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
        apart = _by_pair(view, place)
        if 2.0 * apart < ALARM <= 2.0 * found.chance:
            return Finding(
                self.name,
                apart,
                CAUTION,
                f"transitions change along the log (p = {apart:.1g}): the answer mixes earlier and later"
                " behaviour of the system",
                "evaluate only the latest episodes",
            )
        if 2.0 * found.chance >= ALARM:
            return Finding(self.name, found.chance, TRUST, "nothing changes along the log")
        return Finding(
            self.name,
            found.chance,
            CAUTION,
            f"{effects[found.y]} change along the log ({abs(found.z):.1f} standard errors): the answer"
            " mixes earlier and later data",
            "evaluate only the latest episodes",
        )


def _effects(view: Seen) -> tuple[Floats, list[str]]:
    """One row per episode: sums of residuals given state and action, and indicators of starts."""
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


def _by_pair(view: Seen, place: Floats) -> float:
    """p-value of the trends of next states, over all states and actions together.

    In each pair with `U_j = sum x~ 1(s' = j)`, x~ the place minus its mean there, `sum_j U_j^2 /
    p_j` over `sum x~^2 / (n - 1) n` is chi-square with one degree of freedom less than next states.
    Rare ones are pooled.
    """
    if not view.exact:
        return 1.0
    pair, ahead = view.pair, np.where(view.rows.terminated, view.states, view.ahead)
    cell = stratum_of(pair, ahead)
    rare = np.bincount(cell)[cell] < _OFTEN
    cell = stratum_of(pair, np.where(rare, view.states + 1, ahead))
    count, size = np.bincount(cell), np.bincount(pair)
    owner = np.zeros(len(count), dtype=np.int64)
    owner[cell] = pair
    x = without_means(place[view.unit][:, None], pair)[:, 0]
    square = np.bincount(pair, x * x)
    fine = (count >= _OFTEN) & (size[owner] > count) & (square[owner] > 0.0)
    if not fine.any():
        return 1.0
    sums = np.bincount(cell, x)[fine]
    own = owner[fine]
    each = sums**2 * (size[own] - 1.0) / (count[fine] * square[own])
    cells = np.bincount(owner, minlength=len(size))
    freedom = float(((cells[own] - 1.0) / cells[own]).sum())
    return chi_square_chance(float(each.sum()), freedom)

"""Are episodes independent of each other? Copies, and correlated neighbours.

Two episodes are equal by chance at most as often as their actions are, and as often as everything
that happened recurs in the log, state by state: this bounds the expected number of equal ones, and
episodes that chance may repeat are left out. Neighbours: correlation of the rewards' residuals
given state and action with those of the next five episodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from o2td.arrays import Floats
from o2td.evaluation.log_test import Finding, LogTest
from o2td.evaluation.log_tests.memory import own_dependence
from o2td.evaluation.log_tests.score import ALARM, poisson_chance, two_sided
from o2td.evaluation.log_tests.seen import Seen, seen, stratum_of
from o2td.evaluation.statistic import Passes
from o2td.evaluation.thresholds import CAUTION, TRUST

if TYPE_CHECKING:
    from o2td.evaluation.study import Study

_LAGS = 5
_LEAST = 30
_RARE = 0.1  # an episode with more expected copies than this is ignored


class Independence(LogTest):
    """Copies of episodes, and clusters of episodes."""

    name = "independence"
    title = "Are the episodes independent of each other?"

    def collect(self, study: Study) -> Passes:
        """The sample is enough."""
        return iter(())

    def find(self, study: Study) -> Finding | None:
        """What was found."""
        view = seen(study)
        if view.count < _LEAST:
            return None
        copies, expected = _copies(view)
        if poisson_chance(copies, expected) < ALARM / 2.0:
            return Finding(
                self.name,
                copies / view.count,
                CAUTION,
                f"{copies} pairs of episodes are identical, where chance gives at most {expected:.2g}:"
                " intervals treat them as independent",
                "remove the copies",
            )
        z = 0.0 if study.users else _neighbours(view)
        if z > 0.0 and two_sided(z) < ALARM:
            return Finding(
                self.name,
                z,
                CAUTION,
                f"rewards of neighbouring episodes are correlated ({z:.1f} standard errors): episodes"
                " are clustered or drift along the log, and intervals are too narrow",
                "add a column user that says whose episodes they are: intervals then resample users",
            )
        return Finding(self.name, z, TRUST, "no copies, and neighbours are not correlated")


def _copies(view: Seen) -> tuple[int, float]:
    """Pairs of equal episodes, and how many chance explains."""
    rows = view.rows
    inputs = np.ascontiguousarray(rows.input, dtype=np.float64).reshape(len(rows), -1)
    weight = np.random.default_rng(0).normal(size=inputs.shape[1] + 2)
    action = np.zeros(len(rows)) if view.action is None else view.action
    each = inputs @ weight[:-2] + weight[-2] * rows.reward + weight[-1] * action
    # Weights differ from step to step, so that the order of rows counts, and stay bounded.
    mixed = np.cos(each * (1.0 + 0.618 * view.step) + view.step)
    digest = np.round(view.episodes.sums(mixed), 9) + 1e4 * view.length
    expected = (view.count - 1) * _chance(view)
    rare = expected < _RARE
    _, count = np.unique(digest[rare], return_counts=True)
    return int((count * (count - 1) // 2).sum()), float(expected[rare].sum() / 2.0)


def _chance(view: Seen) -> Floats:
    """A bound on each episode's probability, from its actions and from what recurs in its states.

    The latter only if the state is Markov.
    """
    rows = view.rows
    bounds = [np.zeros(view.count)]
    if rows.behavior_prob is not None:
        bounds.append(view.episodes.sums(np.log(np.maximum(rows.behavior_prob, 1e-300))))
    if view.exact and not own_dependence(view)[0].alarming:
        ahead = np.where(rows.terminated, view.states, view.ahead)
        _, reward = np.unique(rows.reward, return_inverse=True)
        code = stratum_of(view.pair, ahead, reward.ravel())
        share = np.bincount(code)[code] / np.bincount(view.state)[view.state]
        bounds.append(view.episodes.sums(np.log(share)))
    return np.asarray(np.exp(np.minimum.reduce(bounds)))


def _neighbours(view: Seen) -> float:
    """Correlation of episodes with the next five, in standard errors."""
    each = view.episodes.sums(view.surprise) / np.sqrt(view.length)
    each = each - each.mean()
    spread = float(each @ each)
    if spread <= 1e-12 * max(float(np.square(view.reward).sum()), 1e-300):
        return 0.0
    lags = min(_LAGS, view.count // 4)
    total = sum(float(each[:-k] @ each[k:]) for k in range(1, lags + 1))
    own = sum(float(each[:-k] ** 2 @ each[k:] ** 2) for k in range(1, lags + 1))
    return total / float(np.sqrt(own)) if own > 0.0 else 0.0

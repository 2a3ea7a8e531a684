"""Untried actions, by chance or for good."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from benchmarks.honesty.tables import gridworld, marked
from o2td.evaluation.log_tests.support import Seen, _known, seen

from .episodes import block_of
from .study import failed, studied


def test_what_the_target_itself_would_have_missed_counts_less():
    """State 0 has two rows and state 1 has many; action 1 was tried in neither.

    What two rows of the target's own are expected to miss is added.
    """
    state = np.array([0, 0, *[1] * 50])
    log = pd.DataFrame({"episode": np.arange(52), "state": state, "next_state": state, "action": 0})
    log = log.assign(reward=0.0, terminated=False, truncated=True, behavior_prob=0.5)
    log = log.assign(target_prob_0=0.7, target_prob_1=0.3)
    known = _known(Seen(block_of(log)))
    assert known is not None
    expected = 0.7 * 0.3**2 * (1.0 - 0.3**2) + 0.3 * 0.7**2 * (1.0 - 0.7**2)
    assert np.allclose(known, [0.7 + 0.3 * 0.7**2 + expected, 0.7 + 0.3 * 2.0 * 0.7**50])


def test_support_does_not_count_what_the_targets_own_log_would_miss() -> None:
    """Few rows a state: actions are untried by chance, in a log of the target's own as well."""
    task = replace(gridworld(0.6, 0.4), horizon=None)
    for seed in range(3):
        log = marked(task.sample(64, np.random.default_rng([seed, 9])), "truncated")
        view = seen(studied(log, 0.98))
        tried = np.bincount(
            view.state * 4 + np.asarray(view.rows.action), minlength=4 * view.states
        )
        assert (tried == 0).any()
        assert "support" not in failed(log, 0.98)

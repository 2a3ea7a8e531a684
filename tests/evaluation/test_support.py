"""Untried actions, by chance or for good."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.honesty.tables import gridworld, marked
from o2td.evaluation.log_tests.support import Seen, _known, _lost, seen

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


def walked(seed: int, states: int = 4, rows: int = 40) -> pd.DataFrame:
    """Transitions among a few states, each an episode of one to four rows, with ratios."""
    rng = np.random.default_rng(seed)
    start = np.zeros(rows, dtype=bool)
    start[0] = True
    start[1:] = rng.random(rows - 1) < 0.4
    log = pd.DataFrame({"episode": np.cumsum(start) - 1, "state": rng.integers(0, states, rows)})
    last = np.append(start[1:], True)
    log["next_state"] = np.where(last, rng.integers(0, states, rows), np.roll(log.state, -1))
    log["terminated"] = last & (rng.random(rows) < 0.6)
    log["truncated"] = last & ~log.terminated
    return log.assign(reward=0.0, action=0, rho=rng.choice([0.0, 0.2, 0.5], rows))


def plain_lost(log: pd.DataFrame, known: np.ndarray, ahead: float, discount: float) -> float:
    """Follow the target from the starts, step by step, through what was logged."""
    size = len(known)
    move = np.zeros((size, size))
    for s in range(size):
        here = log[log.state == s]
        total = here.rho.sum()
        for row in here.itertuples():
            if total > 0.0:
                gone = 0.0 if row.terminated else discount
                move[s, row.next_state] += min(known[s], 1.0) * row.rho * gone / total
    first = log.groupby("episode").state.first()
    at = np.array([(first == s).mean() for s in range(size)])
    visits = np.zeros(size)
    for _ in range(2000):
        visits, at = visits + at, at @ move
    logged = np.array([(log.state == s).any() for s in range(size)])
    outside = (visits * (1.0 - known))[logged].sum() * ahead
    inside = (visits * known)[logged].sum()
    return outside / (inside + outside) if outside > 0.0 else 0.0


@pytest.mark.parametrize("seed", range(4))
def test_visits_beyond_known_actions_by_following_the_target(seed: int) -> None:
    """Ratios in a state may sum to less than 1, or to 0: nothing leads on from there."""
    log = walked(seed)
    log.loc[log.state == 2, "rho"] = 0.0
    log.loc[log.state == 1, "rho"] = np.where(np.arange((log.state == 1).sum()) == 0, 0.3, 0.0)
    known = np.array([0.5, 0.9, 0.8, 1.1])
    view = Seen(block_of(log))
    assert (np.bincount(view.state, log.rho)[:3] < 1.0).sum() >= 2
    found = _lost(view, known, 3.0)
    assert found == pytest.approx(plain_lost(log, known, 3.0, 0.9), rel=1e-6)
    assert _lost(view, np.ones(4), 3.0) == 0.0


def test_the_mean_ratio_of_a_state_tells_what_was_tried_there() -> None:
    """Three standard errors below 1 in more than ten rows: the mean; otherwise everything is known."""
    rng = np.random.default_rng(3)
    state = np.repeat([0, 1, 2, 3], [40, 40, 8, 11])
    rho = np.concatenate([
        rng.choice([0.2, 0.6], 40), rng.choice([0.2, 1.8], 40), np.full(8, 0.1),
        rng.choice([0.1, 0.2], 11),
    ])  # fmt: skip
    log = pd.DataFrame({"episode": np.arange(99), "state": state, "next_state": state, "rho": rho})
    log = log.assign(reward=0.0, action=0, terminated=False, truncated=True)
    known = _known(Seen(block_of(log)))
    assert known is not None
    means = [rho[:40].mean(), 1.0, 1.0, rho[88:].mean()]
    np.testing.assert_allclose(known, means, rtol=1e-12)
    error = rho[:40].std(ddof=1) / np.sqrt(40)
    for away, expected in ((3.05, True), (2.95, False)):
        shifted = log.assign(
            rho=np.where(state == 0, rho - rho[:40].mean() + 1.0 - away * error, rho)
        )
        near = _known(Seen(block_of(shifted)))
        assert near is not None
        assert (near[0] < 1.0) == expected

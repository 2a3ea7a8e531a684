"""Logged probabilities against what was taken, by plain loops."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from o2td.evaluation.log_tests.propensities import (
    Seen,
    _by_observation,
    _by_state,
    _off,
    chi_square_chance,
    two_sided,
)

from .episodes import block_of


def taken(seed: int, rows: int = 400, tilt: float = 0.0, **columns: object) -> pd.DataFrame:
    """Three states with chances of their own; the log says `tilt` less of action 0."""
    rng = np.random.default_rng(seed)
    state = rng.choice(4, rows, p=[0.5, 0.3, 0.18, 0.02])
    chance = np.array([0.2, 0.5, 0.7, 1.0])[state]
    action = (rng.random(rows) >= chance).astype(int)
    said = np.where(action == 0, chance - tilt * (chance < 1.0), 1.0 - chance + tilt)
    log = pd.DataFrame({"episode": np.arange(rows), "state": state, "next_state": state})
    log = log.assign(action=action, reward=0.0, terminated=False, truncated=True)
    return log.assign(behavior_prob=said, target_prob=0.5, **columns)


@pytest.mark.parametrize(("seed", "tilt"), [(0, 0.0), (1, 0.05), (2, 0.1)])
def test_counts_of_actions_are_compared_with_their_chances_state_by_state(seed, tilt):
    log = taken(seed, tilt=tilt)
    square = freedom = most = 0.0
    pairs = 0
    for _, there in log.groupby("state"):
        for _, rows in there.groupby("action"):
            chance = rows.behavior_prob.mean()
            expected = len(there) * chance
            if expected >= 5.0 and len(there) - expected >= 5.0 and chance < 1.0:
                z = (len(rows) - expected) / np.sqrt(expected * (1.0 - chance))
                square, freedom = square + z**2 * (1.0 - chance), freedom + 1.0 - chance
                most, pairs = max(most, abs(z)), pairs + 1
    assert pairs >= 6
    alone = min(1.0, pairs * two_sided(most))
    wanted = min(1.0, 2.0 * min(chi_square_chance(square, freedom), alone))
    assert _by_state(Seen(block_of(log))) == pytest.approx(wanted, rel=1e-9)


def test_where_everything_is_rare_or_certain_nothing_is_told():
    log = taken(3, 9)
    assert _by_state(Seen(block_of(log))) == 1.0
    sure = taken(3, 200).assign(action=0, behavior_prob=1.0)
    assert _by_state(Seen(block_of(sure))) == 1.0


def test_sums_of_a_states_probabilities_that_are_off_are_counted_by_rows():
    """Below 1 only where all actions were tried and it is known how many there are."""
    log = taken(4)
    assert _off(Seen(block_of(log))) == 0.0
    more = np.where(log.state == 1, log.behavior_prob + 0.02, log.behavior_prob)
    assert _off(Seen(block_of(log.assign(behavior_prob=more)))) == (log.state == 1).mean()
    less = log.assign(
        behavior_prob=np.where(log.state == 1, log.behavior_prob - 0.02, log.behavior_prob)
    )
    assert _off(Seen(block_of(less))) == 0.0
    known = less.drop(columns="target_prob").assign(target_prob_0=0.5, target_prob_1=0.5)
    assert _off(Seen(block_of(known))) == (log.state == 1).mean()
    three = known.assign(target_prob_1=0.25, target_prob_2=0.25)
    assert _off(Seen(block_of(three))) == 0.0


@pytest.mark.parametrize("tilt", [0.0, 0.08])
def test_along_observations_ratios_of_each_action_average_one(tilt):
    rng = np.random.default_rng(7)
    log = (
        taken(5, tilt=tilt)
        .drop(columns=["state", "next_state"])
        .assign(terminated=True, truncated=False)
    )
    log = log.assign(obs_0=rng.standard_cauchy(400), obs_1=rng.normal(size=400), obs_2=3.0)
    x = log[["obs_0", "obs_1"]].to_numpy()
    x = np.clip((x - x.mean(axis=0)) / x.std(axis=0), -3.0, 3.0)
    worst = 0.0
    for action in (0, 1):
        apart = (log.action == action) / log.behavior_prob - 1.0
        for column in (np.ones(400), x[:, 0], x[:, 1]):
            each = column * apart
            worst = max(worst, abs(each.sum()) / np.sqrt((each**2).sum()))
    found = _by_observation(Seen(block_of(log)))
    assert found == pytest.approx(min(1.0, 2 * 3 * two_sided(worst)), rel=1e-6)

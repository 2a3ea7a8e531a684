"""Rows out of order: what a test of alignment compares."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from o2td.evaluation.log_tests import alignment
from o2td.evaluation.log_tests.alignment import (
    Seen,
    _chosen,
    _explained,
    _order,
    _ratios,
    _rewards,
    _successors,
)

from .episodes import block_of


def test_the_explained_share_is_the_adjusted_coefficient_of_determination():
    rng = np.random.default_rng(4)
    code = np.arange(24) % 4
    values = code + rng.normal(size=24)
    fitted = np.array([values[code == k].mean() for k in range(4)])[code]
    r2 = 1.0 - np.square(values - fitted).sum() / np.square(values - values.mean()).sum()
    adjusted = 1.0 - (1.0 - r2) * 23 / 20
    assert _explained(values, code) == pytest.approx(adjusted, rel=1e-12)
    assert _explained(np.ones(24), code) == 0.0
    assert _explained(1e-3 * values, code) == pytest.approx(adjusted, rel=1e-9)
    halves = np.arange(24) % 18  # strata leave a quarter of the rows, or less than that
    assert _explained(values, halves) != 0.0
    assert _explained(values, np.arange(24) % 19) == 0.0
    assert _explained(values, np.arange(24)) == 0.0


def walk(seed: int, shift: int = 0, noise: float = 0.3, rows: int = 600) -> pd.DataFrame:
    """Episodes of ten rows among four states; rewards are those of the row `shift` rows before."""
    rng = np.random.default_rng(seed)
    state = rng.integers(0, 4, rows)
    log = pd.DataFrame({"episode": np.arange(rows) // 10, "state": state})
    log["next_state"] = np.where(np.arange(rows) % 10 == 9, 0, np.roll(state, -1))
    log = log.assign(action=rng.integers(0, 2, rows), terminated=np.arange(rows) % 10 == 9, rho=1.0)
    earned = log.state + 2.0 * log.action + noise * rng.normal(size=rows)
    return log.assign(reward=np.roll(earned, shift))


@pytest.mark.parametrize(
    ("shift", "where"), [(1, "late: the row before"), (-1, "early: the row after")]
)
def test_rewards_of_the_row_before_or_after_are_told_by_what_explains_them(shift, where):
    log = walk(0, shift)
    view = Seen(block_of(log))
    found = _rewards(view)
    assert found is not None
    code = (log.state * 2 + log.action).to_numpy() * 5 + np.where(log.terminated, 4, log.next_state)
    inner = np.flatnonzero((np.arange(600) % 10 > 0) & (np.arange(600) % 10 < 9))
    reward = log.reward.to_numpy()[inner]
    own, other = _explained(reward, code[inner]), _explained(reward, code[inner - shift])
    assert found[0] == pytest.approx(other - own, rel=1e-9)
    assert where in found[1]
    assert f"explains {other:.0%} of their variance, their own row {own:.0%}" in found[1]


def test_rewards_of_their_own_row_and_of_too_few_rows_are_no_doubt():
    assert _rewards(Seen(block_of(walk(1)))) is None
    assert _rewards(Seen(block_of(walk(1, 1, noise=9.0)))) is None
    assert _rewards(Seen(block_of(walk(1, 1, rows=240)))) is None
    assert _rewards(Seen(block_of(walk(1, 1, rows=250)))) is not None


def test_next_states_that_are_not_those_of_the_next_row_are_counted():
    log = walk(2)
    assert _successors(Seen(block_of(log))) is None
    inner = np.flatnonzero(~log.terminated)
    for wrong, said in ((5, None), (6, "in 1% of"), (54, "in 10% of the rows the next state")):
        other = log.copy()
        other.loc[inner[:wrong], "next_state"] = (log.next_state[inner[:wrong]] + 1) % 4
        found = _successors(Seen(block_of(other)))
        assert (found is None) == (said is None)
        if found is not None and said is not None:
            assert found[0] == pytest.approx(wrong / 540)
            assert said in found[1]
    single = log[log.terminated]
    assert _successors(Seen(block_of(single))) is None


def test_ratios_that_vary_given_state_and_action_belong_elsewhere():
    log = walk(3)
    rng = np.random.default_rng(0)
    plain = np.where(log.action == 0, 0.5, 1.5) + 0.01 * rng.normal(size=600)
    assert _ratios(Seen(block_of(log.assign(rho=plain)))) is None
    view = Seen(block_of(log.assign(rho=rng.permutation(plain))))
    found = _ratios(view)
    assert found is not None
    assert found[0] == pytest.approx(view.varies(view.rows.rho))
    assert f"still vary ({found[0]:.0%} of the variance" in found[1]


def test_the_targets_probability_of_the_action_taken_is_compared_with_those_of_all() -> None:
    block = block_of(walk(4))
    assert _chosen(Seen(block, unlike=0.01)) is None
    found = _chosen(Seen(block, unlike=0.02))
    assert found is not None
    assert found[0] == 0.02
    assert found[1].startswith("in 2% of the rows the target's probability of the action taken")
    assert "check that action k" in found[2]


def test_probabilities_that_vary_are_forgiven_where_they_average_as_they_should() -> None:
    log = walk(5, rows=3000).assign(state=0, next_state=0)
    rng = np.random.default_rng(0)
    chance = rng.choice([0.05, 0.5], 3000)
    taken = (rng.random(3000) < chance).astype(int)
    fair = log.assign(action=taken, behavior_prob=np.where(taken == 1, chance, 1.0 - chance))
    fair = fair.drop(columns="rho").assign(target_prob=0.5)
    assert _ratios(Seen(block_of(fair))) is None
    other = fair.assign(behavior_prob=rng.permutation(fair.behavior_prob))
    found = _ratios(Seen(block_of(other)))
    assert found is not None
    view = Seen(block_of(other))
    assert found[0] == pytest.approx(view.varies(view.rows.behavior_prob))
    seen = fair.drop(columns=["state", "next_state"]).assign(obs_0=rng.normal(size=3000))
    assert _ratios(Seen(block_of(seen))) is None


def test_only_logs_that_do_not_name_next_states_are_asked_about_their_order(monkeypatch) -> None:
    block = block_of(walk(6))
    for chance, alarming in ((0.004, True), (0.5, False)):
        monkeypatch.setattr(alignment, "out_of_order", lambda view, p=chance: Found(p))
        found = _order(Seen(block, chained=False))
        assert (found is not None) == alarming
        if found is not None:
            assert found[0] == chance
            assert "(4.2 standard errors): rows seem to be out of order" in found[1]
        assert _order(Seen(block, chained=True)) is None


class Found:
    """What a test of the order finds."""

    z = 4.23

    def __init__(self, chance: float) -> None:
        self.chance, self.alarming = chance, chance < 0.005

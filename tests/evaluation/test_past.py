"""Numbers of states with their past."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

from o2td.evaluation.past import (
    CHOICES,
    Past,
    PastCells,
    Seen,
    _loss,
    _outcomes,
    choose_past,
    strata,
)

from .episodes import block_of


@pytest.mark.parametrize("parts", CHOICES, ids=" ".join)
def test_every_past_has_a_number_of_its_own(parts):
    """States 0 to 2; previous action, state and reward, or 0 for none; steps up to 4."""
    past = Past(parts, 3, 2, 4)
    sizes = {"action": 3, "state": 4, "reward": 3, "step": 6}
    names = ("action", "state", "reward", "step")
    ranges = [range(sizes[name] if name in parts else 1) for name in names]
    every = np.array(list(itertools.product(range(3), *ranges)))
    codes = past.code(*every.T)
    assert len(np.unique(codes)) == len(every)
    assert codes.min() == 0
    assert codes.max() == len(every) - 1  # without gaps
    np.testing.assert_array_equal(
        past.state_of([2, 0]), past.code(*np.array([[2, 0], *[[0, 0]] * 4]))
    )
    assert past.fits
    assert not Past(parts, 2**31, 2, 4).fits
    assert Past(parts, 2**20, 2, 1000).fits


def test_a_past_in_words():
    assert str(Past(("action",), 1, 1, 1)) == "state with the previous action"
    assert str(Past(("step", "reward"), 1, 1, 1)) == "state with the step and previous reward"


def test_rows_and_successors_are_numbered_by_plain_loops():
    log = pd.DataFrame({"episode": [0, 0, 0, 1, 1, 1, 1], "state": [0, 1, 2, 2, 0, 1, 1]})
    log = log.assign(next_state=[1, 2, 0, 0, 1, 1, 2], action=[1, 0, 1, 0, 1, 1, 0], rho=1.0)
    log = log.assign(reward=[1.0, -1.0, 2.0, 0.5, 3.0, -2.0, 1.0])
    log["terminated"], log["truncated"] = log.index == 2, log.index == 6
    past = Past(("action", "state", "reward", "step"), 3, 2, 2, middle=0.5)
    here, ahead = PastCells(past).index(block_of(log))
    step = log.groupby("episode").cumcount()
    for t, row in enumerate(log.itertuples()):
        now, pays = min(step[t], 2), int(row.reward > 0.5)
        before = (0, 0, 0)
        if step[t]:
            last = log.iloc[t - 1]
            before = (last.action + 1, last.state + 1, int(last.reward > 0.5) + 1)
        assert here[t] == past.code(row.state, *before, now)
        later = past.code(row.next_state, row.action + 1, row.state + 1, pays + 1, now + 1)
        assert ahead[t] == (-1 if row.terminated else later)


def remembering(seed: int, of: str | None, episodes: int = 120) -> Any:
    """Three states and two actions; rewards depend on the state, the action and part of the past."""
    rng = np.random.default_rng(seed)
    n = 8 * episodes
    log = pd.DataFrame({"episode": np.arange(n) // 8, "state": rng.integers(0, 3, n)})
    log = log.assign(action=rng.integers(0, 2, n), rho=1.0, step=np.arange(n) % 8)
    last = log.step == 7
    log["next_state"] = np.where(last, 0, np.roll(log.state, -1))
    parts = {
        "action": np.roll(log.action, 1),
        "state": np.roll(log.state, 1),
        "step": log.step // 4,
    }
    before = 0 if of is None else parts[of]
    log["reward"] = log.state + 2.0 * np.where(log.step > 0, before, 0) + 0.5 * rng.normal(size=n)
    log["terminated"] = last & (rng.random(n) < 0.5)
    return Seen(block_of(log.assign(truncated=last & ~log.terminated)))


def plain_loss(view: Any, y: np.ndarray, fine: np.ndarray, coarse: np.ndarray) -> float:
    """Means over the other half of the episodes, shrunk twice by two rows each."""
    total = 0.0
    for t in range(len(y)):
        fit = view.unit % 2 != view.unit[t] % 2
        base = y[fit].mean(axis=0)
        for code in (coarse, fine):
            mine = y[fit & (code == code[t])]
            base = (mine.sum(axis=0) + 2.0 * base) / (len(mine) + 2.0)
        total += float(np.square(y[t] - base).sum())
    return total / len(y)


def test_losses_are_of_means_over_the_other_half_by_plain_loops() -> None:
    view = remembering(1, "action", 12)
    y = _outcomes(view)
    ahead = np.where(view.rows.terminated, 3, view.rows.next_state)
    kinds = [k for k in range(4) if (ahead == k).sum() >= 20]
    order = sorted(kinds, key=lambda k: -(ahead == k).sum())
    np.testing.assert_allclose(y[:, 0], view.reward / view.reward.std())
    np.testing.assert_array_equal(y[:, 1:], ahead[:, None] == order)
    past = Past(("action",), 3, 2, 8)
    fine = strata(view, past)
    here, _ = PastCells(past).index(view.episodes)
    for code in (fine, np.unique(2 * here + view.action, return_inverse=True)[1]):
        found = _loss(y, code, view.pair, view)
        assert found == pytest.approx(plain_loss(view, y, code, view.pair), rel=1e-9)


@pytest.mark.parametrize(
    ("of", "parts"),
    [(None, None), ("action", ("action",)), ("state", ("state", "action")), ("step", ("step",))],
)
def test_the_part_of_the_past_that_predicts_best_is_chosen(of: Any, parts: Any) -> None:
    view = remembering(2, of)
    found = choose_past(view, 3, 2, 8)
    if parts is None:
        assert found is None
        return
    assert found == Past(parts, 3, 2, 8, float(np.median(view.reward)))
    y, plain = _outcomes(view), view.pair
    losses = {
        p: _loss(y, strata(view, Past(p, 3, 2, 8, found.middle)), plain, view) for p in CHOICES
    }
    assert min(losses, key=losses.__getitem__) == parts
    assert choose_past(view, 2**31, 2, 8) is None  # there are no numbers for so many

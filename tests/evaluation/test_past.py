"""Numbers of states with their past."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from o2td.evaluation.past import CHOICES, Past, PastCells

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

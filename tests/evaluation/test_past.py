"""Numbers of states with their past."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from o2td.evaluation.past import CHOICES, Past


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

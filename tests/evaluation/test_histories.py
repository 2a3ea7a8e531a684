"""Weights of histories and their sums."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.evaluation import histories
from o2td.evaluation.histories import Horizon

from .episodes import block_of
from .logs import line_log


def test_influence_of_the_weighted_sum_is_its_derivative():
    block = block_of(line_log(60, 0))
    weight, gone, step = histories(block)
    number = weight * gone * block.rows.reward
    horizon = Horizon()
    horizon.add(block, weight, step, number)
    influence = horizon.centered(block, weight, step, number)
    e, small = 5, 1e-5
    ends = []
    for sign in (1.0, -1.0):
        scale = np.where(block.unit() == e, 1.0 + sign * small, 1.0)
        moved = Horizon()
        moved.add(block, weight * scale, step, number * scale)
        ends.append(moved.weighted().sum())
    assert (ends[0] - ends[1]) / (2 * small) == pytest.approx(influence[e], rel=1e-4)

"""Weights of histories and their sums."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.evaluation import histories
from o2td.evaluation.histories import Horizon, effective, padded_sum

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


def test_sums_by_step_where_weights_are_small_or_zero():
    """Two episodes end at step 1 and 2 with weights 0.2 and 0.3; a third has weight 0 from step 1."""
    alive = np.array([1.5, 0.5, 0.3])
    horizon = Horizon(
        weight=alive,
        square=np.array([1.0, 0.13, 0.09]),
        number=np.array([3.0, 0.1, 0.15]),
        ended=np.array([0.0, 0.2, 0.3]),
        ended_square=np.array([0.0, 0.04, 0.09]),
    )
    total = np.array([1.5, 0.5, 0.5])  # those that ended keep their weight
    np.testing.assert_allclose(horizon.total, total)
    np.testing.assert_allclose(horizon.inverse, 1.0 / total)
    np.testing.assert_allclose(horizon.weighted(), np.array([3.0, 0.1, 0.15]) / total)
    squares = np.array([1.0, 0.13, 0.13])
    np.testing.assert_allclose(horizon.effective_size, total**2 / squares)
    none = Horizon(*np.zeros((5, 2)))
    np.testing.assert_array_equal(none.weighted(), 0.0)
    np.testing.assert_array_equal(none.inverse, 0.0)
    np.testing.assert_array_equal(none.effective_size, 0.0)
    np.testing.assert_array_equal(padded_sum(np.array([1.0]), np.array([2.0, 3.0])), [3.0, 3.0])
    np.testing.assert_array_equal(padded_sum(np.array([2.0, 3.0]), np.array([1.0])), [3.0, 3.0])
    assert effective(3.0, 4.5) == 2.0
    assert effective(3.0, 0.0) == 0.0

"""The shape of a tail, from the largest weights alone."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.evaluation.pareto import Largest, pareto_shape, tail_size


def test_the_largest_weights_are_all_that_the_tail_needs():
    weights = np.random.default_rng(9).pareto(1.5, 20_000)
    top = Largest(tail_size(len(weights)) + 1)
    for part in np.array_split(weights, 33):
        top.add(part)
    np.testing.assert_array_equal(top.sorted(), np.sort(weights)[::-1][: top.limit])
    assert pareto_shape(top.sorted(), len(weights)) == pareto_shape(weights)


@pytest.mark.parametrize("shape", [0.2, 0.5, 1.0])
def test_pareto_shape_is_found(shape):
    rng = np.random.default_rng(7)
    excess = ((1.0 - rng.random(50_000)) ** -shape - 1.0) / shape
    assert pareto_shape(excess) == pytest.approx(shape, abs=0.12)


def test_pareto_shape_of_light_tails_and_of_nothing():
    rng = np.random.default_rng(8)
    assert pareto_shape(rng.random(20_000)) < 0.1
    assert pareto_shape(np.zeros(100)) is None
    assert pareto_shape(np.array([1.0, 2.0])) is None


def test_no_more_weights_are_kept_than_twice_the_largest():
    top, held = Largest(10), []
    for part in np.random.default_rng(0).pareto(1.5, (100, 7)):
        top.add(part)
        held.append(len(top._values))
    assert max(held) <= 20
    assert held[:2] == [7, 14]  # sorted out only now and then

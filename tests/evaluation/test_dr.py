"""Doubly robust estimates without a value function are importance sampling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from o2td.evaluation.estimators.dr import DoublyRobustColumn

from .logs import line_log
from .study import traced


def test_doubly_robust_with_no_value_function_is_importance_sampling():
    study, found = traced(line_log(30, 3))
    weighed = study.weighed
    share = weighed.units * weighed.horizon.inverse
    robust = DoublyRobustColumn(0, 0.0, 1.0, np.ones(len(share))).of(found)
    weighted = DoublyRobustColumn(0, 0.0, 1.0, share).of(found)
    assert robust.mean() == pytest.approx(weighed.spread("pdis").mean)
    assert weighted.mean() == pytest.approx(weighed.horizon.weighted().sum())


def test_an_episode_adds_its_start_and_its_weighted_errors() -> None:
    study, found = traced(line_log(30, 3))
    rng = np.random.default_rng(2)
    block = found.episodes
    opens = np.arange(block.count) % 3 > 0
    first, delta = rng.normal(size=block.count), rng.normal(size=len(block.rows))
    share = rng.random(len(study.weighed.horizon.inverse))
    other = replace(
        found, episodes=replace(block, opens=opens), first=[first, first], delta=[delta, delta]
    )
    each = []
    for e, (low, high) in enumerate(zip(block.first[:-1], block.first[1:], strict=True)):
        total = 0.7 * (first[e] - 0.3) * opens[e]
        for t in range(low, high):
            total += found.weight[t] * found.gone[t] * delta[t] * share[t - low]
        each.append(total)
    column = DoublyRobustColumn(1, 0.3, 0.7, share)
    np.testing.assert_allclose(column.of(other), each, rtol=1e-9)
    np.testing.assert_allclose(column.alone(2, [np.zeros(2), np.array([1.0, 2.0])]), [0.49, 1.19])

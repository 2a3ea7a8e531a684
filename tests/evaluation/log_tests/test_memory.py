"""What the test of memory takes for the past of a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.honesty.tables import marked, random_table
from o2td.evaluation.log_tests import memory
from o2td.evaluation.log_tests.memory import _columns, seen
from tests.evaluation.study import studied


def test_earlier_rewards_are_those_of_the_same_episode() -> None:
    task = random_table(np.random.default_rng(0))
    log = marked(task.sample(60, np.random.default_rng(1)), "truncated")
    view = seen(studied(log, task.discount))
    past, causes, _, _ = _columns(view)
    here = np.flatnonzero(view.follows)
    first = view.first[view.unit[here]]
    before = [view.surprise[low:row].sum() for low, row in zip(first, here, strict=True)]
    earlier = past[:, causes.index("earlier rewards")]
    np.testing.assert_allclose(earlier, before / np.sqrt(view.step[here]), atol=1e-12)


def _view(seed: int = 1, episodes: int = 60) -> Any:
    task = random_table(np.random.default_rng(0))
    log = marked(task.sample(episodes, np.random.default_rng(seed)), "truncated")
    return seen(studied(log, task.discount))


def test_next_states_are_compared_with_what_follows_the_row_before_row_by_row() -> None:
    """The sum of products written out: half of the episodes say what is usual for the other half."""
    view = _view()
    here, size = np.flatnonzero(view.follows), view.states + 1
    ahead = np.where(view.rows.terminated, view.states, view.ahead)
    odd = view.unit % 2 == 1
    usual = np.zeros((len(here), size))
    for k, row in enumerate(here):
        others = odd != odd[row]
        share = np.bincount(ahead[others], minlength=size) / others.sum()
        count = np.bincount(ahead[others & (view.pair == view.pair[row - 1])], minlength=size)
        usual[k] = (count + share) / (count.sum() + 1.0)
    comes = np.eye(size)[ahead[here]]
    weight = 1.0 / np.maximum(comes.mean(axis=0), memory._RARE)
    each = np.zeros(len(here))
    for stratum in np.unique(view.pair[here]):
        own = view.pair[here] == stratum
        x, y = usual[own] - usual[own].mean(axis=0), comes[own] - comes[own].mean(axis=0)
        each[own] = (x * y * weight).sum(axis=1)
    z = each.sum() / np.sqrt((each**2).sum())
    found = memory._follows_before(view, here, view.pair, 4)
    assert (found.x, found.y) == (4, 1)
    assert found.z == pytest.approx(z, rel=1e-9)


def test_errors_on_held_out_rows_are_those_of_ridge_regression() -> None:
    rng = np.random.default_rng(0)
    x, y, held = rng.normal(size=(50, 3)), rng.normal(size=(50, 2)), np.arange(50) % 3 == 0
    gram = x[~held].T @ x[~held]
    ridge = 1e-6 * np.trace(gram) / 3 * np.eye(3)
    theta = np.linalg.solve(gram + ridge, x[~held].T @ y[~held])
    wanted = ((y[held] - x[held] @ theta) ** 2).mean(axis=0)
    np.testing.assert_allclose(memory._held_out(x, y, held), wanted, rtol=1e-12)


def test_of_several_dependences_the_strongest_counts_by_bonferronis_rule() -> None:
    view = _view()
    found, causes, effects = memory.own_dependence(view)
    here = np.flatnonzero(view.follows)
    x, named, y, _ = _columns(view)
    assert causes == [
        *named,
        "the previous state and action",
        "what usually follows the row before",
    ]
    tried = [
        memory.strongest(x, y, view.pair[here]),
        memory._follows_before(view, here, view.pair, len(named) + 1),
        *memory._foretold(view, here, view.pair, y, len(named)),
    ]
    best = min(tried, key=lambda one: one.chance)
    assert found.chance == pytest.approx(min(1.0, len(tried) * best.chance), rel=1e-12)
    assert (found.x, found.y, found.z) == (best.x, best.y, best.z)
    assert effects[0] == "the reward"
    assert set(effects[1:]) == {"the next state"}

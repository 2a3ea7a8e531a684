"""What the test of memory takes for the past of a row."""

from __future__ import annotations

import numpy as np

from benchmarks.honesty.tables import marked, random_table
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

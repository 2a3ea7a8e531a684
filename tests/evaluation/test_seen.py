"""What tests of the log look at."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.honesty.tables import marked, random_table
from o2td.evaluation.log_tests.seen import Seen, seen

from .study import studied


def test_a_long_log_is_looked_at_from_its_beginning_to_its_end() -> None:
    task = random_table(np.random.default_rng(0))
    log = marked(task.sample(6000, np.random.default_rng(1)), "truncated")
    view: Any = seen(studied(log, task.discount))
    assert isinstance(view, Seen)
    assert len(view.rows) <= 21_000
    assert view.count > 1000

"""Choosing features on the first episodes of a sample."""

from __future__ import annotations

import numpy as np
import pandas as pd

from o2td.evaluation.features import first_episodes
from tests.evaluation.episodes import block_of


def test_the_first_episodes_come_with_their_share_of_those_without_rows() -> None:
    """Every third episode is a single row that is cut: it has a start and no transition."""
    length = np.array([1, 3, 3] * 20)
    episode = np.repeat(np.arange(60), length)
    step = np.concatenate([np.arange(n) for n in length])
    log = pd.DataFrame({"episode": episode, "step": step, "state": step, "reward": 1.0})
    log = log.assign(rho=1.0, terminated=step == 2)
    sample = block_of(log)
    assert sample.lone is not None
    assert (sample.count, len(sample.rows), len(sample.lone)) == (40, 120, 20)
    part = first_episodes(sample, 60)
    assert part.lone is not None
    assert (part.count, len(part.rows), len(part.lone)) == (20, 60, 10)
    np.testing.assert_array_equal(part.key, sample.key[:20])
    np.testing.assert_array_equal(part.lone.key, sample.lone.key[:10])
    few = first_episodes(sample, 3)  # as many as folds need
    assert few.count == 10
    assert few.lone is not None
    assert len(few.lone) == 5
    assert first_episodes(sample, 120) is sample

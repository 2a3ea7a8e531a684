"""Small parts of sources that a changed line would have passed unnoticed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from o2td import sources
from o2td.errors import InputError


def log(**columns: Any) -> pl.DataFrame:
    plain = {"episode": [0, 0, 1, 1], "step": [0, 1, 0, 1], "state": [0, 1, 1, 0]}
    more = {"action": [0, 1, 0, 1], "reward": [1.0, 2.0, 3.0, 4.0], "rho": [1.0] * 4}
    ends = {"terminated": [False, True] * 2}
    found = {**plain, **more, **ends, **columns}
    return pl.DataFrame({name: column for name, column in found.items() if column is not None})


def test_an_action_that_neither_policy_takes_has_ratio_zero() -> None:
    logs = log(
        rho=None,
        target_logprob=[-np.inf, -0.5, -np.inf, 0.0],
        behavior_logprob=[-0.5, -0.5, -np.inf, -np.log(2.0)],
    )
    (chunk,) = sources.open_logs(logs, discount=0.9).chunks()
    np.testing.assert_allclose(chunk.rho, [0.0, 1.0, 0.0, 2.0])


def test_a_log_that_needs_sorting_is_not_divided(tmp_path: Path) -> None:
    file = tmp_path / "log.parquet"
    log()[[2, 0, 3, 1]].write_parquet(file)
    source = sources.open_logs(file, discount=0.9, sort=True)
    assert len(next(iter(source.chunks()))) == 4
    with pytest.raises(InputError, match="needs sorting is one part"):
        source.partitions(2)


def test_of_so_many_steps_only_the_last_is_cut_off() -> None:
    even = np.full((16, 4), 0.25)
    source = sources.rollouts("FrozenLake-v1", even, discount=0.9, steps=40, target=even)
    (chunk,) = source.chunks()
    assert len(chunk) == 40
    assert chunk.start.sum() < 20
    assert not (chunk.truncated[:-1] & ~chunk.terminated[:-1]).any()
    assert chunk.truncated[-1] or chunk.terminated[-1]

"""Chunks of rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from o2td import sources
from o2td.errors import InputError
from o2td.sources.log_rows import inputs_of, successors_of


def test_rows_whose_successor_is_not_the_next_row():
    log = pd.DataFrame(
        {
            "episode": [0, 0, 0, 1, 1],
            "rho": 1.0,
            "reward": 0.0,
            "state": [0, 1, 2, 3, 4],
            "next_state": [1, 9, 5, 4, 6],
            "terminated": [False, False, False, False, True],
            "truncated": [False, False, True, False, False],
        }
    )
    (chunk,) = sources.open_logs(log, discount=0.9).chunks()
    assert chunk.elsewhere().tolist() == [1, 2]  # not row 4, which ends
    seen = log.rename(columns={"state": "obs_0", "next_state": "next_obs_0"})
    (chunk,) = sources.open_logs(seen.assign(obs_1=0.0, next_obs_1=0.0), discount=0.9).chunks()
    assert chunk.elsewhere().tolist() == [1, 2]


def test_rows_with_neither_observations_nor_states():
    with pytest.raises(InputError, match="neither observations nor states"):
        inputs_of(None, None)
    for given in [(None, np.zeros(1)), (np.zeros(1), None)]:
        with pytest.raises(InputError, match="neither observations nor states"):
            successors_of(*given)

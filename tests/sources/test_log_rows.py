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


@pytest.mark.parametrize("known", [True, False])
def test_starts_are_first_rows_and_starts_of_episodes_without_rows_in_their_order(known):
    """The only row of episodes 0, 2 and 4 is cut before an end: its state is a start all the same."""
    log = pd.DataFrame({"episode": [0, 1, 1, 2, 3, 3, 4], "state": [5, 0, 1, 6, 2, 3, 7]})
    log = log.assign(
        action=0, reward=1.0, terminated=[False, False, True, False, False, True, False]
    )
    log = log.assign(truncated=[True, False, False, True, False, False, True])
    if known:
        log = log.assign(
            behavior_prob=0.5, target_prob_0=log.state / 10, target_prob_1=1 - log.state / 10
        )
    else:
        log = log.assign(rho=1.0)
    (chunk,) = sources.open_logs(log, discount=0.9).chunks()
    inputs, chances = chunk.starts()
    assert inputs.tolist() == [5, 0, 6, 2, 7]
    if known:
        np.testing.assert_allclose(chances[:, 0], inputs / 10)
        np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    else:
        assert chances is None
    whole = log[log.episode % 2 == 1]
    (chunk,) = sources.open_logs(whole, discount=0.9).chunks()
    inputs, chances = chunk.starts()
    assert inputs.tolist() == [0, 2]
    assert chances is None if not known else chances[:, 0].tolist() == [0.0, 0.2]

"""Logs that are written."""

from __future__ import annotations

import errno
from dataclasses import fields

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from o2td import sources
from o2td.errors import InputError, O2TDError
from o2td.sources import write
from tests.sources.small_logs import log_of, opened


def test_logs_that_cannot_be_written(tmp_path, monkeypatch):
    source, file = opened(log_of()), tmp_path / "log.parquet"
    with pytest.raises(InputError, match="there is no such folder; create it first"):
        sources.write_logs(source, tmp_path / "none" / "log.parquet")
    with pytest.raises(InputError, match="chunks must be a source, or chunks of one; got 3"):
        sources.write_logs(3, file)
    with pytest.raises(InputError, match="there are no rows to write"):
        sources.write_logs([], file)

    class Full:
        def __init__(self, *_, **__):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(write.pq, "ParquetWriter", Full)
    with pytest.raises(O2TDError, match=r"cannot be written .No space left.*; nothing was changed"):
        sources.write_logs(source, file)
    assert not file.exists()


def states(**columns):
    """Two episodes: one ends, one is cut before a state that no row has."""
    base = {"episode": [0, 0, 0, 1, 1], "step": [0, 1, 2, 0, 1], "state": [0, 1, 2, 3, 4]}
    base |= {"next_state": [1, 2, 9, 4, 7], "action": [0, 1, 0, 1, 1]}
    base |= {"reward": [1.0, 2.0, 3.0, 4.0, 5.0], "terminated": [False, False, True, False, False]}
    base |= {"truncated": [False, False, False, False, True]}
    return pd.DataFrame(base | columns)


def observed(**columns):
    log = states().drop(columns=["state", "next_state"])
    seen = np.arange(10.0).reshape(5, 2)
    log[["obs_0", "obs_1"]], log[["next_obs_0", "next_obs_1"]] = seen, seen + 10.0
    return log.assign(**columns)


BOTH = {"target_prob": [0.2, 0.4, 0.6, 0.8, 1.0], "behavior_prob": [0.5, 0.6, 0.7, 0.8, 0.9]}
EACH = {"behavior_prob": 0.5, "target_prob_0": 0.3, "target_prob_1": 0.7}
NEXT = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
AFTER = {"next_target_prob_0": NEXT, "next_target_prob_1": 1.0 - NEXT}


@pytest.mark.parametrize(
    ("log", "extra"),
    [
        (states(**BOTH), "state next_state behavior_prob target_prob"),
        (states(rho=[0.5, 1.0, 1.5, 2.0, 2.5]), "state next_state rho"),
        (states(**EACH), "state next_state behavior_prob target_prob_0 target_prob_1"
         " next_target_prob_0 next_target_prob_1"),
        (states(**EACH, **AFTER), "state next_state behavior_prob target_prob_0 target_prob_1"
         " next_target_prob_0 next_target_prob_1"),
        (observed(**BOTH), "obs_0 obs_1 next_obs_0 next_obs_1 behavior_prob target_prob"),
        (observed(rho=1.0).drop(columns="action").assign(action_0=0.5, action_1=[1.0, 2, 3, 4, 5]),
         "obs_0 obs_1 next_obs_0 next_obs_1 rho action_0 action_1"),
    ],
)  # fmt: skip
def test_what_is_written_is_read_as_the_same_rows(log, extra, tmp_path):
    source = opened(log)
    file = sources.write_logs(source, tmp_path / "log.parquet")
    plain = ["episode", "step", "reward", "terminated", "truncated"]
    plain += [] if "action_0" in log else ["action"]
    table = pq.read_table(file)
    assert sorted(table.column_names) == sorted([*plain, *extra.split()])
    given = "next_target_prob_0" in log
    for name in table.column_names:
        held = table.column(name).to_pylist()
        assert [one is None for one in held] == [
            (name.startswith("next_") and ends) or (name.startswith("next_target") and cut)
            for ends, cut in zip(log.terminated, log.truncated & (not given), strict=True)
        ], name
    (before,), (after,) = source.chunks(), opened(file).chunks()
    for part in fields(before):
        one, two = getattr(before, part.name), getattr(after, part.name)
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, two, err_msg=part.name)
        else:
            assert (one is None) == (two is None), part.name

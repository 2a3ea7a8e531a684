"""Records that stop: by chance, by a clock, or where ends are missing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from o2td.evaluation.log_tests.ends import Ends, Seen, _causes

from .episodes import block_of
from .study import studied


def records(seed: int, stops: float, where: int | None = None, episodes: int = 300) -> pd.DataFrame:
    """A walk among four states that ends with chance 0.1; records stop, everywhere or before one."""
    rng = np.random.default_rng(seed)
    rows = []
    for e in range(episodes):
        state = int(rng.integers(4))
        for _ in range(400):
            after, ends = int(rng.integers(4)), rng.random() < 0.1
            cut = not ends and (where is None or after == where) and rng.random() < stops
            row = {"episode": e, "state": state, "next_state": after, "action": 0, "rho": 1.0}
            rows.append(row | {"reward": float(state), "terminated": ends, "truncated": cut})
            if ends or cut:
                break
            state = after
    return pd.DataFrame(rows)


def found(log: pd.DataFrame):
    return Ends().find(studied(log, 0.9))


@pytest.mark.parametrize("seed", range(3))
def test_records_that_stop_by_chance_are_no_doubt_and_their_share_is_told(seed):
    log = records(seed, 0.1)
    one = found(log)
    cut = log[~log.terminated & ~log.duplicated("episode", keep="last")]
    assert (one.verdict, one.figure) == ("trust", pytest.approx(len(cut) / 300))


@pytest.mark.parametrize("seed", range(3))
def test_records_that_stop_before_one_state_miss_its_ends(seed):
    log = records(seed, 0.4, where=2)
    one = found(log)
    share = (~log.drop_duplicates("episode", keep="last").terminated).mean()
    assert (one.verdict, one.figure) == ("caution", pytest.approx(share))
    assert one.sentence.startswith(
        f"{share:.0%} of the records stop without an end, and more often"
    )


def test_without_records_that_stop_there_is_nothing_to_tell():
    assert found(records(0, 0.0)) is None


def test_causes_are_next_states_rewards_and_whether_the_state_stays():
    log = records(1, 0.1)
    ahead = np.where(log.terminated, log.state, log.next_state)  # an end leads nowhere else
    x = _causes(Seen(block_of(log)))
    assert x.shape == (len(log), 4 + 2)
    assert sorted(x[:, :4].sum(axis=0)) == sorted(np.bincount(ahead))
    np.testing.assert_array_equal(x[:, 4], log.reward)
    np.testing.assert_array_equal(x[:, 5], log.state == ahead)
    place = np.arange(len(log)) * 1.0
    seen = log.assign(obs_0=place, next_obs_0=place + 0.5).drop(columns=["state", "next_state"])
    x = _causes(Seen(block_of(seen)))
    np.testing.assert_array_equal(x[:, 0], np.where(log.terminated, place, place + 0.5))

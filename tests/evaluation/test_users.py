"""A column of users: they are resampled, and not their episodes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from o2td import evaluation
from o2td.errors import InputError
from o2td.sources import open_logs


def of_users(seed: int, users: int = 60, each: int = 10, spread: float = 1.0) -> pd.DataFrame:
    """Two-step episodes whose rewards differ by user; the mean over users is 0."""
    rng = np.random.default_rng([seed, 17])
    user = np.repeat(np.repeat(np.arange(users), each), 2)
    log = pd.DataFrame({"episode": np.repeat(np.arange(users * each), 2), "user": user})
    log["step"] = np.tile([0, 1], users * each)
    log["state"], log["terminated"] = log.step, log.step == 1
    log["rho"] = rng.choice([0.5, 1.5], size=len(log))
    log["reward"] = spread * rng.normal(size=users)[user] + 0.1 * rng.normal(size=len(log))
    return log


@pytest.mark.parametrize("method", ["lstd", "wis", "wdr"])
def test_intervals_are_as_wide_as_users_differ(method):
    log = of_users(0)
    users = evaluation.evaluate(log, discount=1.0, methods=method)[method]
    alone = evaluation.evaluate(log, discount=1.0, methods=method, columns={"user": "episode"})[
        method
    ]
    unnamed = evaluation.evaluate(log.drop(columns="user"), discount=1.0, methods=method)[method]
    assert alone.value == pytest.approx(unnamed.value)
    assert alone.standard_error == pytest.approx(unnamed.standard_error, rel=1e-6)
    assert users.value == pytest.approx(alone.value, rel=0.2, abs=0.05)
    # Two steps of one user's mean: a standard deviation of 2 over the root of 60 users.
    assert users.standard_error == pytest.approx(2.0 / np.sqrt(60), rel=0.3)
    assert alone.standard_error < 0.6 * users.standard_error
    assert users.high - users.low > 1.5 * (alone.high - alone.low)


def test_ten_users_are_few_and_one_is_none():
    few = evaluation.evaluate(of_users(1, 12), discount=1.0)
    assert few.verdict == "caution"
    assert "only 12 users" in few.reasons
    one = evaluation.evaluate(of_users(1, 1, 100), discount=1.0)
    assert one.verdict == "cannot answer"
    assert "one user" in " ".join(one.reasons)


def test_users_of_names_in_chunks_of_any_size(tmp_path):
    log = of_users(2).assign(user=lambda log: "u" + log.user.astype(str))
    log.to_csv(tmp_path / "log.csv", index=False)
    found = evaluation.evaluate(str(tmp_path / "log.csv"), discount=1.0, methods="lstd")
    held = evaluation.evaluate(log, discount=1.0, methods="lstd")
    assert found["lstd"].standard_error == pytest.approx(held["lstd"].standard_error)
    assert found["lstd"].low == pytest.approx(held["lstd"].low)


def test_an_episode_of_two_users_is_refused():
    log = of_users(3)
    log.loc[5, "user"] = 7
    with pytest.raises(InputError, match=r"column user, row 6 .* in an episode of another user"):
        open_logs(log, discount=1.0).scan()
    log["user"] = log.user.astype(float).where(log.index != 8)
    with pytest.raises(InputError, match=r"column user, row 8 .* missing"):
        open_logs(log.drop(index=5), discount=1.0, sort=False).scan()

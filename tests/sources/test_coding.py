"""Names, categories, times and ids as observations, states and actions."""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from o2td import sources
from o2td.cli import main
from o2td.errors import InputError
from o2td.sources import coding
from tests.sources.small_logs import log_of, opened, refused

ROWS = 1200
WEATHER = ("rain", "snow", "sun")
ACTIONS = ("buy", "hold", "sell")


def _log(seed=0):
    """Names in every role that may have them, and the numbers that they stand for."""
    rng = np.random.default_rng(seed)
    weather, action = rng.integers(0, 3, ROWS), rng.integers(0, 3, ROWS)
    chance = rng.dirichlet(np.ones(3), ROWS)
    names = pd.DataFrame(
        {
            "episode": [f"run {e}" for e in np.arange(ROWS) // 10],
            "obs_0": rng.normal(size=ROWS),
            "obs_1": np.array(WEATHER)[weather],
            "obs_2": pd.Timestamp("2024-03-01") + pd.to_timedelta(np.arange(ROWS), "h"),
            "obs_3": rng.random(ROWS) < 0.5,
            "action": np.array(ACTIONS)[action],
            "reward": rng.normal(size=ROWS) + weather,
            "terminated": np.arange(ROWS) % 10 == 9,
            "behavior_prob": 1 / 3,
        }
    )
    for j in (2, 0, 1):
        names[f"target_prob_{ACTIONS[j]}"] = chance[:, j]
    return names, weather, action, chance


def _csv(log, path):
    log.to_csv(path, index=False)
    return path


def _parquet(log, path):
    log.to_parquet(path)
    return path


def _categories(log, path):
    log = log.astype({"obs_1": "category", "action": "category"})
    log.to_feather(path)
    return path


def _ndjson(log, path):
    """JSON has no times, so they are numbers there."""
    seconds = (log["obs_2"] - pd.Timestamp(0)).dt.total_seconds()
    pl.from_pandas(log.assign(obs_2=seconds)).write_ndjson(path)
    return path


WAYS = {".csv": _csv, ".parquet": _parquet, ".feather": _categories, ".ndjson": _ndjson}


@pytest.mark.parametrize("suffix", WAYS)
@pytest.mark.parametrize("rows", [50, 65_536])
def test_names_are_the_numbers_that_they_stand_for(suffix, rows, joined, tmp_path):
    log, weather, action, chance = _log()
    source = sources.open_logs(WAYS[suffix](log, tmp_path / f"log{suffix}"), discount=0.9)
    got = joined(source, rows)
    begin = dt.datetime(2024, 3, 1, tzinfo=dt.UTC).timestamp()
    want = np.column_stack(
        [
            *(log["obs_0"], weather == 1, weather == 2),
            *(begin + 3600.0 * np.arange(ROWS), log["obs_3"]),
        ]
    )
    np.testing.assert_allclose(got["observation"], want)
    taken = chance[np.arange(ROWS), action]
    np.testing.assert_allclose(got["rho"], 3 * taken)
    assert source.info.codings["obs_1"].values == WEATHER
    assert "coded action: sell = 0, buy = 1, hold = 2" in str(source.info)
    assert source.info.mapping["observation"][1:3] == ("obs_1=snow", "obs_1=sun")


def test_successors_share_the_code(joined):
    log, weather, *_ = _log()
    following = np.append(weather[1:], 2)
    log = log[["episode", "obs_1", "reward", "terminated"]].rename(columns={"obs_1": "obs_0"})
    log = log.assign(next_obs_0=np.array(WEATHER)[following], rho=1.0)
    got = joined(
        sources.open_logs(
            log[log["obs_0"] != "sun"].assign(episode=np.arange((log["obs_0"] != "sun").sum())),
            discount=0.9,
        )
    )
    here = following[log["obs_0"] != "sun"]
    on = ~got["terminated"]
    assert (got["next_observation"][on] == np.stack([here == 1, here == 2], axis=1)[on]).all()


@pytest.mark.parametrize("kind", ["text", "hash", "bool"])
def test_states(kind, joined):
    rng = np.random.default_rng(3)
    number = rng.integers(0, 20 if kind != "bool" else 2, ROWS)
    names = {
        "text": np.array([f"user-{k:02}" for k in range(20)]),
        "hash": np.sort(rng.integers(2**40, 2**62, 20)),
        "bool": np.array([False, True]),
    }[kind]
    log = _log()[0][["episode", "reward", "terminated"]].assign(state=names[number], rho=1.0)
    got = joined(sources.open_logs(log, discount=0.9), 33)
    np.testing.assert_array_equal(got["state"], number)
    on = ~got["terminated"]
    np.testing.assert_array_equal(got["next_state"][on], np.append(number[1:], 0)[on])


def test_the_order_of_the_policy(joined):
    log, _, action, _ = _log()
    log = log.drop(columns=[f"target_prob_{name}" for name in ACTIONS])
    backwards = np.array([0.2, 0.3, 0.5])  # of sell, hold, buy

    class Classifier:
        classes_ = np.array(["sell", "hold", "buy"])

        def __call__(self, x):
            return np.tile(backwards, (len(x), 1))

    want = 3 * backwards[::-1][action]
    for options in (
        {"target": Classifier()},
        {"target": lambda x: np.tile(backwards, (len(x), 1)), "actions": ["sell", "hold", "buy"]},
    ):
        got = joined(sources.open_logs(log, discount=0.9, **options))
        np.testing.assert_allclose(got["rho"], want)


def test_what_cannot_be_coded_is_said(tmp_path):
    log, *_ = _log()
    many = log.assign(obs_1=[f"id {k}" for k in range(ROWS)])
    with pytest.raises(InputError, match=r"obs_1 holds more than 50 different texts; leave it out"):
        sources.open_logs(many, discount=0.9)
    unknown = log.assign(action=["short", *log["action"][1:]])
    with pytest.raises(
        InputError, match=r"column action, row 1 .* is 'short', which is none of sell"
    ):
        sources.open_logs(unknown, discount=0.9).scan()
    two = log.drop(columns=[f"target_prob_{name}" for name in ACTIONS])
    two = two.assign(target_prob_0=0.5, target_prob_1=0.5)
    with pytest.raises(
        InputError, match=r"2 probabilities, and the log names 3 actions \(buy, hold"
    ):
        sources.open_logs(two, discount=0.9).scan()
    log.loc[700, "obs_1"] = None
    with pytest.raises(InputError, match=r"column obs_1=snow, row 701 .* is missing"):
        sources.open_logs(log, discount=0.9).scan()
    wrong = log.assign(obs_0=["x", *log["obs_0"][1:].astype(str)])
    with pytest.raises(InputError, match=r"column obs_0, row 1 .* is 'x'; write a number"):
        sources.open_logs(_csv(wrong, tmp_path / "a.csv"), discount=0.9).scan()


def test_the_code_is_kept_in_the_model(tmp_path, capsys):
    log, *_ = _log()
    file, out = _parquet(log, tmp_path / "log.parquet"), tmp_path / "out"
    options = ["--methods", "lstd", "--features", "fourier:1", "--out", str(out)]
    assert main(["evaluate", str(file), "--discount", "0.9", *options]) == 0
    assert "coded obs_1" in capsys.readouterr().out
    asked = log[["obs_0", "obs_1", "obs_2", "obs_3"]].head(4).copy()
    asked["obs_1"] = ["snow", "sun", "snow", "sun"]  # no rain: the numbers stay
    _csv(asked, tmp_path / "new.csv")
    assert main(["predict", str(out / "model.npz"), str(tmp_path / "new.csv"), "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    asked.loc[0, "obs_1"] = "fog"
    _csv(asked, tmp_path / "new.csv")
    assert main(["predict", str(out / "model.npz"), str(tmp_path / "new.csv")]) == 2
    assert "is 'fog', which is none of rain, snow, sun" in capsys.readouterr().err
    assert first


def test_more_names_than_can_be_numbered(monkeypatch):
    monkeypatch.setattr(coding, "_NAMES", 4)
    log = log_of(state=[f"s{k % 3}" for k in range(12)])
    assert opened(log).scan().transitions == 12
    log["state"] = [f"s{k}" for k in range(12)]
    refused("column state holds more than 4 different names of states; group them", log)

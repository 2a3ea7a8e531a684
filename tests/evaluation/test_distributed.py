"""Passes in parts, merged in the order of the files, give the numbers of one pass.

The cluster here is this process: what workers would get is copied as it would be sent.
"""

from __future__ import annotations

import json
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from o2td import sources
from o2td.errors import O2TDError
from o2td.evaluation import distributed, evaluate

pytest.importorskip("distributed")


class Future:
    def __init__(self, value: Any) -> None:
        self._value, self.released = value, False

    def result(self) -> Any:
        return pickle.loads(pickle.dumps(self._value()))  # noqa: S301

    def release(self) -> None:
        self.released = True


class Client:
    """As much of Dask's client as a pass needs."""

    def __init__(self) -> None:
        self.futures: list[Future] = []

    def scatter(self, values: list[Any], broadcast: bool) -> list[Any]:
        assert broadcast
        return pickle.loads(pickle.dumps(values))  # noqa: S301

    def map(self, function: Any, parts: list[Any], statistic: Any, pure: bool) -> list[Future]:
        assert not pure  # or a second pass would get the first one's result
        made = [Future(lambda part=part: function(part, statistic)) for part in parts]
        self.futures += made
        return made


class Nearby:
    closed = False

    def __init__(self, address: str) -> None:
        self.address, self.client = address, Client()

    def close(self) -> None:
        type(self).closed = True


def write(folder: Path, states: bool, users: bool = False) -> None:
    """Three files; an episode crosses each cut, some ends are cut, some episodes are one row."""
    rng = np.random.default_rng(7)
    lengths = rng.integers(2, 6, 90)
    lengths[[3, 40]] = 1
    n, episode = int(lengths.sum()), np.repeat(np.arange(90), lengths)
    last = np.zeros(n, dtype=bool)
    last[np.cumsum(lengths) - 1] = True
    cut = last & (episode % 9 == 3)
    log = pd.DataFrame({"episode": episode, "action": rng.integers(0, 2, n)})
    if states:
        log["state"] = rng.integers(0, 5, n)
    else:
        log["obs_0"], log["obs_1"] = rng.random(n), rng.random(n)
    log["reward"] = rng.normal(size=n) + log["action"]
    log["terminated"], log["truncated"] = last & ~cut, cut
    log["behavior_prob"] = 0.5
    log["target_prob_0"], log["target_prob_1"] = 0.4, 0.6
    if users:
        log["user"] = [f"u{k % 30}" for k in episode]
    cuts = [0, 101, 222, n]
    for k, (low, high) in enumerate(pairwise(cuts)):
        log[low:high].to_parquet(folder / f"part-{k}.parquet")


def close(one: Any, two: Any, where: str = "") -> None:
    if isinstance(one, dict):
        assert set(one) == set(two), where
        for name in one:
            close(one[name], two[name], f"{where}.{name}")
    elif isinstance(one, list):
        assert len(one) == len(two), where
        for k, (a, b) in enumerate(zip(one, two, strict=True)):
            close(a, b, f"{where}[{k}]")
    elif isinstance(one, float) and isinstance(two, (int, float)):
        assert one == pytest.approx(two, rel=1e-7, abs=1e-9), where
    else:
        assert one == two, where


METHODS = ["lstd", "plugin", "lstdq", "magic", "wis", "pdis", "wpdis", "dr", "wdr", "is"]
CASES = {
    "states": (True, False, "tabular", {}),
    "features": (False, False, "fourier:1", {}),
    "users": (True, True, "tabular", {}),
    "segments": (True, False, "tabular", {"segments": "state"}),
}


@pytest.mark.parametrize("case", CASES)
def test_parts_give_the_numbers_of_the_whole(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states, users, features, options = CASES[case]
    write(tmp_path, states, users)
    options = {"lanes": 30, "features": features, "influence": True, **options}
    methods = METHODS if case in ("states", "features") else ["lstd", "wis", "dr"]
    here = evaluate(sources.open_logs(tmp_path, discount=0.9), methods=methods, **options)
    monkeypatch.setattr(distributed, "Cluster", Nearby)
    source = sources.open_logs(tmp_path, discount=0.9)
    with distributed.DaskLog(source, "tcp://here:1") as log:
        there = evaluate(log, methods=methods, **options)
        futures = log._client.futures
    assert Nearby.closed
    assert log.address == "tcp://here:1"
    assert len(futures) >= 6
    assert len(futures) == 3 * (log.passes - (case == "segments"))  # labels are read here
    assert all(one.released for one in futures)
    found = [json.loads(json.dumps(one.as_dict())) for one in (here, there)]
    for one in found:
        one["diagnostics"].pop("passes", None)
        one["diagnostics"].pop("condition", None)
        one.pop("audit", None)
    close(*found)
    told, info = source.info, sources.open_logs(tmp_path, discount=0.9).scan()
    for name in ("rows", "transitions", "episodes", "dropped", "notes"):
        assert getattr(told, name) == getattr(info, name), name


def test_workers_that_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, True)
    monkeypatch.setattr(distributed, "Cluster", Nearby)

    def gone(*_: Any, **__: Any) -> None:
        raise OSError("gone")

    monkeypatch.setattr(Client, "map", gone)
    source = sources.open_logs(tmp_path, discount=0.9)
    with (
        distributed.DaskLog(source, "tcp://here:1") as log,
        pytest.raises(O2TDError, match=r"--dask tcp://here:1: its workers are gone \(OSError\)"),
    ):
        evaluate(log, lanes=30)

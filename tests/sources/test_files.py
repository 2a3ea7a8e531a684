"""Files people have: each kind, from a generator to the same rows and to an answer of the command."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import polars as pl
import pytest

from o2td import sources
from o2td.cli import main
from o2td.errors import FormatError, InputError, O2TDError
from tests.sources.log_files import (
    EPISODES,
    KINDS,
    _arrays,
    _episodes,
    _flat,
    _ndjson,
    _steps,
    _whole,
    d4rl_hdf5,
    episodes_in_parquet,
    fixed_lists_in_arrow,
    fixed_lists_in_parquet_with_checksums,
    npz,
    npz_compressed,
    steps_in_ndjson,
)


@pytest.fixture(scope="module")
def want(joined):
    return joined(sources.open_logs(_flat(), discount=0.9))


def _same(got, want):
    for name, value in want.items():
        if value is not None and name not in ("key", "truncated"):
            known = ~np.isnan(value)  # rows of whole episodes know more of their last step
            close = {"rtol": 1e-6, "atol": 1e-12, "err_msg": name}
            np.testing.assert_allclose(got[name][known], value[known], **close)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_same_rows(kind, joined, want, tmp_path):
    source = sources.open_logs(kind(tmp_path), discount=0.9)
    for rows in (65_536, 7):
        _same(joined(source, rows), want)
    assert source.info.verified == (
        kind in (fixed_lists_in_parquet_with_checksums, npz, npz_compressed)
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_answer_in_one_command(kind, tmp_path, capsys):
    file = kind(tmp_path)
    options = ["--discount", "0.9", "--methods", "lstd", "--features", "fourier:1", "--json"]
    assert main(["evaluate", str(file), *options]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["estimates"]
    assert np.isfinite([answer["value"], answer["low"], answer["high"]]).all()


def test_a_dict_of_arrays(joined, want):
    _same(joined(sources.open_logs(_arrays(), discount=0.9), 50), want)


def test_per_action_probabilities_of_the_behaviour(joined, want):
    log = pl.DataFrame(list(_steps())).drop("behavior_prob")
    log = log.with_columns(behavior_probs=pl.lit([0.5, 0.5]))
    source = sources.open_logs(log, discount=0.9)
    _same(joined(source), want)
    assert source.info.ratio == "column target_probs_0 … / column behavior_probs_0 …"


def test_episodes_without_names_are_the_rows(joined, want, tmp_path):
    rows = [_whole(one) for one in _episodes()]
    file = _ndjson(tmp_path / "log.ndjson", ({**row, "episode": None} for row in rows))
    source = sources.open_logs(file, discount=0.9, columns={"episode": None})
    with pytest.raises(InputError, match=r"column episode, row 1 .* is missing"):
        source.scan()
    for row in rows:
        del row["episode"]
    source = sources.open_logs(_ndjson(file, rows), discount=0.9)
    _same(joined(source, 11), want)
    assert source.info.mapping["start"] == "start"


def test_episodes_without_their_final_observation(joined, want, tmp_path):
    rows = [_whole(one, final=False) for one in _episodes()]
    source = sources.open_logs(_ndjson(tmp_path / "log.ndjson", rows), discount=0.9)
    cut = len(range(0, EPISODES, 4))
    assert source.scan().dropped == {"no final observation": cut}


def test_vectors_of_different_length(tmp_path):
    rows = list(_steps())
    rows[2]["obs"] = [1.0, 2.0, 3.0]
    said = r"log.ndjson: column obs, row 3 \(.*\) has 3 numbers, the first row has 2; write as many"
    with pytest.raises(InputError, match=said):
        sources.open_logs(_ndjson(tmp_path / "log.ndjson", rows), discount=0.9).scan()


def test_lists_of_steps_of_different_length(tmp_path):
    rows = [_whole(one) for one in _episodes()]
    rows[4]["action"] = rows[4]["action"][:-1]
    said = r"column action, row 5 \(.*\) has \d entries and reward has \d; write one entry per step"
    with pytest.raises(InputError, match=said):
        sources.open_logs(_ndjson(tmp_path / "log.ndjson", rows), discount=0.9).scan()


def test_a_role_with_one_value_gets_two():
    log = pl.DataFrame(list(_steps())).with_columns(episode=pl.lit([1, 2]))
    with pytest.raises(InputError, match=r"column episode holds 2 values per row \(episode_0 …\)"):
        sources.open_logs(log, discount=0.9)


def test_arrays_that_cannot_be_read(tmp_path):
    file = tmp_path / "log.npz"
    np.savez(file, rewards=np.array([object()]))
    with pytest.raises(InputError, match=r"log\.npz: holds no arrays of numbers; write observ"):
        sources.open_logs(file, discount=0.9)
    npz(tmp_path)
    for cut in (20, file.stat().st_size // 2):
        file.write_bytes(file.read_bytes()[:cut])
        with pytest.raises(Exception, match=r"log\.npz: is damaged or not npz"):
            sources.open_logs(file, discount=0.9).scan()
    npz(tmp_path)
    raw = bytearray(file.read_bytes())
    raw[2000] ^= 1
    file.write_bytes(raw)
    with pytest.raises(Exception, match=r"log\.npz: is damaged or not npz \(Bad CRC-32"):
        sources.open_logs(file, discount=0.9).scan()


@pytest.mark.parametrize(
    "kind",
    [npz_compressed, d4rl_hdf5, steps_in_ndjson, episodes_in_parquet, fixed_lists_in_arrow],
    ids=lambda kind: kind.__name__,
)
def test_damage_gives_rows_or_a_sentence(kind, tmp_path):
    file = kind(tmp_path)
    raw, rng = file.read_bytes(), np.random.default_rng(7)
    for trial in range(40):
        damaged = bytearray(raw)
        for at in rng.integers(0, len(raw), 3):
            damaged[at] = rng.integers(0, 256)
        file.write_bytes(damaged[: rng.integers(1, len(raw))] if trial % 8 == 0 else damaged)
        with contextlib.suppress(O2TDError):
            sources.open_logs(file, discount=0.9).scan()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="a list of open files is Linux's")
@pytest.mark.parametrize("kind", [npz_compressed, d4rl_hdf5], ids=lambda kind: kind.__name__)
def test_no_file_stays_open_after_damage(kind, tmp_path):
    """The error is kept, and with it everything that its frames refer to."""
    file = kind(tmp_path)
    raw, rng, kept = file.read_bytes(), np.random.default_rng(7), []
    for _ in range(40):
        damaged = bytearray(raw)
        for at in rng.integers(0, len(raw), 3):
            damaged[at] = rng.integers(0, 256)
        file.write_bytes(damaged)
        try:
            sources.open_logs(file, discount=0.9).scan()
        except O2TDError as error:
            kept.append(error)
        opened = [one.readlink() for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
        assert file not in opened
    assert kept


def test_arrays_stored_by_columns(joined, want, tmp_path):
    arrays = _arrays() | {"behavior_prob": np.full(len(want["reward"]), 0.5)}
    del arrays["infos"]
    for name in ("observations", "target_probs"):
        arrays[name] = np.asfortranarray(arrays[name])
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "log.npz", **arrays)
        _same(joined(sources.open_logs(tmp_path / "log.npz", discount=0.9), 13), want)


def _bandit(count=2000):
    rng = np.random.default_rng(1)
    x, action = rng.normal(size=count), rng.integers(0, 2, count)
    return pd.DataFrame(
        {
            "timestamp": pd.date_range("2024-01-01", periods=count, freq="min")[::-1],
            "x_0": x,
            "action": action,
            "reward": 1 + x * action + rng.normal(scale=0.1, size=count),
            "pscore": 0.5,
            "target_prob_0": (x < 0) * 1.0,
            "target_prob_1": (x >= 0) * 1.0,
        }
    )


def test_a_bandit_log_is_understood(joined, tmp_path, capsys):
    source = sources.open_logs(_bandit())
    got = joined(source, 100)
    assert got["start"].all()
    assert got["terminated"].all()
    assert (got["discount"] == 0.0).all()
    assert "a bandit log" in str(source.info)
    with pytest.raises(InputError, match="no column for terminated"):
        sources.open_logs(_bandit(), discount=0.9)
    _bandit().to_csv(tmp_path / "log.csv", index=False)
    options = ["--methods", "lstd", "--features", "fourier:5", "--json"]
    assert main(["evaluate", str(tmp_path / "log.csv"), *options]) == 0
    (best,) = json.loads(capsys.readouterr().out)["estimates"]
    assert best["value"] == pytest.approx(1 + 1 / np.sqrt(2 * np.pi), abs=0.06)


def test_decisions_without_a_context_are_made_in_one_state(tmp_path, capsys):
    log = _bandit().drop(columns=["x_0", "target_prob_0", "target_prob_1"])
    log = log.assign(target_prob=np.where(log.action == 1, 0.9, 0.1))
    source = sources.open_logs(log)
    assert "one state" in str(source.info)
    log.to_csv(tmp_path / "log.csv", index=False)
    out = tmp_path / "out"
    assert main(["evaluate", str(tmp_path / "log.csv"), "--json", "--out", str(out)]) == 0
    answer = json.loads(capsys.readouterr().out)
    values = {one["method"]: one["value"] for one in answer["estimates"]}
    weight = log.target_prob / log.pscore
    assert values["wis"] == pytest.approx(np.average(log.reward, weights=weight), rel=1e-9)
    assert values["lstd"] == pytest.approx(values["wis"], rel=1e-9)
    assert (out / "report.html").exists()
    with pytest.raises(InputError, match="no observations"):
        sources.open_logs(log.assign(episode=range(len(log)), terminated=True), discount=0.9)


GROW = """
import pathlib, re, sys
from o2td import sources
source = sources.open_logs(sys.argv[1], discount=0.9, target="behavior")
rows = sum(len(chunk) for chunk in source.chunks())
status = pathlib.Path("/proc/self/status").read_text()  # getrusage would begin with the parent's
print(rows, int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) // 1024)
"""


@pytest.mark.parametrize("suffix", [".npz", ".hdf5", ".parquet", ".csv", ".ndjson", ".ndjson.gz"])
def test_memory_does_not_grow_with_the_file(suffix, tmp_path):
    """Arrays, lists and episodes of 1.2 million rows, 77 MB as numbers, and of half of them."""
    used = []
    for count in (600_000, 1_200_000):  # what is read ahead needs half of that
        file = tmp_path / f"{count}{suffix}"
        text = "ndjson" in suffix
        _large(file, count // 4 if text else count)
        done = subprocess.run(
            [sys.executable, "-c", GROW, str(file)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        rows, peak = map(int, done.stdout.split())
        assert rows == (count // 4 if text else count)
        used.append(peak)
    assert used[1] - used[0] < 35, used


def _large(file, count):
    rng = np.random.default_rng(0)
    end = np.arange(count) % 100 == 99
    arrays = {"observations": rng.normal(size=(count, 6)), "rewards": rng.normal(size=count)}
    arrays |= {"terminals": end, "timeouts": np.zeros(count, dtype=bool)}
    if file.suffix == ".npz":
        np.savez_compressed(file, **arrays)
    elif file.suffix == ".hdf5":
        with h5py.File(file, "w") as store:
            for name, values in arrays.items():
                store[name] = values
    elif file.suffix == ".csv":
        names = {f"obs_{k}": arrays["observations"][:, k].round(4) for k in range(6)}
        names |= {"episode": np.arange(count) // 100, "reward": arrays["rewards"].round(4)}
        pl.DataFrame({**names, "terminated": end}).write_csv(file)
    else:
        shape = (count // 100, 100)
        rows = pl.DataFrame(
            {
                "observations": arrays["observations"].reshape(*shape, 6),
                "rewards": arrays["rewards"].reshape(shape),
                "terminated": np.ones(shape[0], dtype=bool),
            }
        )
        if file.suffix == ".parquet":
            rows.write_parquet(file, row_group_size=500)
        else:
            rows.write_ndjson(file.with_suffix("") if file.suffix == ".gz" else file)
            if file.suffix == ".gz":
                file.write_bytes(gzip.compress(file.with_suffix("").read_bytes(), 1))


def test_a_line_may_be_longer_than_what_is_read_at_once(tmp_path, joined):
    """Episodes of 20, of 60,000 and of 20 steps as lines: that in the middle has over 5 MB."""
    rng, file = np.random.default_rng(0), tmp_path / "log.ndjson"
    rewards = [rng.normal(size=count) for count in (20, 60_000, 20)]
    rows = [
        {"observations": rng.normal(size=(len(r), 4)).tolist(), "rewards": r.tolist()}
        for r in rewards
    ]
    text = "\n\n".join(json.dumps({**row, "terminated": True}) for row in rows)
    assert max(map(len, text.splitlines())) > 5e6
    file.write_text(f"\n{text}\n \n")
    got = joined(sources.open_logs(str(file), discount=0.9, target="behavior"), 100_000)
    np.testing.assert_array_equal(got["reward"], np.concatenate(rewards))
    assert got["start"].sum() == 3
    second = text.split("\n\n")[1]
    file.write_text(text.replace(second, second.replace('"rewards": [', '"rewards": ["a", ', 1)))
    with pytest.raises((InputError, FormatError), match=r"log.ndjson: .*row 2|rewards"):
        joined(sources.open_logs(str(file), discount=0.9, target="behavior"), 100_000)

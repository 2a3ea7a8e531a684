"""Files people have: each kind, from a generator to the same rows and to an answer of the command."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import subprocess
import sys

import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from o2td import sources
from o2td.cli.main import main
from o2td.errors import InputError, O2TDError

EPISODES = 60


def _episodes(seed=0):
    """Episodes of a random walk on a line, as dicts of arrays, one observation more than steps."""
    rng = np.random.default_rng(seed)
    for e in range(EPISODES):
        steps = int(rng.integers(2, 9))
        x = np.cumsum(rng.normal(size=(steps + 1, 2)), axis=0)
        action = rng.integers(0, 2, steps)
        chance = 1 / (1 + np.exp(-x[:, 0]))
        ended = e % 4 > 0
        yield {
            "episode": e,
            "obs": x,
            "action": action,
            "reward": rng.normal(size=steps) + action,
            "behavior_prob": np.full(steps, 0.5),
            "target_probs": np.stack([1 - chance, chance], axis=1),
            "terminated": ended,
        }


def _steps():
    """One dict a step, vectors as lists."""
    for one in _episodes():
        count = len(one["reward"])
        for t in range(count):
            last = t == count - 1
            yield {
                "episode": one["episode"],
                "step": t,
                "obs": one["obs"][t].tolist(),
                "action": int(one["action"][t]),
                "reward": float(one["reward"][t]),
                "terminated": bool(last and one["terminated"]),
                "truncated": bool(last and not one["terminated"]),
                "next_obs": one["obs"][t + 1].tolist(),
                "behavior_prob": 0.5,
                "target_probs": one["target_probs"][t].tolist(),
            }


def _flat():
    """The log as it always could be read: one number a column."""
    log = pd.DataFrame(list(_steps()))
    for name in ("obs", "next_obs", "target_probs"):
        values = np.array(log.pop(name).to_list())
        for j in range(values.shape[1]):
            log[f"{name}_{j}"] = values[:, j]
    return log


def _named(record):
    position, speed = record["obs"]
    after, then = record["next_obs"]
    return record | {
        "obs": {"position": position, "speed": speed},
        "next_obs": {"position": after, "speed": then},
        "target_probs": dict(zip(["left", "right"], record["target_probs"], strict=True)),
    }


def _ndjson(path, records):
    with (gzip.open if path.suffix == ".gz" else open)(path, "wt") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
    return path


def _whole(one, final=True):
    """One row for an episode, lists inside."""
    count = len(one["reward"])
    keep = count + 1 if final else count
    row = {name: value.tolist() for name, value in one.items() if isinstance(value, np.ndarray)}
    row |= {"obs": one["obs"][:keep].tolist(), "target_probs": one["target_probs"][:keep].tolist()}
    truncated = not one["terminated"]
    return {"episode": one["episode"], **row, "terminated": not truncated, "truncated": truncated}


def lists_in_parquet(folder):
    pd.DataFrame(list(_steps())).to_parquet(folder / "log.parquet")
    return folder / "log.parquet"


def fixed_lists_in_arrow(folder):
    frame = pl.DataFrame(list(_steps()))
    vectors = pl.col("obs", "next_obs", "target_probs").list.to_array(2)
    frame.with_columns(vectors).write_ipc(folder / "log.arrow")
    return folder / "log.arrow"


def fixed_lists_in_parquet_with_checksums(folder):
    frame = pl.DataFrame(list(_steps()))
    vectors = pl.col("obs", "next_obs", "target_probs").list.to_array(2)
    table = frame.with_columns(vectors).to_arrow()
    pq.write_table(table, folder / "log.parquet", write_page_checksum=True, row_group_size=50)
    return folder / "log.parquet"


def structs_in_feather(folder):
    table = pa.Table.from_pylist([_named(record) for record in _steps()])
    pyarrow.feather.write_feather(table, folder / "log.feather")
    return folder / "log.feather"


def structs_in_ndjson(folder):
    return _ndjson(folder / "log.jsonl", map(_named, _steps()))


def lists_in_ndjson_gz(folder):
    return _ndjson(folder / "log.ndjson.gz", _steps())


def flat_csv_gz(folder):
    _flat().to_csv(folder / "log.csv.gz", index=False)
    return folder / "log.csv.gz"


def episodes_in_parquet(folder):
    pl.DataFrame([_whole(one) for one in _episodes()]).write_parquet(folder / "log.parquet")
    return folder / "log.parquet"


def episodes_in_ndjson(folder):
    return _ndjson(folder / "log.ndjson", map(_whole, _episodes()))


def steps_in_ndjson(folder):
    """A list of objects, one for each step, as JSON people write it."""
    rows = {}
    for record in _steps():
        rows.setdefault(record.pop("episode"), []).append(record)
    lines = [{"id": str(e), "policy": "old", "steps": steps} for e, steps in rows.items()]
    return _ndjson(folder / "log.ndjson", lines)


RLLIB = {
    "episode": "eps_id",
    "step": "t",
    "action": "actions",
    "reward": "rewards",
    "terminated": "terminateds",
    "truncated": "truncateds",
    "next_obs": "new_obs",
    "behavior_prob": "action_prob",
}


def _rllib(record):
    new = {RLLIB.get(name, name): value for name, value in record.items()}
    return new | {"action_logp": float(np.log(0.5)), "unroll_id": 3, "infos": {}}


def rllib_in_parquet(folder):
    rows = [{k: v for k, v in _rllib(one).items() if k != "infos"} for one in _steps()]
    pl.DataFrame(rows).write_parquet(folder / "log.parquet")
    return folder / "log.parquet"


def rllib_batches_in_json_lines(folder):
    """A line is a batch of steps, several episodes in it."""
    rows = [_rllib(one) for one in _steps()]
    lines = []
    for low in range(0, len(rows), 40):
        part = rows[low : low + 40]
        line = {name: [row[name] for row in part] for name in part[0]}
        lines.append({"type": "SampleBatch", **line})
    return _ndjson(folder / "log.jsonl", lines)


def lerobot(folder):
    """A folder of parquet files, one for each episode, with dots in the names of columns."""
    names = {
        "obs": "observation.state",
        "action": "action",
        "reward": "next.reward",
        "episode": "episode_index",
        "step": "frame_index",
    }
    (folder / "data").mkdir()
    rows = pl.DataFrame(list(_steps())).with_row_index("index")
    done = (pl.col("terminated") | pl.col("truncated")).alias("next.done")
    rows = rows.with_columns(done, timestamp=pl.col("step") / 30).rename(names)
    for (e,), part in rows.group_by("episode_index", maintain_order=True):
        part.write_parquet(folder / "data" / f"episode_{e:06}.parquet")
    return folder / "data"


def _arrays():
    log = _flat()
    stacked = lambda name: log[[f"{name}_0", f"{name}_1"]].to_numpy()  # noqa: E731
    return {
        "observations": stacked("obs"),
        "actions": log["action"].to_numpy(),
        "rewards": log["reward"].to_numpy()[:, None],
        "terminals": log["terminated"].to_numpy(),
        "timeouts": log["truncated"].to_numpy(),
        "next_observations": stacked("next_obs"),
        "infos": {"action_log_probs": np.full(len(log), np.log(0.5))},
        "target_probs": stacked("target_probs"),
    }


def npz(folder):
    arrays = _arrays()
    arrays["infos/action_log_probs"] = arrays.pop("infos")["action_log_probs"]
    np.savez(folder / "log.npz", **arrays)
    return folder / "log.npz"


def npz_compressed(folder):
    arrays = _arrays()
    arrays["behavior_prob"] = np.exp(arrays.pop("infos")["action_log_probs"]).astype(np.float32)
    np.savez_compressed(folder / "log.npz", returns=np.ones(3), **arrays)
    return folder / "log.npz"


def d4rl_hdf5(folder):
    with h5py.File(folder / "log.hdf5", "w") as file:
        for name, values in _arrays().items():
            if name == "infos":
                file["infos/action_log_probs"] = values["action_log_probs"]
            else:
                file[name] = values
        file["metadata/algorithm"] = "SAC"
        file["metadata/policy/fc0/weight"] = np.ones((3, 3))
    return folder / "log.hdf5"


KINDS = [
    *(lists_in_parquet, fixed_lists_in_arrow, fixed_lists_in_parquet_with_checksums),
    *(structs_in_feather, structs_in_ndjson, lists_in_ndjson_gz, flat_csv_gz),
    *(episodes_in_parquet, episodes_in_ndjson, steps_in_ndjson),
    *(rllib_in_parquet, rllib_batches_in_json_lines, lerobot, npz, npz_compressed, d4rl_hdf5),
]


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
    said = r"column action, row 5 \(.*\) has \d entries and reward has \d; write one entry a step"
    with pytest.raises(InputError, match=said):
        sources.open_logs(_ndjson(tmp_path / "log.ndjson", rows), discount=0.9).scan()


def test_a_role_with_one_value_gets_two():
    log = pl.DataFrame(list(_steps())).with_columns(episode=pl.lit([1, 2]))
    with pytest.raises(InputError, match=r"column episode holds 2 values a row \(episode_0 …\)"):
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


GROW = """
import resource, sys
from o2td import sources
source = sources.open_logs(sys.argv[1], discount=0.9, target="behavior")
rows = sum(len(chunk) for chunk in source.chunks())
print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.parametrize("suffix", [".npz", ".hdf5", ".parquet", ".ndjson"])
def test_memory_does_not_grow_with_the_file(suffix, tmp_path):
    """Arrays, lists and episodes of 1.2 million rows, 77 MB as numbers, and of a tenth of them."""
    used = []
    for count in (120_000, 1_200_000):
        file = tmp_path / f"{count}{suffix}"
        _large(file, count if suffix != ".ndjson" else count // 4)
        done = subprocess.run(
            [sys.executable, "-c", GROW, str(file)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        rows, peak = map(int, done.stdout.split())
        assert rows == (count if suffix != ".ndjson" else count // 4)
        used.append(peak)
    assert used[1] - used[0] < 70, used


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
            rows.write_ndjson(file)

"""One log in every kind of file that people have."""

from __future__ import annotations

import gzip
import json

import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

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
    """The log as it always could be read: one number per column."""
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

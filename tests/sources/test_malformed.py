"""What is wrong with a log is said in one sentence: file, column, row, remedy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from o2td import sources
from o2td.errors import FormatError, InputError

ROW = r"rows of data count from 1"


def _set(column, row, value):
    def change(log):
        log[column] = log[column].astype(object)
        log.loc[row, column] = value
        return log

    return change


def _move(log):
    first, second = log[log.episode == 0], log[log.episode == 1]
    return pd.concat([first.iloc[:-1], second, first.iloc[-1:], log[log.episode > 1]])


def _swap(log):
    rows = list(range(len(log)))
    rows[1], rows[2] = rows[2], rows[1]
    return log.iloc[rows]


CSV = {
    "text in a number": (
        _set("obs_1", 6, "high"),
        r"column obs_1, row 7 \(.*\) is 'high'; write a n",
    ),
    "text late": (
        _set("reward", 40, "n.a."),
        r"column reward, row 41 \(.*\) is 'n\.a\.'; write a num",
    ),
    "missing value": (
        _set("obs_0", 3, None),
        r"column obs_0, row 4 \(.*\) is missing.*; fill it in",
    ),
    "infinite": (_set("obs_2", 3, "inf"), r"column obs_2, row 4 \(.*\) is inf; fill it in"),
    "missing reward": (_set("reward", 1, None), r"column reward, row 2 \(.*\) is missing"),
    "missing action": (_set("action", 1, None), r"column action, row 2 \(.*\) is missing"),
    "missing flag": (
        _set("terminated", 2, None),
        r"column terminated, row 3 .* is missing; write tr",
    ),
    "odd flag": (
        _set("truncated", 5, "maybe"),
        r"column truncated, row 6 .* is 'maybe'; write true",
    ),
    "flag of two": (
        _set("terminated", 5, 2),
        r"column terminated, row 6 .* is '2'; write true or f",
    ),
    "missing episode": (_set("episode", 5, None), r"column episode, row 6 .* is missing"),
    "episode comes back": (
        _move,
        r"column episode, row 15 .* an episode that ended before; pass sort=True",
    ),
    "steps swapped": (_swap, r"column step, row 2 .* is 2 after 0; rows are missing in between"),
    "step twice": (
        _set("step", 2, 1),
        r"column step, row 3 .* is 1 twice in one episode; remove the",
    ),
    "gap": (lambda log: log.drop(index=2), r"column step, row 3 .* is 3 after 1; rows are missing"),
    "first rows missing": (lambda log: log.iloc[1:], r"column step, row 1 .* is 1|begin at step"),
    "backwards": (_set("step", 2, -4), r"column step, row 3 .* is -4 after 1; pass sort=True"),
    "fraction": (_set("step", 2, 2.5), r"column step, row 3 .*2\.5.*; write a whole number"),
    "probability": (_set("target_prob", 4, 1.2), r"column target_prob, row 5 .* is 1\.2; a probab"),
    "negative": (
        _set("behavior_prob", 4, -0.1),
        r"column behavior_prob, row 5 .* is -0\.1; a prob",
    ),
    "zero behaviour": (
        _set("behavior_prob", 4, 0.0),
        r"column behavior_prob, row 5 .* is 0 for the action taken, which the target may take; corr",
    ),
    "after the end": (
        _set("terminated", 1, True),
        r"column terminated, row 3 .* comes after the row that ended the episode; give the next",
    ),
}


def _log(frame):
    log = frame(episodes=14, seed=3)
    assert len(log[log.episode == 0]) >= 5
    return log


@pytest.mark.parametrize("name", CSV)
@pytest.mark.parametrize("rows", [3, 65_536])
def test_sentences_on_csv(frame, tmp_path, name, rows):
    change, sentence = CSV[name]
    file = tmp_path / "log.csv"
    change(_log(frame)).to_csv(file, index=False)
    with pytest.raises(InputError, match=sentence) as caught:
        for _ in sources.open_logs(file, discount=0.9).chunks(rows):
            pass
    text = str(caught.value)
    assert text.startswith(str(file))
    assert ROW in text
    assert "\n" not in text


TYPED = {
    "nested": ("obs_1", [[1.0, 2.0]], r"4 columns of observations .* and 3 of next observations"),
    "text": (
        "obs_1",
        ["a"],
        r"column obs_1 holds .*string and next_obs_1 holds double; write both",
    ),
    "time": (
        "obs_1",
        pd.to_datetime(["2020-01-01"]),
        r"column obs_1 holds timestamp.* and next_obs_1 holds double; write both with one type",
    ),
    "nested names": (
        "episode",
        [{"a": 1, "b": 2}],
        r"column episode holds 2 values per row \(episode.a …\), and episode is one; write one column",
    ),
}


@pytest.mark.parametrize("name", TYPED)
def test_sentences_on_types(frame, tmp_path, name):
    column, value, sentence = TYPED[name]
    log = _log(frame)
    log[column] = list(value) * len(log)
    log.to_parquet(tmp_path / "log.parquet")
    with pytest.raises(InputError, match=r"log\.parquet: " + sentence):
        sources.open_logs(tmp_path / "log.parquet", discount=0.9).scan()


MISSING = {
    "reward": ("reward", "no column for reward; add it"),
    "terminated": ("terminated", "no column for terminated; add it"),
    "episode": ("episode truncated", "no column for episode; add it"),
    "ratio": ("target_prob", "the target's probabilities are missing; add a column rho"),
    "obs": ("obs_0 obs_1 obs_2", "no observations; add columns obs_0"),
    "one obs": ("obs_1", "column obs_1 is missing before obs_2"),
    "one next": ("next_obs_2", "3 columns of observations .* and 2 of next"),
    "action": ("action behavior_prob", "no column for action, which the ratio needs"),
}


@pytest.mark.parametrize("name", MISSING)
def test_sentences_on_missing_columns(frame, name):
    columns, sentence = MISSING[name]
    with pytest.raises(InputError, match=sentence):
        sources.open_logs(_log(frame).drop(columns=columns.split()), discount=0.9).scan()


def test_files_that_are_empty(frame, tmp_path):
    empty = tmp_path / "a.parquet"
    empty.touch()
    with pytest.raises(FormatError, match=r"a\.parquet: is empty \(0 bytes\)"):
        sources.open_logs(empty, discount=0.9)
    _log(frame).iloc[:0].to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(InputError, match=r"b\.csv: has no rows"):
        sources.open_logs(tmp_path / "b.csv", discount=0.9).scan()
    with pytest.raises(InputError, match="no such file"):
        sources.open_logs(tmp_path / "c.csv", discount=0.9)
    with pytest.raises(InputError, match="no file matches"):
        sources.open_logs(tmp_path / "*.feather", discount=0.9)
    (tmp_path / "d.xlsx").write_text("x")
    with pytest.raises(InputError, match="unknown format"):
        sources.open_logs(tmp_path / "d.xlsx", discount=0.9)
    with pytest.raises(InputError, match=r"cannot be looked up .*too long"):
        sources.open_logs(5000 * "x", discount=0.9)


def test_files_that_differ(frame, tmp_path):
    log = _log(frame)
    first, second = log[log.episode < 7], log[log.episode >= 7]
    first.to_parquet(tmp_path / "1.parquet")
    second.drop(columns="obs_1").to_parquet(tmp_path / "2.parquet")
    with pytest.raises(
        InputError, match=r"2\.parquet: column obs_1 is missing, which .*1\.parquet"
    ):
        sources.open_logs(tmp_path, discount=0.9).scan()
    second.assign(episode=second.episode.astype(str)).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(
        InputError, match=r"2\.parquet: column episode holds .*string, in .*1\.parq"
    ):
        sources.open_logs(tmp_path, discount=0.9).scan()
    second.assign(reward="x").to_parquet(tmp_path / "2.parquet")
    with pytest.raises(InputError, match=r"2\.parquet: column reward holds .*string"):
        sources.open_logs(tmp_path, discount=0.9).scan()


@pytest.mark.parametrize("ending", ["parquet", "feather", "ndjson", "csv.gz"])
def test_files_cut_short(frame, tmp_path, ending):
    log = _log(frame)
    file = tmp_path / f"log.{ending}"
    if ending == "parquet":
        log.to_parquet(file)
    elif ending == "feather":
        log.to_feather(file)
    elif ending == "ndjson":
        log.to_json(file, orient="records", lines=True)
    else:
        log.to_csv(file, index=False)
    data = file.read_bytes()
    file.write_bytes(data[: len(data) * 2 // 3 - 5])
    with pytest.raises((FormatError, InputError), match=f"log.{ending}: .*"):
        sources.open_logs(file, discount=0.9).scan()


def test_a_file_of_another_format(tmp_path):
    for ending in ("parquet", "arrow"):
        file = tmp_path / f"log.{ending}"
        file.write_bytes(b"episode,reward\n" * 50)
        with pytest.raises(
            FormatError, match=f"is damaged or not {ending}.*; restore it from a copy"
        ):
            sources.open_logs(file, discount=0.9)


def test_ragged_csv_and_broken_json(frame, tmp_path):
    file = tmp_path / "log.csv"
    _log(frame).to_csv(file, index=False)
    lines = file.read_text().splitlines()
    lines[9] = "1,2,3"
    file.write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"row 9 .* has 3 fields, the header has 14; repair"):
        sources.open_logs(file, discount=0.9).scan()
    file = tmp_path / "log.ndjson"
    _log(frame).to_json(file, orient="records", lines=True)
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:4], lines[4][:-1], *lines[5:]]))
    with pytest.raises(InputError, match=r"log\.ndjson: row 5 .* is not JSON .*; repair"):
        sources.open_logs(file, discount=0.9).scan()
    file.write_text(
        "\n".join([*lines[:4], lines[4].replace('"obs_1":', '"obs_1":"x","z":'), *lines[5:]])
    )
    with pytest.raises(InputError, match=r"column obs_1, row 5 .* is 'x'; .*"):
        sources.open_logs(file, discount=0.9).scan()


def test_mixed_types_in_a_frame(frame):
    log = _log(frame)
    log["obs_1"] = log["obs_1"].astype(object)
    log.loc[4, "obs_1"] = "x"
    with pytest.raises(
        InputError, match=r"frame: column obs_1 mixes types, row 5 is 'x' among float"
    ):
        sources.open_logs(log, discount=0.9).scan()


def test_log_probabilities_and_per_action_probabilities(frame):
    log = _log(frame).drop(columns=["behavior_prob", "target_prob"])
    log["behavior_logprob"], log["target_logprob"] = -1.0, -1.0
    log.loc[4, "behavior_logprob"] = 0.5
    with pytest.raises(
        InputError, match=r"column behavior_logprob, row 5 .* is 0\.5; .* at most 0"
    ):
        sources.open_logs(log, discount=0.9).scan()
    assert sources.open_logs(log, discount=0.9, densities=True).scan().transitions > 0
    log.loc[4, "behavior_logprob"] = -np.inf
    with pytest.raises(
        InputError, match=r"column behavior_logprob, row 5 .* is -inf for the action"
    ):
        sources.open_logs(log, discount=0.9).scan()
    log = _log(frame).drop(columns="target_prob")
    log["target_prob_0"], log["target_prob_1"] = 0.25, 0.75
    log.loc[6, "target_prob_1"] = 0.5
    with pytest.raises(InputError, match=r"column target_prob_0, row 7 .* sum to 1"):
        sources.open_logs(log, discount=0.9).scan()
    log["target_prob_1"] = 0.75
    log.loc[6, "action"] = 2
    with pytest.raises(InputError, match=r"column action, row 7 .* is 2; the policy has 2 actions"):
        sources.open_logs(log, discount=0.9).scan()


def test_settings_that_cannot_be(frame, tmp_path):
    log = _log(frame)
    with pytest.raises(InputError, match=r"discount: 1\.5 is not in"):
        sources.open_logs(log, discount=1.5)
    with pytest.raises(InputError, match="discount: pass it"):
        sources.open_logs(log)
    with pytest.raises(InputError, match="unknown field `rewards_column`"):
        sources.open_logs(log, {"rewards_column": "reward"}, 0.9)
    with pytest.raises(InputError, match="no column 'profit', which columns names for reward"):
        sources.open_logs(log, {"reward": "profit"}, 0.9)
    with pytest.raises(InputError, match="not a path or a frame"):
        sources.open_logs(3.5, discount=0.9)
    twice = pa.table([pa.array([1]), pa.array([2])], names=["reward", "reward"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(InputError, match=r"two columns are called reward"):
        sources.open_logs(tmp_path / "twice.parquet", discount=0.9)

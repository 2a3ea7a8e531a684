"""Numbers, cells and frames that cannot be used are refused by name, and unused columns never."""

from __future__ import annotations

import csv
import gzip
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from o2td import sources
from o2td.errors import FormatError, InputError


def _log(rows=6, **columns):
    base = {"episode": 0, "step": np.arange(rows), "state": 1, "action": 0, "reward": 1.0}
    base |= {"terminated": np.arange(rows) == rows - 1, "rho": 1.0}
    return pd.DataFrame(base | columns)


def _refused(log, match, **options):
    with pytest.raises(InputError, match=match):
        sources.open_logs(log, discount=0.9, **options).scan()


@pytest.mark.parametrize("ends", [0, 2])
def test_a_log_without_any_transition(ends):
    log = _log(1 + ends, episode=range(1 + ends), step=0, terminated=False)
    said = rf"frame: no transition remains of {1 + ends} rows \(no final observation: {1 + ends}\)"
    _refused(log, said)


def test_episodes_that_vanish_are_noted():
    log = _log(4, episode=[0, 1, 1, 2], step=[0, 0, 1, 0], terminated=[False, False, True, False])
    source = sources.open_logs(log, discount=0.9)
    assert source.scan().notes == {"episodes of which no transition remains": 2}
    assert source.info.dropped == {"no final observation": 2}


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
@pytest.mark.parametrize("policy", [False, True])
def test_where_they_started_is_kept(rows, policy):
    """Before, between and after the others, whichever chunk they go with."""
    episode = [0, 1, 2, 2, 3, 4, 4, 5, 6]
    log = _log(
        9, episode=episode, step=[0, 0, 0, 1, 0, 0, 1, 0, 0], state=[5, 6, 0, 1, 7, 0, 1, 8, 9]
    )
    log = log.assign(terminated=[False, False, False, True, False, False, True, False, False])
    chances = np.arange(20).reshape(10, 2) + 1.0
    chances /= chances.sum(axis=1, keepdims=True)
    options = {"target": lambda s: chances[s]} if policy else {}
    log = log.assign(behavior_prob=0.5) if policy else log
    source = sources.open_logs(log, discount=0.9, **options)
    chunks = list(source.chunks(rows))
    assert all(len(chunk) for chunk in chunks)
    inputs, given = zip(*(chunk.starts() for chunk in chunks), strict=True)
    assert np.concatenate(inputs).tolist() == [5, 6, 0, 7, 0, 8, 9]
    if policy:
        assert np.concatenate(given).tolist() == chances[[5, 6, 0, 7, 0, 8, 9]].tolist()
    alone = [chunk.lone for chunk in chunks if chunk.lone is not None]
    keys = np.concatenate([lone.key for lone in alone])
    assert len(keys) == len(set(keys)) == 5
    assert not set(keys) & {key for chunk in chunks for key in chunk.key}


@pytest.mark.parametrize("name", ["reward", "rho", "obs_0", "next_obs_0"])
@pytest.mark.parametrize("size", [1e300, -1e200])
def test_numbers_whose_products_overflow(name, size):
    log = _log(obs_0=np.arange(6.0), next_obs_0=np.arange(1.0, 7.0)).drop(columns="state")
    log.loc[3, name] = size
    _refused(log, rf"column {name}, row 4 .* is .*e\+.*; correct it, or use a larger unit")


def test_large_numbers_within_reason_are_read():
    log = _log(reward=1e70, rho=1e70)
    assert sources.open_logs(log, discount=0.9).scan().transitions == 6


def test_a_ratio_that_overflows():
    log = _log(behavior_prob=1e-200, target_prob=0.5).drop(columns="rho")
    _refused(log, "column behavior_prob, row 1 .* gives a ratio that overflows")


@pytest.mark.parametrize("name", ["state", "episode"])
def test_whole_numbers_that_run_together_as_floats(name):
    _refused(_log(**{name: 2.0**60}), rf"column {name}, row 1 .* above 2\*\*53 apart: number")


@pytest.mark.parametrize(
    ("name", "cell", "said"),
    [
        ("state", "inf", "is 'inf'; write a whole number"),
        ("state", "99999999999999999999", "go up to 2"),
        ("state", "1.0", "is '1.0'; write it without a point"),
        ("action", "1.5", "is '1.5'; write a whole number"),
        ("episode", "x", "is 'x'; make the whole column numbers"),
    ],
)
def test_cells_after_the_part_that_types_are_taken_from(tmp_path, name, cell, said):
    log = _log(60_000)
    log[name] = log[name].astype(object)
    log.loc[59_990, name] = cell
    log.to_csv(tmp_path / "a.csv", index=False)
    _refused(tmp_path / "a.csv", f"column {name}, row 59991 .* {said}")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("state", 1.5, "is 1.5; write a whole number"),
        ("state", 2**64, "go up to 2"),
        ("state", 1.0, "is 1.0; write it without a point"),
        ("state", True, "is True; make the whole column one type"),
        ("action", 1.5, "is 1.5; write a whole number"),
        ("action", "a", "is 'a'; make the whole column one type"),
        ("episode", 7.0, "is 7.0; write it without a point"),
        ("reward", "x", "is 'x'; write a number"),
        ("reward", [1.0], "is .*; write one number per column"),
    ],
)
def test_objects_after_the_part_that_types_are_taken_from(tmp_path, name, value, said):
    log = _log(30_000).to_dict("records")
    log[29_990][name] = value
    (tmp_path / "a.ndjson").write_text("\n".join(json.dumps(one) for one in log))
    _refused(tmp_path / "a.ndjson", f"column {name}, row 29991 .* {said}")


@pytest.mark.parametrize(
    ("ending", "separator", "said"),
    [
        (".csv", ";", 'fields are separated by ";"; write it with commas'),
        (".csv", "|", r'fields are separated by "\|"; write it with commas'),
        (".csv", "\t", r"fields are separated by tabs; call it \.tsv"),
        (".tsv", ",", r"fields are separated by commas; call it \.csv"),
    ],
)
@pytest.mark.parametrize("decimal", [".", ","])
def test_a_table_with_another_separator(tmp_path, ending, separator, said, decimal):
    file = tmp_path / f"log{ending}"
    if separator == ",":
        decimal = "."
    _log(reward=0.5).to_csv(file, index=False, sep=separator, decimal=decimal)
    _refused(file, said)


def test_text_that_is_not_in_utf_8(tmp_path):
    file = tmp_path / "log.csv"
    _log().rename(columns={"reward": "profit €"}).to_csv(file, index=False, encoding="cp1252")
    with pytest.raises(FormatError, match=r"not in UTF-8 .*; save it as UTF-8"):
        sources.open_logs(file, {"reward": "profit €"}, 0.9)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz", ".ndjson"])
def test_text_of_several_bytes_per_character(tmp_path, encoding, ending):
    text = _log().to_json(orient="records", lines=True)
    if ending != ".ndjson":
        text = _log().to_csv(index=False, sep="\t" if ending == ".tsv" else ",")
    file = tmp_path / f"log{ending}"
    made = text.encode(encoding)
    file.write_bytes(gzip.compress(made) if ending.endswith(".gz") else made)
    with pytest.raises(FormatError, match=rf"is in {encoding[:6].upper()}.*; save it as UTF-8"):
        sources.open_logs(file, discount=0.9)


def test_names_in_ndjson_that_are_not_in_utf_8(tmp_path):
    file = tmp_path / "log.ndjson"
    log = _log().assign(episode="é")
    text = log.to_json(orient="records", lines=True, force_ascii=False)
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(FormatError, match=r"not in UTF-8 .*; save it as UTF-8"):
        sources.open_logs(file, discount=0.9).scan()


@pytest.mark.parametrize("name", ["reward", "state", "rho"])
def test_masked_arrays_in_a_dict(name):
    log = {one: column.to_numpy() for one, column in _log().items()}
    log["spare"] = np.ma.masked_array(np.zeros(6), mask=True)
    sources.open_logs(log, discount=0.9).scan()
    log[name] = np.ma.masked_array(log[name], mask=np.arange(6) == 2)
    _refused(log, f"arrays: {name} is a masked array; pass its rows without the masked ones")


def test_a_step_that_counts_on_from_episode_to_episode():
    log = _log(4, episode=[0, 0, 1, 1], terminated=[False, True, False, True])
    _refused(log, r"column step, row 3 .* is 2 in the first row of an episode, after 1; .* a time")
    source = sources.open_logs(log, {"time": "step"}, 0.9)
    assert source.scan().episodes == 2


def test_names_of_actions_where_the_ratio_needs_numbers():
    log = _log(action=list("abcabc"), target_prob=0.5).drop(columns="rho")
    source = sources.open_logs(log, discount=0.9)
    assert next(source.chunks()).action.tolist() == [0, 1, 2, 0, 1, 2]
    assert "coded action: a = 0, b = 1, c = 2" in str(source.info)
    assert "action" not in sources.open_logs(log.assign(rho=1.0), discount=0.9).info.mapping
    assert sources.open_logs(log.assign(rho=1.0), discount=0.9).scan().transitions == 6


@pytest.mark.parametrize(
    ("value", "said"), [(0.5, r"is 0\.5"), (2.0, r"is 2\.0"), (None, "is missing")]
)
@pytest.mark.parametrize("name", ["terminated", "truncated"])
def test_flags_are_true_or_false(name, value, said):
    log = _log(truncated=0.0).astype({"terminated": float})
    log.loc[2, name] = value
    _refused(log, rf"column {name}, row 3 .* {said}; write true or false")


def test_infinity_before_a_text_cell(tmp_path):
    log = _log(state=["1", "inf", "x", "1", "1", "1"])
    log.to_csv(tmp_path / "a.csv", index=False)
    _refused(tmp_path / "a.csv", "column state, row 2 .* is 'inf'; write a whole number")


def test_a_long_field_hides_no_bad_cell(tmp_path):
    before = csv.field_size_limit()
    log = _log(note="n" * 200_000, reward=[1.0, 1.0, "x", 1.0, 1.0, 1.0])
    log.to_csv(tmp_path / "a.csv", index=False)
    _refused(tmp_path / "a.csv", "column reward, row 3 .* is 'x'; write a number")
    assert csv.field_size_limit() == before


def test_a_bad_cell_in_a_compressed_file(tmp_path):
    log = _log(reward=[1.0, 1.0, "x", 1.0, 1.0, 1.0])
    with pa.CompressedOutputStream(str(tmp_path / "a.csv.zst"), "zstd") as file:
        file.write(log.to_csv(index=False).encode())
    _refused(tmp_path / "a.csv.zst", "column reward, row 3 .* is 'x'; write a number")


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ([[0, 1.0], [1, 2.0]], "logs: list among the paths"),
        ({"reward": [1.0]}, "logs: dict is not a path or a frame"),
        (np.zeros((2, 2)), "logs: ndarray is not a path or a frame"),
        (pd.concat([_log(), _log()[["reward"]]], axis=1), "two columns are called reward"),
    ],
)
def test_what_is_no_log(log, said):
    _refused(log, said)


def test_only_columns_in_use_have_to_be_of_one_type():
    log = _log(extra=[1, "a", None, 2.5, [3], "b"], more=[None] * 6)
    assert sources.open_logs(log, discount=0.9).scan().transitions == 6
    log["reward"] = [1, "a", None, 2.5, 1, "b"]
    _refused(log, "column reward mixes types, row 2 is 'a' among float")

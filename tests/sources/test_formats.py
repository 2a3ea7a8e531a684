"""Every format, chunk size, cut and order gives the same rows."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from o2td import features, sources
from o2td.errors import InputError


def _write(log, folder):
    """The same log in every format; text keeps 17 digits, so nothing is lost."""
    table = pa.Table.from_pandas(log, preserve_index=False)
    files = {
        "parquet": folder / "log.parquet",
        "plain parquet": folder / "plain.pq",
        "csv": folder / "log.csv",
        "tsv": folder / "log.tsv",
        "csv.gz": folder / "log.csv.gz",
        "ndjson": folder / "log.ndjson",
        "jsonl.gz": folder / "log.jsonl.gz",
        "feather": folder / "log.feather",
        "arrow": folder / "log.arrow",
        "stream": folder / "log.arrows",
    }
    pq.write_table(table, files["parquet"], write_page_checksum=True, row_group_size=5)
    pq.write_table(table, files["plain parquet"])
    log.to_csv(files["csv"], index=False)
    log.to_csv(files["tsv"], index=False, sep="\t")
    log.to_csv(files["csv.gz"], index=False)
    pl.DataFrame(table).write_ndjson(files["ndjson"])
    log.to_json(files["jsonl.gz"], orient="records", lines=True, double_precision=15)
    feather.write_feather(table, files["feather"])
    with pa.OSFile(str(files["arrow"]), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
        out.write_table(table, max_chunksize=4)
    with (
        pa.OSFile(str(files["stream"]), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema) as out,
    ):
        out.write_table(table, max_chunksize=3)
    return files


def _pieces(log, cuts):
    return [log.iloc[low:high] for low, high in pairwise([0, *cuts, len(log)])]


@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize("names", [True, False])
def test_all_formats_give_the_same_rows(frame, joined, same, tmp_path, final, names):
    log = frame(final=final, names=names)
    want = joined(sources.open_logs(log, discount=0.9))
    assert len(want["reward"]) > 30
    for kind, file in _write(log, tmp_path).items():
        for rows in (7, 65_536):
            got = joined(sources.open_logs(file, discount=0.9), rows)
            if kind == "jsonl.gz":  # pandas writes 15 digits
                for name, value in want.items():
                    if value is not None and value.dtype == np.float64:
                        np.testing.assert_allclose(got[name], value, rtol=1e-9, atol=1e-12)
            else:
                same(want, got)


@pytest.mark.parametrize("final", [True, False])
def test_chunk_sizes_do_not_matter(frame, joined, same, tmp_path, final):
    log = frame(final=final)
    file = tmp_path / "log.parquet"
    pq.write_table(pa.Table.from_pandas(log), file, row_group_size=11)
    source = sources.open_logs(file, discount=0.9)
    want = joined(source)
    dropped = source.info.dropped
    assert dropped == ({} if final else {"no final observation": 4})
    for rows in (1, 2, 3, 7, 11, 64):
        same(want, joined(source, rows))
        assert source.info.dropped == dropped
        assert source.info.episodes == want["episode"][-1] + 1
        assert source.info.rows == len(log)


def test_frames_of_all_libraries(frame, joined, same):
    log = frame()
    table = pa.Table.from_pandas(log, preserve_index=False)
    want = joined(sources.open_logs(log, discount=0.9))
    frames = [table, table.combine_chunks().to_batches()[0], pl.DataFrame(table)]
    for other in [*frames, pl.DataFrame(table).lazy(), ds.dataset(table)]:
        for rows in (4, 1000):
            same(want, joined(sources.open_logs(other, discount=0.9), rows))


def test_successors_are_the_rows_that_follow(frame, joined):
    log = frame(final=False)
    got = joined(sources.open_logs(log, discount=0.9))
    place = 0
    for e, (_, rows) in enumerate(log.groupby("episode")):
        path = rows[["obs_0", "obs_1", "obs_2"]].to_numpy()
        ends = bool(rows.terminated.iloc[-1])
        for t in range(len(rows) if ends else len(rows) - 1):
            np.testing.assert_array_equal(got["observation"][place], path[t])
            if t < len(rows) - 1:
                np.testing.assert_array_equal(got["next_observation"][place], path[t + 1])
            assert got["discount"][place] == (0.0 if ends and t == len(rows) - 1 else 0.9)
            assert got["step"][place] == t
            assert got["start"][place] == (t == 0)
            place += 1
        assert e >= 0
    assert place == len(got["reward"])
    ratio = log.target_prob / log.behavior_prob
    assert set(got["rho"]) <= set(ratio)


def test_folders_globs_and_natural_order(frame, joined, same, tmp_path):
    log = frame(episodes=30)
    want = joined(sources.open_logs(log, discount=0.9))
    pieces = _pieces(log, [len(log) * k // 12 for k in range(1, 12)])
    for number, piece in enumerate(pieces):
        piece.to_csv(tmp_path / f"part-{number}.csv", index=False)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "notes.txt").write_text("not a log")
    paths = [tmp_path / f"part-{number}.csv" for number in range(12)]
    for logs in (tmp_path, str(tmp_path / "part-*.csv"), paths):
        source = sources.open_logs(logs, discount=0.9)
        same(want, joined(source))
        assert len(source.info.files) == 12
        assert source.info.unverified == source.info.files


def test_sort_restores_the_order(frame, joined, same, tmp_path, monkeypatch):
    log = frame(episodes=40, final=False)
    want = joined(sources.open_logs(log, discount=0.9))
    mixed = log.sample(frac=1.0, random_state=1)
    mixed.iloc[:70].to_parquet(tmp_path / "a.parquet")
    mixed.iloc[70:].to_parquet(tmp_path / "b.parquet")
    with pytest.raises(InputError, match="sort=True"):
        sources.open_logs(tmp_path, discount=0.9).scan()
    same(want, joined(sources.open_logs(tmp_path, discount=0.9, sort=True), 13))
    monkeypatch.setattr("o2td.sources.sort._RANGE_BYTES", 20 * 8 * 14)  # ten ranges instead of one
    same(want, joined(sources.open_logs(tmp_path, discount=0.9, sort=True)))


def test_sort_of_named_episodes_and_without_steps(frame, joined, same, monkeypatch):
    monkeypatch.setattr("o2td.sources.sort._RANGE_BYTES", 20 * 8 * 14)
    log = frame(episodes=20, names=True)
    want = joined(sources.open_logs(log, discount=0.9))
    woven = log.sort_values(["step", "episode"])  # as a vector environment would write it
    same(want, joined(sources.open_logs(woven, discount=0.9, sort=True)))
    same(want, joined(sources.open_logs(woven.drop(columns="step"), discount=0.9, sort=True)))


def test_messages_after_sorting_name_the_original_place(frame, tmp_path):
    log = frame(episodes=5).iloc[::-1].reset_index(drop=True)
    log.loc[3, "obs_1"] = np.nan
    log.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(InputError, match=r"log\.csv: column obs_1, row 4 "):
        sources.open_logs(tmp_path / "log.csv", discount=0.9, sort=True).scan()


@pytest.mark.parametrize("cuts", [[5, 9, 30], [1, 2, 3, 4], [20, 21, 40, 41]])
def test_partitions_hold_every_row_once(frame, joined, same, tmp_path, cuts):
    log = frame(episodes=12, final=False)
    for number, piece in enumerate(_pieces(log, cuts)):
        piece.to_parquet(tmp_path / f"{number}.parquet")
    source = sources.open_logs(tmp_path, discount=0.9)
    want = joined(source)
    for count in (None, 1, 2, 3):
        parts = [pickle.loads(pickle.dumps(part)) for part in source.partitions(count)]  # noqa: S301
        got = [joined(part, 4) for part in parts if any(True for _ in part.chunks())]
        whole = {
            name: None if value is None else np.concatenate([part[name] for part in got])
            for name, value in want.items()
        }
        same(want, whole, but=("episode",))
        assert sum(int(part["start"].sum()) for part in got) == want["episode"][-1] + 1


def test_partition_with_boundary_at_every_row(frame, joined, same, tmp_path):
    log = frame(episodes=6)
    for number in range(len(log)):
        log.iloc[number : number + 1].to_parquet(tmp_path / f"{number}.parquet")
    source = sources.open_logs(tmp_path, discount=0.9)
    want = joined(source)
    parts = [part for part in source.partitions() if any(True for _ in part.chunks())]
    got = [joined(part) for part in parts]
    assert all(part["start"][0] for part in got)
    np.testing.assert_array_equal(np.concatenate([p["reward"] for p in got]), want["reward"])


def test_transitions_of_dense_sparse_and_table_features(frame):
    log = frame(final=False)
    source = sources.open_logs(log, discount=0.9)
    fourier = features.Fourier(order=1).fit(log[["obs_0", "obs_1", "obs_2"]].to_numpy())
    tiles = features.Tiles(2, 4).fit(log[["obs_0", "obs_1", "obs_2"]].to_numpy())
    cells = features.GridAggregation(4).fit(log[["obs_0", "obs_1", "obs_2"]].to_numpy())
    for rows in (5, 1000):
        for chunk in source.chunks(rows):
            go_on = ~chunk.terminated
            for phi, layout in ((fourier, "dense"), (tiles, "csr"), (cells, "table")):
                batch = source.transitions(phi, chunk)
                assert batch.layout == layout
                here = phi.transform(chunk.observation)
                after = phi.transform(chunk.next_observation)
                gap = batch.phi - here
                next_gap = batch.next_phi[go_on] - after[go_on]
                assert abs(gap).max() < 1e-12
                assert not go_on.any() or abs(next_gap).max() < 1e-12
                np.testing.assert_array_equal(batch.rho, chunk.rho)
                np.testing.assert_array_equal(batch.start, chunk.start)


def test_transitions_of_states():
    log = pa.table(
        {
            "episode": [0, 0, 0, 1, 1],
            "state": [0, 2, 1, 0, 3],
            "reward": [0.0, 1.0, 2.0, 3.0, 4.0],
            "terminated": [False, False, True, False, True],
            "rho": [1.0, 0.5, 2.0, 1.0, 1.0],
        }
    )
    source = sources.open_logs(log, discount=0.9)
    (chunk,) = source.chunks()
    assert chunk.next_state.tolist() == [2, 1, -1, 3, -1]
    for phi in (features.Tabular(4), np.eye(4)):
        batch = source.transitions(phi, chunk)
        assert batch.layout == "table"
        assert batch.state.tolist() == [0, 2, 1, 0, 3]
        assert batch.next_state.tolist() == [2, 1, -1, 3, -1]

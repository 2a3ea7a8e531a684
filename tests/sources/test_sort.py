"""Sorting in bounded memory: ranges of episodes are even, whatever is sampled, and rows keep places."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from o2td.errors import InputError
from o2td.sources import open_logs, sort


def files_of(place: Path):
    return open_logs(place, discount=0.9, target="behavior")._parts


class Batches:
    """A part whose batches have these lengths, with episodes 0, 1, 2, ... in a random order."""

    label = "made"

    def __init__(self, lengths: list[int]) -> None:
        self.names = np.random.default_rng(0).permutation(sum(lengths))
        self.lengths = lengths

    def batches(self, kinds, rows):
        first = 0
        for length in self.lengths:
            column = sort.pa.array(self.names[first : first + length])
            yield sort.pa.RecordBatch.from_arrays([column], names=["episode"])
            first += length


def test_the_sample_is_every_so_manyth_row_of_all_batches(monkeypatch):
    """Batches of odd lengths: the step goes on over their ends, and halving keeps even places."""
    monkeypatch.setattr(sort, "_SAMPLE", 10)
    part = Batches([7, 5, 3, 11, 1, 9, 13, 2, 6])
    names, every, taken = part.names, 1, np.zeros(0, dtype=int)
    first = 0
    for length in part.lengths:
        here = np.arange(first, first + length)
        taken = np.concatenate([taken, here[here % every == 0]])
        first += length
        while len(taken) > 20:
            every *= 2
            taken = taken[taken % every == 0]
    assert every > 1
    ordered = np.sort(names[taken])
    ranges = 1 + len(names) // 6
    wanted = {int(ordered[len(ordered) * k // ranges]) for k in range(1, ranges)}
    assert sort._bounds([part], "episode", "int", 6).tolist() == sorted(wanted)


def test_ranges_hold_about_as_many_rows_as_asked_and_at_most_so_many(monkeypatch):
    part = Batches([1000, 1000])
    bounds = sort._bounds([part], "episode", "int", 500)
    assert bounds.tolist() == [400, 800, 1200, 1600]
    assert len(sort._bounds([part], "episode", "int", 2001)) == 0
    assert sort._bounds([part], "episode", "int", 2000).tolist() == [1000]
    monkeypatch.setattr(sort, "_MAX_RANGES", 3)
    assert sort._bounds([part], "episode", "int", 1).tolist() == [666, 1333]


@pytest.mark.parametrize("names", [None, ["a", "b", "c", "d"]])
def test_every_row_of_every_range_says_where_it_came_from(tmp_path: Path, monkeypatch, names):
    monkeypatch.setattr(sort, "_RANGE_BYTES", 8 * 5 * 3)  # three rows of five columns
    episode = np.array([3, 1, 0, 2, 1, 3, 0, 2])
    step = np.array([1, 1, 0, 1, 0, 0, 1, 0])
    for k, rows in enumerate(([0, 1, 2], [3, 4, 5, 6, 7])):
        more = {"reward": rows, "state": 0, "terminated": False}
        frame = pl.DataFrame({"episode": episode[rows], "step": step[rows], **more})
        if names:
            frame = frame.with_columns(pl.Series("episode", [names[e] for e in episode[rows]]))
        frame.write_parquet(tmp_path / f"part-{k}.parquet")
    kind = "name" if names else "int"
    kinds = {"episode": kind, "step": "int", "reward": "float"}
    work = tmp_path / "work"
    work.mkdir()
    file = sort.sorted_file(files_of(tmp_path), kinds, "episode", "step", work)
    found = pl.read_parquet(file)
    order = np.lexsort([step, episode])
    assert found["reward"].to_list() == order.astype(float).tolist()
    assert found[sort.PART].to_list() == [int(k > 2) for k in order]
    assert found[sort.ROW].to_list() == [int(k if k < 3 else k - 3) for k in order]
    assert [one.name for one in work.iterdir()] == ["sorted.parquet"]


def test_episodes_without_a_name_cannot_be_sorted(tmp_path: Path):
    file = tmp_path / "log.parquet"
    frame = pl.DataFrame({"episode": [0, None, 1], "state": 0, "reward": 0.0, "terminated": True})
    frame.write_parquet(file)
    with pytest.raises(InputError, match=r"log\.parquet: column episode has missing values"):
        sort._bounds(files_of(file), "episode", "int", 10)

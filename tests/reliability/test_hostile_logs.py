"""Logs made to harm or to mislead: refused by name, or read for what they are, in little memory."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from o2td.errors import FormatError, InputError
from o2td.sources import open_logs


def columns(rows: int = 300) -> dict[str, Any]:
    rng, step = np.random.default_rng(0), np.arange(rows) % 5
    return {
        "episode": np.arange(rows) // 5, "step": step, "state": rng.integers(0, 3, rows),
        "action": rng.integers(0, 2, rows), "reward": rng.normal(size=rows),
        "terminated": step == 4, "rho": rng.uniform(0.5, 1.5, rows),
    }  # fmt: skip


def read(path: Path) -> int:
    """How many rows a log has."""
    return sum(len(rows) for rows in open_logs(str(path), discount=0.9).chunks())


# -- HDF5 files that lead elsewhere ----------------------------------------------------------------


@pytest.fixture
def hdf5(tmp_path: Path) -> Iterator[Any]:
    h5py = pytest.importorskip("h5py")
    secret = np.zeros(300)
    secret.tofile(tmp_path / "secret")
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["reward"] = secret
    with h5py.File(tmp_path / "log.h5", "w") as file:
        for name, values in columns().items():
            if name != "reward":
                file[name] = values
        yield file


def test_hdf5_stored_in_a_file_of_any_kind_is_refused(hdf5: Any, tmp_path: Path) -> None:
    """Else a log could show what is in a file that its sender may not read."""
    where = [(str(tmp_path / "secret"), 0, 2400)]
    hdf5.create_dataset("reward", (300,), dtype="f8", external=where)
    hdf5.close()
    with pytest.raises(InputError, match=r"log\.h5: reward is stored in another file"):
        read(tmp_path / "log.h5")


@pytest.mark.parametrize("elsewhere", [True, False])
def test_virtual_hdf5_is_read_within_one_file_only(
    elsewhere: bool, hdf5: Any, tmp_path: Path
) -> None:
    import h5py

    hdf5["kept/reward" if elsewhere else "kept"] = np.zeros(300)
    layout = h5py.VirtualLayout(shape=(300,), dtype="f8")
    file, name = (str(tmp_path / "other.h5"), "reward") if elsewhere else (".", "kept")
    layout[:] = h5py.VirtualSource(file, name, shape=(300,), dtype="f8")
    hdf5.create_virtual_dataset("reward", layout)
    hdf5.close()
    if not elsewhere:
        assert read(tmp_path / "log.h5") == 300
        return
    with pytest.raises(InputError, match="reward is stored in another file"):
        read(tmp_path / "log.h5")


def test_links_of_hdf5_are_not_followed_out_of_it_or_in_circles(hdf5: Any, tmp_path: Path) -> None:
    import h5py

    hdf5["reward"] = np.zeros(300)
    hdf5["group/circle"] = h5py.SoftLink("/group")
    hdf5["group/itself"] = hdf5["group"]
    hdf5["lost"] = h5py.SoftLink("/nowhere")
    hdf5["away"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/reward")
    hdf5.create_dataset("words", data=["a"] * 300, dtype=h5py.string_dtype())
    hdf5.create_dataset("lists", (300,), dtype=h5py.vlen_dtype(np.float64))
    hdf5.close()
    assert read(tmp_path / "log.h5") == 300


# -- folders with links ----------------------------------------------------------------------------


def test_folders_that_lead_in_circles_are_read_once(tmp_path: Path) -> None:
    pl.DataFrame(columns()).write_parquet(tmp_path / "log.parquet")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "up").symlink_to("..")
    assert read(tmp_path) == 300


@pytest.mark.parametrize("to", ["moved-away.parquet", "lost.parquet"])
def test_a_link_to_nothing_is_not_left_out_unnoticed(to: str, tmp_path: Path) -> None:
    """Also one that leads to itself."""
    pl.DataFrame(columns()).write_parquet(tmp_path / "log.parquet")
    (tmp_path / "lost.parquet").symlink_to(to)
    for given in (tmp_path, tmp_path / "*.parquet"):
        with pytest.raises(FormatError, match=r"lost\.parquet: is a link to nothing"):
            read(given)
    (tmp_path / "lost.parquet").unlink()
    assert read(tmp_path) == 300


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match="no log files"):
        read(tmp_path)
    with pytest.raises(FormatError, match="is empty"):
        read(tmp_path / "pipe.csv")


# -- small files that hold much --------------------------------------------------------------------

HEADER = b"episode,step,state,action,reward,terminated,rho\n"
READ = """
import resource, sys
from o2td.errors import O2TDError
from o2td.sources import open_logs
for path in sys.argv[1:]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        for rows in open_logs(path, discount=0.9).chunks():
            pass
        print("read", end=" ")
    except O2TDError as error:
        print(error, end=" ")
    print("MB:", (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_a_small_compressed_file_does_not_fill_the_memory(tmp_path: Path) -> None:
    """A line or a quoted field of a gigabyte took four times as much, to name what is wrong."""
    for name, begin, each in (
        ("line.csv.gz", HEADER, b"0" * (1 << 20)),
        ("quote.csv.gz", HEADER + b'"', b"0\n" * (1 << 19)),
        ("line.ndjson.gz", b'{"reward": "', b"0" * (1 << 20)),
    ):
        with gzip.open(tmp_path / name, "wb", compresslevel=1) as file:
            file.write(begin)
            for _ in range(600):
                file.write(each)
    names = [str(one) for one in sorted(tmp_path.iterdir())]
    command = [sys.executable, "-c", READ, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    line, other, quote = done.stdout.splitlines()
    assert "line.csv.gz: line 2 is longer than 4 MB; write one row per line" in line
    assert "line.ndjson.gz: a line is longer than 256 MB; write one object per line" in other
    assert "quote.csv.gz: a field is longer than 4 MB; close the quote" in quote
    for told in (line, quote):
        assert int(told.rpartition(" ")[2]) < 200, told
    assert int(other.rpartition(" ")[2]) < 800, other


# -- cells, names and files of absurd sizes --------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "ndjson", "parquet"])
@pytest.mark.parametrize("column", ["episode", "state", "action", "reward", "terminated", "note"])
def test_a_cell_of_a_million_characters_is_read_or_refused_in_a_short_sentence(
    kind: str, column: str, tmp_path: Path
) -> None:
    log = pl.DataFrame(columns()).with_columns(note=pl.lit("fine")).cast({column: pl.String})
    cells = log[column].to_list()
    cells[17] = "x" * 1_000_000
    path = tmp_path / f"log.{kind}"
    getattr(log.with_columns(pl.Series(column, cells)), f"write_{kind}")(path)
    if column in ("note", "action") or (column, kind) == ("state", "parquet"):
        assert read(path) == 300  # a name
        return
    with pytest.raises(InputError, match=rf"log\.{kind}: column {column}") as caught:
        read(path)
    assert len(str(caught.value)) < 300 + len(str(path))


@pytest.mark.parametrize("kind", ["csv", "ndjson"])
def test_nothing_but_empty_lines_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"log.{kind}.gz"
    path.write_bytes(gzip.compress(b"\n" * 1_000_000))
    with pytest.raises(FormatError, match=rf"log\.{kind}\.gz: is damaged or not {kind}"):
        read(path)


def test_thousands_of_columns_are_told_apart_in_one_look_at_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as pq

    wide = columns(40) | {f"obs_{k}": np.arange(40.0) for k in range(3000)}
    path = tmp_path / "log.parquet"
    pl.DataFrame(wide).drop("state").write_parquet(path)
    opened: list[Any] = []
    plain = pq.read_metadata
    monkeypatch.setattr(pq, "read_metadata", lambda *given: opened.append(given) or plain(*given))
    assert read(path) == 40
    assert len(opened) < 20


def test_more_observations_than_features_may_be_are_refused_soon(tmp_path: Path) -> None:
    from o2td import evaluation

    wide = columns(40) | {f"obs_{k}": np.arange(40.0) % (k + 2) for k in range(3000)}
    with pytest.raises(
        InputError, match=r"features: 3001 features per row; evaluate takes at most"
    ):
        evaluation.evaluate(pl.DataFrame(wide).drop("state"), discount=0.9)

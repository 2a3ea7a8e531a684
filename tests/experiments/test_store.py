"""The store: nothing damaged is read as good, the manifest is made again, foreign files refused."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from o2td.errors import FormatError, InputError, O2TDError
from o2td.experiments import Spec, Store, load_spec, results, run
from tests.experiments.files import Labels, canonical, decode, digest, encode, forged


@pytest.fixture
def spec(small_text: Callable[..., str]) -> Spec:
    return load_spec(small_text(runs=6, each=2))


@pytest.fixture
def store(spec: Spec, tmp_path: Path) -> Store:
    run(spec, tmp_path / "store", workers=1)
    return Store(tmp_path / "store")


def _files(store: Store) -> list[Path]:
    return sorted((store.path / "runs").iterdir())


def _good(data: bytes, name: str) -> bool:
    try:
        decode(data, name)
    except FormatError:
        return False
    return True


def test_no_flipped_bit_and_no_truncation_is_read_as_good(store: Store) -> None:
    path = _files(store)[0]
    data = path.read_bytes()
    assert _good(data, path.name)
    draw = random.Random(0)  # noqa: S311
    for bit in draw.sample(range(8 * len(data)), 300):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        assert not _good(bytes(flipped), path.name), f"bit {bit}"
    for length in [0, 1, len(data) - 1, *draw.sample(range(len(data)), 100)]:
        assert not _good(data[:length], path.name), f"length {length}"
    assert not _good(data + b"\0", path.name)
    assert not _good(data + data, path.name)


def test_pages_carry_checksums_that_other_readers_can_verify(store: Store) -> None:
    data = _files(store)[0].read_bytes()
    pq.read_table(io.BytesIO(data), page_checksum_verification=True)
    column = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(8)
    assert column.path_in_schema == "value"
    broken = bytearray(data)
    broken[column.data_page_offset + column.total_compressed_size - 3] ^= 1
    with pytest.raises(OSError, match=r"(?i)crc"):
        pq.read_table(io.BytesIO(bytes(broken)), page_checksum_verification=True)


def test_a_damaged_file_is_reported_and_done_again(
    store: Store, spec: Spec, contents: Callable[[Path], dict[str, bytes]]
) -> None:
    before = contents(store.path)
    first, second, _ = _files(store)
    first.write_bytes(first.read_bytes()[:-7])
    flipped = bytearray(second.read_bytes())
    flipped[100] ^= 4
    second.write_bytes(flipped)
    with pytest.raises(FormatError, match="digest does not match; run again to redo it"):
        results(store)
    report = run(spec, store.path, workers=1)
    assert (report.found, report.computed, len(report.damaged)) == (1, 2, 2)
    assert {sentence.split(":")[0] for sentence in report.damaged} == {first.name, second.name}
    assert contents(store.path) == before


def test_a_file_under_another_name_is_refused(store: Store) -> None:
    first, second, _ = _files(store)
    shutil.copy(first, second)
    with pytest.raises(FormatError, match="holds another shard than its name says"):
        store.read(second.name.partition(".")[0])


def test_links_and_odd_names_are_not_results(store: Store, tmp_path: Path) -> None:
    first, *_ = _files(store)
    outside = tmp_path / "outside.parquet"
    first.rename(outside)
    first.symlink_to(outside)
    with pytest.raises(FormatError, match="symbolic link"):
        store.read(first.name.partition(".")[0])
    for name in ("../../etc/passwd", "x", "", "A" * 32):
        with pytest.raises(InputError):
            store.read(name)
    (store.path / "runs" / "notes.txt").write_text("mine")
    assert len(store.ids()) == 3


# -- files made by hand, with a right digest -------------------------------------------------------


def _forged(key: dict[str, Any], columns: dict[str, Any] | None = None) -> tuple[bytes, str]:
    name, data = forged(key, columns or {"value": np.zeros(3)})
    return data, f"{name}.parquet"


def test_a_forged_file_is_refused(store: Store) -> None:
    path = _files(store)[0]
    key = store.read(path.name.partition(".")[0]).key
    for changed, sentence in (
        ({"format": 2}, "written by a newer version; update o2td"),
        ({"format": 0}, "holds another shard"),
        ({"format": "x"}, "not a result file"),
        ({"runs": [0, 10**12]}, "rows, not those of its key"),
        ({"runs": None}, "not a result file"),
        ({"runs": ["a", "b"]}, "its key is not that of a result file"),
        ({"experiment": ["x"]}, "its key is not that of a result file"),
        ({"runs": [0, 1], "metrics": ["a"], "cells": key["cells"][:1]}, "has other columns"),
        ({"cells": 3}, "not a result file"),
    ):
        data, name = _forged({**key, **changed})
        with pytest.raises(FormatError, match=sentence):
            decode(data, name)
    data, name = _forged({"format": 1})
    with pytest.raises(FormatError, match="not a result file"):
        decode(data, name)


def test_a_parquet_of_many_rows_in_few_bytes_is_refused_unread() -> None:
    rows = 30_000_000
    zeros = np.zeros(rows, dtype=np.int32)
    key = {"format": 1, "experiment": "x", "runs": [0, 1], "rows": 30_000_000}
    data, name = _forged(key, {"experiment": Labels(zeros, ["x"])})
    assert len(data) < 100_000
    with pytest.raises(FormatError, match="30000000 rows, not those of its key"):
        decode(data, name, "tuning")


def test_a_foreign_parquet_is_refused(store: Store, tmp_path: Path) -> None:
    path = _files(store)[0]
    pq.write_table(pq.read_table(path), path)
    with pytest.raises(FormatError, match="damaged"):
        store.read(path.name.partition(".")[0])


def test_a_label_cannot_forge_the_digest() -> None:
    text = canonical({"format": 1, "cells": [{"label": "\nblake2b-256:" + "0" * 64}]})
    data = encode(text, {"algorithm": Labels(np.zeros(2, np.int32), ["\nblake2b-256:" + "f" * 64])})
    where = data.rindex(b"\nblake2b-256:") + 13
    blank = data[:where] + b"0" * 64 + data[where + 64 :]
    assert data[where : where + 64].decode() == hashlib.blake2b(blank, digest_size=32).hexdigest()


def _forge(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads(path.read_text())
    change(content["files"])
    content["digest"] = digest(canonical(content["files"]))
    path.write_text(json.dumps(content))


# -- the manifest ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
        lambda path: path.write_text(path.read_text().replace('"rows": 27', '"rows": 28')),
        lambda path: path.write_text("[" * 100_000),
        lambda path: path.write_text('{"format": 1, "files": 3, "digest": "x"}'),
        lambda path: _forge(path, lambda files: files.clear()),
        lambda path: _forge(path, lambda files: next(iter(files.values())).update(runs="x")),
        lambda path: _forge(path, lambda files: files.update({"runs/../../x": {"bytes": 0}})),
    ],
)
def test_a_lost_or_broken_manifest_is_made_again(
    harm: Callable[[Path], object],
    store: Store,
    spec: Spec,
    contents: Callable[[Path], dict[str, bytes]],
) -> None:
    before = contents(store.path)
    expected = results(store)
    harm(store.path / "manifest.json")
    assert results(store).equals(expected)
    store.write_manifest()
    assert contents(store.path) == before


def test_the_manifest_names_a_damaged_file_until_it_is_mended(store: Store, spec: Spec) -> None:
    path = _files(store)[0]
    path.write_bytes(path.read_bytes()[:-1])
    store.write_manifest()
    assert (
        "broken"
        in json.loads((store.path / "manifest.json").read_text())["files"][f"runs/{path.name}"]
    )
    with pytest.raises(FormatError, match=path.name):
        results(store)
    run(spec, store.path, workers=1)
    assert len(results(store)) == 6 * 3 * 3


def test_leftovers_of_a_killed_writer_are_cleared(store: Store, spec: Spec) -> None:
    for folder in (store.path, store.path / "runs"):
        (folder / ".x.parquet.0123456789abcdef.o2td-tmp").write_bytes(b"half")
    run(spec, store.path, workers=1)
    assert not list(store.path.rglob("*.o2td-tmp"))


# -- folders that cannot be written ----------------------------------------------------------------


def test_a_file_in_the_way_is_one_sentence(spec: Spec, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(O2TDError, match=r"cannot be written \(Not a directory\)"):
        run(spec, tmp_path / "file" / "store", workers=1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_one_sentence(store: Store, spec: Spec) -> None:
    store.path.chmod(0o500)
    try:
        with pytest.raises(O2TDError, match=r"cannot be written \(Permission denied\)"):
            run(spec, store.path, workers=1)
        assert len(results(store)) > 0
    finally:
        store.path.chmod(0o700)


def test_a_full_disk_is_one_sentence_and_keeps_what_is_finished(
    spec: Spec,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    contents: Callable[[Path], dict[str, bytes]],
) -> None:
    run(spec, tmp_path / "whole", workers=1)
    real, written = os.write, []

    def full(descriptor: int, data: Any) -> int:
        written.append(len(data))
        if sum(written) > 6_000:
            raise OSError(28, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(O2TDError, match=r"cannot be written \(No space left on device\)"):
        run(spec, tmp_path / "store", workers=1)
    monkeypatch.undo()
    assert 0 < len(Store(tmp_path / "store").ids()) < 3
    assert not list((tmp_path / "store").rglob("*.o2td-tmp"))
    run(spec, tmp_path / "store", workers=1)
    assert contents(tmp_path / "store") == contents(tmp_path / "whole")

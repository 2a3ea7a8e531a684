"""Damaged bytes are noticed, readers stop cleanly, missing libraries are named."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from o2td import sources
from o2td.errors import O2TDError
from tests.sources.log_files import KINDS, lerobot


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind is not lerobot], ids=lambda kind: kind.__name__
)
def test_damaged_files_of_every_kind_are_named_or_unverified(kind, joined, tmp_path):
    """100 flipped bits and 30 truncations: refused by name, the same rows, or called unverified."""
    file = kind(tmp_path)
    data, draw = file.read_bytes(), np.random.default_rng(1)
    want = joined(sources.open_logs(file, discount=0.9))
    damaged = []
    for bit in draw.choice(8 * len(data), 100, replace=False):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << (bit % 8)
        damaged.append(bytes(flipped))
    damaged += [data[:length] for length in draw.choice(len(data), 30, replace=False)]
    said = []
    for bad in damaged:
        file.write_bytes(bad)
        try:
            source = sources.open_logs(file, discount=0.9)
            got = joined(source)
        except O2TDError as error:
            said.append(str(error))
            continue
        if _differs(got, want):
            assert file.suffix != ".gz"  # its checksum covers every byte of the text
            assert source.info.unverified == (str(file),)
    assert len(said) > 30
    assert all(str(file) in one for one in said)


def _differs(got, want):
    return any(
        value is not None
        and (got[name] is None or not np.array_equal(value, got[name], value.dtype.kind == "f"))
        for name, value in want.items()
    )


def _flips(file, joined, want, flips, seed=0):
    """How many of so many single-bit flips were read as data without a word."""
    data = bytearray(file.read_bytes())
    rng = np.random.default_rng(seed)
    silent = 0
    for bit in rng.integers(0, 8 * len(data), flips):
        data[bit // 8] ^= 1 << (bit % 8)
        file.write_bytes(data)
        data[bit // 8] ^= 1 << (bit % 8)
        try:
            got = joined(sources.open_logs(file, discount=0.9))
        except O2TDError as error:
            silent += str(file) not in str(error)
        else:
            silent += _differs(got, want)
    return silent


def test_bit_flips_in_parquet_with_checksums_are_noticed(frame, joined, tmp_path):
    log = frame(episodes=400, k=8)
    file = tmp_path / "log.parquet"
    want = joined(sources.open_logs(log, discount=0.9))
    pq.write_table(pa.Table.from_pandas(log), file, write_page_checksum=True)
    assert sources.open_logs(file, discount=0.9).info.verified
    assert _flips(file, joined, want, 60) == 0


def test_foreign_parquet_without_checksums_is_called_unverified(frame, joined, tmp_path):
    log = frame(episodes=400, k=8)
    file = tmp_path / "log.parquet"
    want = joined(sources.open_logs(log, discount=0.9))
    pq.write_table(pa.Table.from_pandas(log), file, write_page_checksum=False, compression="none")
    info = sources.open_logs(file, discount=0.9).info
    assert (info.verified, info.unverified) == (False, (str(file),))
    assert "read unverified: 1 of 1 files" in str(info)
    assert _flips(file, joined, want, 30) > 10  # why the word matters


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_checksums_are_found_in_every_sort_of_page(frame, tmp_path, compression, version):
    table = pa.Table.from_pandas(frame(names=True))
    for checksum in (True, False):
        file = tmp_path / f"{checksum}.parquet"
        pq.write_table(
            *(table, file),
            compression=compression,
            data_page_version=version,
            write_page_checksum=checksum,
            row_group_size=10,
        )
        assert sources.open_logs(file, discount=0.9).info.verified is checksum


@pytest.mark.parametrize(
    ("missing", "use", "extra"),
    [
        ("pyarrow", "sources.open_logs('x.csv', discount=0.9)", "logs"),
        ("gymnasium", "sources.rollouts('CartPole-v1', None, discount=0.9, steps=1)", "gymnasium"),
        ("minari", "sources.minari('a/b-v0', discount=0.9)", "minari"),
    ],
)
def test_missing_libraries_name_their_extra(tmp_path, missing, use, extra):
    (tmp_path / "x.csv").write_text("reward\n1\n")
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from o2td import sources, errors\n"
        f"try:\n    {use}\n"
        "except errors.MissingExtraError as error:\n    print(error)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert f'pip install "o2td[{extra}]"' in said.stdout


def test_importing_sources_imports_none_of_the_libraries():
    code = (
        "import sys, o2td.sources\n"
        "print([m for m in ('pyarrow', 'polars', 'pandas', 'gymnasium', 'minari', 'scipy')"
        " if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"

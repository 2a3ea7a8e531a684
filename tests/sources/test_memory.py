"""Memory does not grow with the log."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

# Not `ru_maxrss`: that begins with what the process that started this one has.
_SCAN = """
import re, sys
from o2td import sources
source = sources.open_logs(sys.argv[1], discount=0.99, sort=sys.argv[2] == "sort")
rows = sum(len(chunk) for chunk in source.chunks())
with open("/proc/self/status") as status:
    print(rows, int(re.search(r"VmHWM:\\s*([0-9]+)", status.read())[1]) // 1024)
"""


def _write(file, rows, group):
    """Sixteen observation columns, episodes of 100 rows, written a million rows at a time."""
    rng = np.random.default_rng(0)
    writer = None
    for low in range(0, rows, 1_000_000):
        n = min(1_000_000, rows - low)
        index = np.arange(low, low + n)
        columns = {"episode": index // 100, "step": index % 100, "terminated": index % 100 == 99}
        columns |= {f"obs_{j}": rng.normal(size=n) for j in range(16)}
        columns |= {"reward": rng.normal(size=n), "rho": rng.uniform(0, 2, n)}
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(file, table.schema, write_page_checksum=True)
        writer.write_table(table, row_group_size=group)
    writer.close()


def _peak(file, how):
    said = subprocess.run(
        [sys.executable, "-c", _SCAN, str(file), how], capture_output=True, text=True, check=True
    )
    rows, megabytes = map(int, said.stdout.split())
    return rows, megabytes


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("how", ["scan", "sort"])
def test_memory_is_flat_in_the_number_of_rows(tmp_path, how):
    small, large = tmp_path / "small.parquet", tmp_path / "large.parquet"
    _write(small, 1_000_000, 1 << 17)
    _write(large, 4_000_000, 1_000_000)
    rows, before = _peak(small, how)
    assert rows == 1_000_000
    rows, after = _peak(large, how)
    assert rows == 4_000_000
    assert after < 700
    assert after - before < 150

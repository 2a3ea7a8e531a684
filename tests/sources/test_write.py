"""Logs that are written."""

from __future__ import annotations

import errno

import pytest

from o2td import sources
from o2td.errors import InputError, O2TDError
from o2td.sources import write
from tests.sources.small_logs import log_of, opened


def test_logs_that_cannot_be_written(tmp_path, monkeypatch):
    source, file = opened(log_of()), tmp_path / "log.parquet"
    with pytest.raises(InputError, match="there is no such folder; create it first"):
        sources.write_logs(source, tmp_path / "none" / "log.parquet")
    with pytest.raises(InputError, match="chunks must be a source, or chunks of one; got 3"):
        sources.write_logs(3, file)
    with pytest.raises(InputError, match="there are no rows to write"):
        sources.write_logs([], file)

    class Full:
        def __init__(self, *_, **__):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(write.pq, "ParquetWriter", Full)
    with pytest.raises(O2TDError, match=r"cannot be written .No space left.*; nothing was left"):
        sources.write_logs(source, file)
    assert not file.exists()

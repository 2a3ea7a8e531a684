"""Opened logs."""

from __future__ import annotations

import errno

import pytest

from o2td.errors import O2TDError
from o2td.sources import logs
from tests.sources.small_logs import log_of, opened


def test_a_sorted_log_without_room(monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(logs, "sorted_file", full)
    with pytest.raises(O2TDError, match=r"the sorted log cannot be written there .*; make room"):
        opened(log_of(), sort=True).scan()

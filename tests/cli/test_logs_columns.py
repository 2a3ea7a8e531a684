"""Roles of columns as they are typed on the command line."""

from __future__ import annotations

import pytest

from o2td.cli.logs_columns import parse_columns


@pytest.mark.parametrize("never", ["false", "never", "False"])
def test_continuing_logs_say_so_in_either_word(never: str) -> None:
    assert parse_columns([f"terminated={never}"]) == {"terminated": False}

"""Lines of JSON without end."""

from __future__ import annotations

import json

import pytest

from o2td import sources
from o2td.errors import FormatError
from o2td.sources.formats import ndjson


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(ndjson, "_LONGEST", 1 << 16)
    monkeypatch.setattr(ndjson, "_AT_ONCE", 1 << 12)
    file = tmp_path / "log.ndjson"
    file.write_text(json.dumps([{"reward": 1.0, "state": 0, "terminated": True}] * 5000))
    with pytest.raises(FormatError, match="a line is longer than 0 MB; write one object per line"):
        sources.open_logs(str(file), discount=0.9, target="behavior")

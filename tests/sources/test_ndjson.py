"""Lines of JSON without end."""

from __future__ import annotations

import io
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


ROW = '"episode": 0, "state": 0, "reward": 1.0, "rho": 1.0, "terminated": true'


@pytest.mark.parametrize("deep", [150, 3000, 300_000])
@pytest.mark.parametrize("signs", ["[]", ('{"x":', "}")])
def test_a_line_that_nests_too_deeply_is_refused_before_a_parser_runs_out_of_stack(
    tmp_path, deep, signs
):
    file = tmp_path / "log.ndjson"
    nested = signs[0] * deep + "1" + signs[1] * deep
    file.write_text(f'{{{ROW}}}\n{{{ROW}, "more": {nested}}}\n')
    with pytest.raises(
        FormatError, match=r"log\.ndjson: a line nests .* more than 100 levels deep"
    ):
        sources.open_logs(file, discount=0.9).scan()


def test_brackets_in_text_and_many_short_lists_are_not_deep(tmp_path):
    file = tmp_path / "log.ndjson"
    text = "[" * 500 + '\\"{' * 200
    lists = f"[{', '.join(['[0.0, 1.0]'] * 300)}]"
    file.write_text(f'{{{ROW}, "note": "{text}", "lists": {lists}}}\n')
    (chunk,) = sources.open_logs(file, discount=0.9).chunks()
    assert chunk.reward.tolist() == [1.0]


@pytest.mark.parametrize("size", [3, 7, 16, 64, 1000])
def test_blocks_end_where_lines_do_whatever_their_size(size):
    lines = [b'{"a": %d}' % 10**k for k in range(30)]
    text = b"\n".join([*lines[:9], b"", *lines[9:]])
    for whole in (text, text + b"\n"):
        blocks = list(ndjson._whole_lines(io.BytesIO(whole), size, "log.ndjson"))
        assert b"".join(blocks).split() == whole.split()
        assert all(block.endswith(b"\n") for block in blocks[:-1])

"""One file, several policies."""

from __future__ import annotations

from o2td.sources.several import chunks_of_all, open_policies
from tests.evaluation.test_compare import GAMMA, made_log


def test_the_files_are_read_once_for_all_policies(tmp_path):
    path = tmp_path / "log.parquet"
    made_log().to_parquet(path)
    opened = open_policies(path, {"A": "A", "B": "B"}, discount=GAMMA)
    read = []
    part = opened[0]._first_part
    plain = part.batches
    part.batches = lambda kinds, rows: (read.append(sorted(kinds)), plain(kinds, rows))[1]
    streams, reading = chunks_of_all(opened, rows=100)
    with reading:
        for one, two in zip(*streams, strict=True):
            assert (one.reward == two.reward).all()
            assert (one.rho != two.rho).any()
    assert len(read) == 1
    assert {"A", "B"} <= set(read[0])

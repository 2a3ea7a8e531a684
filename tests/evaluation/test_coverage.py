"""How much of the target the log covers."""

from __future__ import annotations

from o2td.evaluation.coverage import States, unlogged_regions
from o2td.features import Polynomial

from .episodes import block_of
from .logs import line_log


def test_cut_episodes_that_end_among_rows_are_no_doubt():
    block = block_of(line_log(150, 7))
    assert not block.rows.terminated[block.first[1:] - 1].all()
    basis = States(Polynomial(1, bounds=[(-4, 4)]).fit())
    assert unlogged_regions(block, basis, 7.0) < 0.02

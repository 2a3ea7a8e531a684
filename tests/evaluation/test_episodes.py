"""Blocks of whole episodes from chunks of any size."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.evaluation.episodes import Log, joined, whole_episodes
from o2td.sources import open_logs

from .episodes import block_of
from .logs import line_log


@pytest.fixture(scope="module")
def log():
    return line_log(30, 3)


@pytest.mark.parametrize("rows", [7, 100])
def test_blocks_hold_whole_episodes_whatever_the_chunks(log, rows):
    source = open_logs(log, discount=0.9)
    blocks = list(whole_episodes(source.chunks(rows)))
    whole, parts = block_of(log), joined(blocks)
    assert all(block.rows.start[0] for block in blocks)
    np.testing.assert_array_equal(parts.first, whole.first)
    np.testing.assert_array_equal(parts.key, whole.key)
    np.testing.assert_array_equal(parts.rows.reward, whole.rows.reward)


def test_an_endless_episode_is_cut_into_pieces_with_keys_of_their_own(log):
    endless = log.assign(episode=0, terminated=False, truncated=False)
    pieces = joined(list(whole_episodes(open_logs(endless, discount=0.9).chunks(50), longest=100)))
    assert pieces.count == len(np.unique(pieces.key)) > 3
    assert pieces.opens.tolist() == [True] + [False] * (pieces.count - 1)


def test_a_log_that_does_not_fit_is_read_again(log):
    small, large = (Log(open_logs(log, discount=0.9), held) for held in (1 << 30, 0))
    for held in (small, large):
        assert sum(len(b.rows) for b in held.blocks()) == sum(len(b.rows) for b in held.blocks())
    assert (small.passes, large.passes) == (1, 2)


def test_parts_of_a_block_cut_only_episodes_that_are_too_long(log):
    block = block_of(log)
    limit = int(np.median(np.diff(block.first)))
    parts = list(block.parts(limit))
    assert max(len(part.rows) for part in parts) <= limit
    rows = np.concatenate([part.rows.reward for part in parts])
    np.testing.assert_array_equal(rows, block.rows.reward)
    assert sum(part.opens.sum() for part in parts) == block.opens.sum()
    assert sum(part.count - part.within for part in parts) == block.count
    assert any(part.within for part in parts)
    assert [p.count for p in block.parts(len(rows))] == [block.count]

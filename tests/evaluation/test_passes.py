from __future__ import annotations

import numpy as np
import pytest

from o2td.evaluation import Histories, Study, histories
from o2td.evaluation.episodes import Log, joined, whole_episodes
from o2td.evaluation.estimators import dr, make
from o2td.evaluation.estimators.lstd import Correction
from o2td.evaluation.histories import HORIZON
from o2td.evaluation.study import Settings
from o2td.sources import open_logs

from .logs import block_of, line_log


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


def brute(block):
    """Weights and discounted rewards of each episode as lists."""
    found = []
    for low, high in zip(block.first[:-1], block.first[1:], strict=True):
        rows = block.rows
        weight = np.cumprod(rows.rho[low:high])
        gone = np.cumprod(np.r_[1.0, rows.discount[low : high - 1]])
        found.append((weight, gone * rows.reward[low:high]))
    return found


def test_importance_sampling_family_against_plain_loops(log):
    study, _ = traced(log)
    weighed = study.weighed
    plain = brute(block_of(log))
    last = np.array([w[-1] for w, _ in plain])
    total = np.array([r.sum() for _, r in plain])
    assert make("is").value(study) == pytest.approx((last * total).mean())
    assert make("wis").value(study) == pytest.approx((last * total).sum() / last.sum())
    each = np.array([(w * r).sum() for w, r in plain])
    assert make("pdis").value(study) == pytest.approx(each.mean())
    longest = max(len(w) for w, _ in plain)
    wide = np.array([np.r_[w, np.full(longest - len(w), w[-1])] for w, _ in plain])
    reward = np.array([np.r_[r, np.zeros(longest - len(r))] for _, r in plain])
    expected = ((wide * reward).sum(axis=0) / wide.sum(axis=0)).sum()
    assert make("wpdis").value(study) == pytest.approx(expected)
    sizes = wide.sum(axis=0) ** 2 / (wide**2).sum(axis=0)
    np.testing.assert_allclose(weighed.horizon.effective_size, sizes)


def traced(log) -> tuple[Study, Histories]:
    """A study after its first pass, and its histories with rewards as a baseline's errors."""
    study = Study(Log(open_logs(log, discount=0.9)), Settings())
    study.log.collect(study.survey)
    block = block_of(log)
    return study, Histories(block, *histories(block), [np.zeros(block.count)], [block.rows.reward])


def test_influence_of_the_family_is_what_plain_loops_say(log):
    study, found = traced(log)
    names = ("is", "wis", "pdis", "wpdis")
    columns = np.column_stack([make(name).make_column(study).of(found) for name in names])
    plain = brute(found.episodes)
    last = np.array([w[-1] for w, _ in plain])
    total = last * np.array([r.sum() for _, r in plain])
    each = np.array([(w * r).sum() for w, r in plain])
    value = total.sum() / last.sum()
    np.testing.assert_allclose(columns[:, 0], total - total.mean(), atol=1e-12)
    np.testing.assert_allclose(columns[:, 1], (total - value * last) / last.mean(), atol=1e-12)
    np.testing.assert_allclose(columns[:, 2], each - each.mean(), atol=1e-12)
    np.testing.assert_allclose(columns.mean(axis=0)[:4], 0.0, atol=1e-12)


def test_doubly_robust_with_no_value_function_is_importance_sampling(log):
    study, found = traced(log)
    weighed = study.weighed
    share = weighed.units * weighed.horizon.inverse
    robust = dr.DoublyRobustColumn(0, 0.0, 1.0, np.ones(len(share))).of(found)
    weighted = dr.DoublyRobustColumn(0, 0.0, 1.0, share).of(found)
    assert robust.mean() == pytest.approx(weighed.spread("pdis").mean)
    assert weighted.mean() == pytest.approx(weighed.horizon.weighted().sum())
    np.testing.assert_allclose(Correction(weighed, 0, HORIZON).of(found), weighted)
    reached = Correction(weighed, 0, 3).of(found)
    assert reached.mean() == pytest.approx(weighed.horizon.weighted()[:3].sum())


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

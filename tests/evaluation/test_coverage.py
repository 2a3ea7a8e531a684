"""How much of the target the log covers."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.evaluation import coverage
from o2td.evaluation.coverage import States, unlogged_regions
from o2td.features import Polynomial

from .episodes import block_of
from .logs import line_log


def test_cut_episodes_that_end_among_rows_are_no_doubt():
    block = block_of(line_log(150, 7))
    assert not block.rows.terminated[block.first[1:] - 1].all()
    basis = States(Polynomial(1, bounds=[(-4, 4)]).fit())
    assert unlogged_regions(block, basis, 7.0) < 0.02


def test_the_nearest_centre_by_plain_distances(monkeypatch):
    rng = np.random.default_rng(0)
    points, centers = rng.normal(size=(40, 3)), rng.normal(size=(7, 3))
    apart = np.square(points[:, None] - centers).sum(axis=2)
    for part in (1 << 13, 7):
        monkeypatch.setattr(coverage, "_PART", part)
        np.testing.assert_array_equal(coverage._nearest(points, centers), apart.argmin(axis=1))


@pytest.mark.parametrize("seed", [0, 1])
def test_visits_beyond_what_was_seen_by_following_the_target_from_cell_to_cell(seed):
    """Half of the episodes are cut far from every row; ratios are small, or 0 in some places."""
    log = line_log(40, seed, steps=8).drop(columns=["behavior_prob"])
    log = log.drop(columns=[c for c in log if "target_prob" in c])
    rng = np.random.default_rng(seed)
    log["rho"] = np.where(log.obs_0 > 1.0, 0.0, rng.choice([0.01, 0.02], len(log)))
    far = log.truncated & (log.episode % 2 == 0)
    log.loc[far, "next_obs_0"] = 30.0 + log.episode[far]
    block = block_of(log)
    basis = States(Polynomial(1, bounds=[(-4, 4)]).fit())
    n, rows = len(block.rows), block.rows
    spread = rows.input.std(axis=0)
    here, after = rows.input / spread, rows.next_input / spread
    last = block.first[1:] - 1
    centers = coverage._centers(here, after[last[~rows.terminated[last]]])
    at, to = coverage._nearest(here, centers), coverage._nearest(after, centers)
    move, size = np.zeros((len(centers), len(centers))), len(centers)
    weight = np.array([rows.rho[at == k].sum() for k in range(size)])
    for t in range(n):
        if weight[at[t]] > 0.0:
            move[at[t], to[t]] += rows.rho[t] * rows.discount[t] / weight[at[t]]
    share = np.bincount(at[block.first[:-1]], minlength=size) / block.count
    visits = np.zeros(size)
    for _ in range(3000):
        visits, share = visits + share, share @ move
    outside = visits[weight == 0.0].sum() * 7.0
    wanted = outside / (outside + visits[weight > 0.0].sum())
    assert wanted > 0.01
    assert unlogged_regions(block, basis, 7.0) == pytest.approx(wanted, rel=1e-5)

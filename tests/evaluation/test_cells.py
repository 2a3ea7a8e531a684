"""Tables as counts of cells: the plug-in optimum, and its lanes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest

from o2td import PluginOptimal, Transitions, evaluation
from o2td.evaluation.cells import FOLDS, Cells, CellSystem, LoneStarts
from o2td.features import Tabular

from .episodes import block_of
from .lanes import counts_of, fold_of
from .logs import log_of


def test_cells_are_the_plug_in_optimum_and_their_lanes_refits(walk):
    problem, _ = walk
    block = block_of(log_of(problem, 60, [0, 1]), 1.0)
    features = Tabular(problem.n_states).fit()
    counts = counts_of(block.key, 40)
    system = CellSystem(Cells(features), 40)
    system.add(block, fold_of(block.key, FOLDS), counts)
    theta = system.table(system.solve().theta, problem.n_states)
    rows = block.rows

    def plugin(part: Any) -> Any:
        batch = Transitions.from_table(
            *(np.eye(problem.n_states), part.rows.state, part.rows.reward),
            np.where(part.rows.terminated, -1, part.rows.next_state),
            discount=part.rows.discount,
            rho=part.rows.rho,
            start=part.begin,
        )
        return PluginOptimal().fit(batch).theta

    seen = np.unique(rows.state)
    np.testing.assert_allclose(theta[seen], plugin(block)[seen], atol=1e-9)
    again = block.ordered(np.repeat(np.arange(block.count), counts[:, 3].astype(int)))
    start = again.rows.state[again.first[:-1]]
    assert system.lane_values()[3] == pytest.approx(plugin(again)[start].mean(), abs=1e-9)


def test_any_split_gives_the_same_cells(walk):
    problem, _ = walk
    block = block_of(log_of(problem, 50, [0, 2]), 1.0)
    basis = Cells(Tabular(problem.n_states).fit())
    whole, parts = CellSystem(basis, 25), CellSystem(basis, 25)
    half = np.arange(block.count) < 17
    for system, blocks in ((whole, [block]), (parts, [block.pick(half), block.pick(~half)])):
        for part in blocks:
            system.add(part, fold_of(part.key, FOLDS), counts_of(part.key, 25))
    np.testing.assert_allclose(parts.lane_values(), whole.lane_values(), atol=1e-9)
    np.testing.assert_allclose(parts.solve().theta, whole.solve().theta, atol=1e-9)


@pytest.mark.parametrize("by", ["factors", "iteration"])
def test_sparse_cells_agree_with_dense_ones(walk, monkeypatch, by):
    problem, _ = walk
    block = block_of(log_of(problem, 50, [0, 3]), 1.0)
    system = CellSystem(Cells(Tabular(problem.n_states).fit()), 20)
    system.add(block, fold_of(block.key, FOLDS), counts_of(block.key, 20))
    lanes, theta, adjoint = system.lane_values(), system.solve().theta, system.adjoint()
    monkeypatch.setattr("o2td.evaluation.cells._DENSE", 0)
    if by == "iteration":
        monkeypatch.setattr("o2td.evaluation.cells._LARGE", 0)
        monkeypatch.setattr("o2td.evaluation.cells._WIDE", 0)
        monkeypatch.setattr("o2td.evaluation.cells._solve", None)
        system._iterates = None
    np.testing.assert_allclose(system.lane_values(), lanes, atol=1e-10)
    found = system.solve()
    assert (found.status, found.condition) == ("ok", 1.0)  # which nobody computes
    np.testing.assert_allclose(found.theta, theta, atol=1e-10)
    np.testing.assert_allclose(system.adjoint(), adjoint, atol=1e-10)


def test_states_that_lead_anywhere_are_solved_without_filling_up():
    """Sparse factors of such a matrix are all but full: minutes for one lane."""
    rng = np.random.default_rng(0)
    rows, states = 12_000, 6000
    log = pd.DataFrame(
        {
            "episode": np.repeat(np.arange(rows // 10), 10),
            "step": np.tile(np.arange(10), rows // 10),
            "state": rng.integers(0, states, rows),
            "action": 0,
            "reward": rng.normal(size=rows),
            "terminated": False,
            "truncated": np.tile(np.arange(10) == 9, rows // 10),
            "rho": 1.0,
        }
    )
    log["next_state"] = np.where(
        log.truncated, rng.integers(0, states, rows), log.state.shift(-1, fill_value=0)
    )
    begun = time.process_time()
    answer = evaluation.evaluate(log, discount=0.95, methods=["lstd"])
    assert np.isfinite(answer.recommended.value)
    assert time.process_time() - begun < 60.0


def random_log(seed: int, states: int = 6, episodes: int = 40) -> pd.DataFrame:
    """Walks among some states with ratios, which end, are cut, or lead to states without rows."""
    rng = np.random.default_rng(seed)
    rows = []
    for episode in range(episodes):
        state, length = int(rng.integers(states - 1)), int(rng.integers(1, 6))
        for step in range(length):
            last = step == length - 1
            after = int(rng.integers(states if last else states - 1))
            ends = last and rng.random() < 0.6
            row = {"episode": episode, "state": state, "next_state": after, "terminated": ends}
            row |= {"reward": rng.normal(), "rho": rng.choice([0.0, 0.5, 2.0])}
            rows.append(row | {"truncated": last and not ends})
            state = after
    return pd.DataFrame(rows)


def cells_of(block: Any, lanes: int = 0, counts: Any = None, ratios: bool = True) -> CellSystem:
    system = CellSystem(Cells(Tabular(6).fit()), lanes, ratios)
    system.add(block, fold_of(block.key, FOLDS), counts)
    return system


@pytest.mark.parametrize("ratios", [True, False])
def test_values_and_visits_are_those_of_the_chain_written_out(ratios: bool) -> None:
    log = random_log(3)
    block = block_of(log, 0.9)
    system = cells_of(block, ratios=ratios)
    rho = log.rho.to_numpy() if ratios else np.ones(len(log))
    weight = np.bincount(log.state, rho, minlength=6)
    value, move = np.zeros(6), np.zeros((6, 6))
    for t, row in enumerate(log.itertuples()):
        if weight[row.state] > 0.0:
            share = rho[t] / weight[row.state]
            value[row.state] += share * row.reward
            move[row.state, row.next_state] += 0.0 if row.terminated else 0.9 * share
    theta = np.linalg.solve(np.eye(6) - move, value)
    np.testing.assert_allclose(system.table(system.solve().theta, 6), theta, atol=1e-9)
    start = np.bincount(log.state[block.first[:-1]], minlength=6) / block.count
    np.testing.assert_allclose(system.table(system.start(), 6), start)
    visits = np.linalg.solve(np.eye(6) - move.T, start)
    outside = visits[weight == 0.0].sum() * 4.0
    share = outside / (visits[weight > 0.0].sum() + outside)
    assert 0.0 < share < 1.0
    assert system.unlogged(4.0) == pytest.approx(share, rel=1e-6)
    first, delta = system.differences(block, system.solve().theta)
    np.testing.assert_allclose(first, theta[log.state[block.first[:-1]]], atol=1e-9)
    ahead = np.where(log.terminated, 0.0, 0.9 * theta[log.next_state])
    np.testing.assert_allclose(delta, log.reward + ahead - theta[log.state], atol=1e-9)
    both = np.column_stack([system.solve().theta, np.ones(system.d)])
    np.testing.assert_allclose(system.differences(block, both)[1][:, 0], delta, atol=1e-9)
    some = np.arange(FOLDS) != 1
    rest = block.pick(fold_of(block.key, FOLDS) != 1)
    part = cells_of(rest, ratios=ratios)
    np.testing.assert_allclose(
        system.table(system.solve(some).theta, 6), part.table(part.solve().theta, 6), atol=1e-9
    )
    np.testing.assert_allclose(system.fold_starts().sum(axis=0), system.start() * block.count)


def test_influence_is_the_derivative_by_an_episodes_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        "o2td.evaluation.cells.own_fit", lambda n, squares: asked.append((n, squares)) or np.ones(6)
    )
    log = random_log(4)
    block = block_of(log, 0.9)
    system, size = cells_of(block), 1e-5
    theta = system.solve().theta
    first, moved = system.light().influence(block, theta, system.adjoint())
    influence = (first - system.start() @ theta) / block.count + moved
    counts = np.ones((block.count, 2 * block.count))
    for e in range(block.count):
        counts[e, 2 * e : 2 * e + 2] += [size, -size]
    lanes = cells_of(block, 2 * block.count, counts).lane_values()
    assert lanes is not None
    slopes = (lanes[::2] - lanes[1::2]) / (2.0 * size)
    np.testing.assert_allclose(influence, slopes, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(asked[0][0], np.bincount(log.state, log.rho, minlength=6))
    np.testing.assert_allclose(asked[0][1], np.bincount(log.state, log.rho**2, minlength=6))


@pytest.mark.parametrize("lanes", [0, 12])
def test_systems_of_other_states_merge_into_that_of_all(lanes: int) -> None:
    low, high = random_log(5, 4), random_log(6, 4)
    high = high.assign(state=high.state + 2, next_state=high.next_state + 2)
    high["episode"] += 100
    blocks = [block_of(one, 0.9) for one in (low, high)]
    whole, empty = CellSystem(Cells(Tabular(6).fit()), lanes), cells_of(blocks[0])
    for block in blocks:
        whole.add(block, fold_of(block.key, FOLDS), counts_of(block.key, 12))
    for order in ((0, 1), (1, 0)):
        one, two = (cells_of(blocks[k], lanes, counts_of(blocks[k].key, 12)) for k in order)
        assert set(one.cell) != set(two.cell)
        fresh = CellSystem(Cells(Tabular(6).fit()), lanes)
        fresh.merge(one)
        fresh.merge(two)
        fresh.merge(CellSystem(Cells(Tabular(6).fit()), lanes))
        np.testing.assert_array_equal(fresh.cell, whole.cell)
        np.testing.assert_allclose(fresh.solve().theta, whole.solve().theta, atol=1e-9)
        np.testing.assert_allclose(fresh.adjoint(), whole.adjoint(), atol=1e-9)
        if lanes:
            np.testing.assert_allclose(fresh.lane_values(), whole.lane_values(), atol=1e-9)
    assert empty.lane_values() is None
    mixed = cells_of(blocks[0], 12, counts_of(blocks[0].key, 12))
    mixed.merge(cells_of(blocks[1]))  # which has dropped its lanes
    assert mixed.lane_values() is None
    np.testing.assert_allclose(mixed.solve().theta, whole.solve().theta, atol=1e-9)


def test_starts_without_rows_count_where_they_are() -> None:
    block = block_of(random_log(6), 0.9)
    counts = counts_of(block.key, 9)
    system = cells_of(block, 9, counts)
    key = np.arange(7, dtype=np.uint64)
    lone: Any = LoneStarts(np.array([0, 5, 5, 2, 1, 1, 1]), key, np.zeros(7, dtype=int))
    more = counts_of(key, 9)
    system.add_starts(lone, fold_of(key, FOLDS), more)
    own = block.rows.input[block.first[:-1]]
    every = np.bincount(np.concatenate([own, lone.input]), minlength=6)
    np.testing.assert_allclose(system.table(system.start(), 6), every / every.sum())
    theta = system.solve().theta
    np.testing.assert_allclose(system.start_values(lone, theta), system.table(theta, 6)[lone.input])
    lane = system.sums[:, 2, FOLDS + 4]
    weighted = np.bincount(own, counts[:, 4], minlength=6)
    weighted += np.bincount(lone.input, more[:, 4], minlength=6)
    np.testing.assert_allclose(system.table(lane, 6), weighted)

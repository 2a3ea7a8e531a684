"""Tables as counts of cells: the plug-in optimum, and its lanes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest

from o2td import PluginOptimal, Transitions, evaluation
from o2td.evaluation.cells import FOLDS, Cells, CellSystem
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
    np.testing.assert_allclose(system.solve().theta, theta, atol=1e-10)
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

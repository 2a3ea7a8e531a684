from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest

from o2td import LSETD, LSTD, LSTDQ, PluginOptimal, Transitions, evaluation
from o2td.evaluation.basis import Actions, Cells, States
from o2td.evaluation.bootstrap import poisson_counts
from o2td.evaluation.cells import CellSystem
from o2td.evaluation.survey import by_fold, folds_of
from o2td.evaluation.systems import FOLDS, FeatureSystem
from o2td.features import Fourier, Tabular

from .logs import block_of, line_log, log_of


@pytest.fixture(scope="module")
def line() -> Any:
    return by_fold(block_of(line_log(40, 0)))


@pytest.fixture(scope="module")
def basis() -> States:
    return States(Fourier(3, bounds=[(-4, 4)]).fit())


def transitions(block: Any, basis: States) -> Transitions:
    here, ahead = basis.both(block)
    rows = block.rows
    return Transitions(here, rows.reward, ahead, rows.discount, rows.rho, block.begin)


def filled(system: FeatureSystem, block: Any, counts: Any = None) -> FeatureSystem:
    system.add(block, system.basis.rows(block), folds_of(block.key, FOLDS), counts)
    return system


def traced(system: FeatureSystem, block: Any, theta: Any, adjoint: Any) -> tuple[Any, Any]:
    rows = system.basis.rows(block)
    moved = system.moved(block, rows.here @ adjoint, rows.temporal_difference(theta))
    return rows.first @ theta, moved


@pytest.mark.parametrize("trace", [0.0, 0.8])
def test_sums_are_those_of_the_solvers(line, basis, trace):
    batch = transitions(line, basis)
    for emphatic, solver in ((False, LSTD(trace=trace)), (True, LSETD(trace=trace))):
        system = filled(FeatureSystem(basis, trace, emphatic), line)
        np.testing.assert_allclose(system.solve().theta, solver.fit(batch).theta, rtol=1e-7)
        start = batch.phi[line.first[:-1]].mean(axis=0)
        np.testing.assert_allclose(system.start(), start)


def test_action_values_are_those_of_lstdq(line, basis):
    system = filled(FeatureSystem(Actions(basis, 2)), line)
    here, ahead = basis.both(line)
    rows = line.rows
    kept = np.isfinite(rows.next_target_probs).all(axis=1)
    phi = LSTDQ.features(here, rows.action, 2)[kept]
    after = LSTDQ.next_features(ahead, np.nan_to_num(rows.next_target_probs))[kept]
    batch = Transitions(phi, rows.reward[kept], after, rows.discount[kept])
    np.testing.assert_allclose(system.solve().theta, LSTDQ().fit(batch).theta, rtol=1e-7)


def test_a_lane_is_a_fit_to_repeated_episodes(line, basis):
    counts = poisson_counts(line.key, 1, 30)
    system = filled(FeatureSystem(basis, 0.5, lanes=30), line, counts)
    values = system.lane_values()
    for lane in (0, 7):
        repeated = np.repeat(np.arange(line.count), counts[:, lane].astype(int))
        again = line.ordered(repeated)
        batch = transitions(again, basis)
        theta = LSTD(trace=0.5).fit(batch).theta
        start = batch.phi[again.first[:-1]].mean(axis=0)
        assert values[lane] == pytest.approx(float(start @ theta), rel=1e-6)


@pytest.mark.parametrize(("trace", "emphatic"), [(0.0, False), (0.8, False), (0.5, True)])
def test_influence_is_the_derivative_by_an_episodes_weight(line, basis, trace, emphatic):
    system = filled(FeatureSystem(basis, trace, emphatic), line)
    theta = system.solve().theta
    value = float(system.start() @ theta)
    first, moved = traced(system, line, theta, system.adjoint())
    influence = first - value + line.count * moved
    for e in (0, 11):
        step, ends = 1e-4, []
        for sign in (1.0, -1.0):
            weight = np.ones((line.count, 1))
            weight[e] += sign * step
            lane = filled(FeatureSystem(basis, trace, emphatic, lanes=1), line, weight)
            ends.append(lane.lane_values()[0])
        slope = (ends[0] - ends[1]) / (2 * step) * line.count
        assert slope == pytest.approx(influence[e], rel=1e-3, abs=1e-6)


@pytest.mark.parametrize(("trace", "emphatic"), [(0.0, False), (0.8, False), (0.5, True)])
def test_an_episode_in_parts_is_the_same_episode(line, basis, trace, emphatic):
    counts = poisson_counts(line.key, 0, 10)
    whole = filled(FeatureSystem(basis, trace, emphatic, lanes=10), line, counts)
    cut = FeatureSystem(basis, trace, emphatic, lanes=10)
    parts = list(line.parts(7))
    assert sum(part.within for part in parts) > 20
    for part in parts:
        filled(cut, part, poisson_counts(part.key, 0, 10))
    np.testing.assert_allclose(cut.folds, whole.folds, atol=1e-9)
    np.testing.assert_allclose(cut.start(), whole.start())
    np.testing.assert_allclose(cut.lane_values(), whole.lane_values(), rtol=1e-6)
    theta, adjoint = whole.solve().theta, whole.adjoint()
    _, moved = traced(whole, line, theta, adjoint)
    again: list[float] = []
    for part in parts:
        _, more = traced(cut, part, theta, adjoint)
        if part.within:
            again[-1] += more[0]
        again += list(more[part.within :])
    np.testing.assert_allclose(again, moved, atol=1e-9)


def test_cells_are_the_plug_in_optimum_and_their_lanes_refits(walk):
    problem, _ = walk
    block = block_of(log_of(problem, 60, [0, 1]), 1.0)
    features = Tabular(problem.n_states).fit()
    counts = poisson_counts(block.key, 0, 40)
    system = CellSystem(Cells(features), 40)
    system.add(block, folds_of(block.key, FOLDS), counts)
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
            system.add(part, folds_of(part.key, FOLDS), poisson_counts(part.key, 0, 25))
    np.testing.assert_allclose(parts.lane_values(), whole.lane_values(), atol=1e-9)
    np.testing.assert_allclose(parts.solve().theta, whole.solve().theta, atol=1e-9)


@pytest.mark.parametrize("by", ["factors", "iteration"])
def test_sparse_cells_agree_with_dense_ones(walk, monkeypatch, by):
    problem, _ = walk
    block = block_of(log_of(problem, 50, [0, 3]), 1.0)
    system = CellSystem(Cells(Tabular(problem.n_states).fit()), 20)
    system.add(block, folds_of(block.key, FOLDS), poisson_counts(block.key, 0, 20))
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


@pytest.mark.slow
def test_two_hundred_lanes_cost_at_most_twenty_estimates():
    block = by_fold(block_of(line_log(3000, 1, steps=60)))
    basis = States(Fourier(31, bounds=[(-4, 4)]).fit())
    batch, rows = transitions(block, basis), basis.rows(block)
    counts, fold = poisson_counts(block.key, 0, 200), folds_of(block.key, FOLDS)

    def seconds(work: Any) -> float:
        times = []
        for _ in range(5):
            begun = time.process_time()
            work()
            times.append(time.process_time() - begun)
        return min(times)

    def lanes() -> None:
        system = FeatureSystem(basis, lanes=200)
        system.add(block, rows, fold, counts)
        system.lane_values()

    assert seconds(lanes) <= 20.0 * seconds(lambda: LSTD().fit(batch).theta)

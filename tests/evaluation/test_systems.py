from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest

from o2td import LSETD, LSTD, LSTDQ, Transitions, evaluation
from o2td.evaluation.systems import FOLDS, Actions, FeatureSystem, States, own_fit
from o2td.features import Fourier

from .episodes import block_of
from .lanes import counts_of, fold_of
from .logs import line_log


def by_fold(block: Any) -> Any:
    """The episodes sorted by fold, so that a fold is one range of rows."""
    return block.ordered(np.argsort(fold_of(block.key, FOLDS), kind="stable"))


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
    system.add(block, system.basis.rows(block), fold_of(block.key, FOLDS), counts)
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
    counts = counts_of(line.key, 30)
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
    counts = counts_of(line.key, 10)
    whole = filled(FeatureSystem(basis, trace, emphatic, lanes=10), line, counts)
    cut = FeatureSystem(basis, trace, emphatic, lanes=10)
    parts = list(line.parts(7))
    assert sum(part.within for part in parts) > 20
    for part in parts:
        filled(cut, part, counts_of(part.key, 10))
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


@pytest.mark.slow
def test_two_hundred_lanes_cost_at_most_twenty_estimates():
    block = by_fold(block_of(line_log(3000, 1, steps=60)))
    basis = States(Fourier(31, bounds=[(-4, 4)]).fit())
    batch, rows = transitions(block, basis), basis.rows(block)
    counts, fold = counts_of(block.key, 200), fold_of(block.key, FOLDS)

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


def test_means_of_few_rows_are_corrected_for_their_own_fit() -> None:
    """The standard error is that of residuals enlarged by sqrt(n / (n - 1)) in each state."""
    state = np.repeat([0, 1, 2], [2, 5, 30])
    reward = np.random.default_rng(0).normal(size=len(state))
    log = pd.DataFrame({"episode": range(len(state)), "state": state, "reward": reward})
    log = log.assign(terminated=True, rho=1.0)
    found = evaluation.evaluate(log, discount=0.9, methods=["lstd"], lanes=0)["lstd"]
    mean, count = (log.groupby("state").reward.transform(kind) for kind in ("mean", "size"))
    enlarged = (reward - mean) * np.sqrt(count / (count - 1))
    each = mean - reward.mean() + enlarged
    error = np.sqrt(np.square(each).sum() / (len(log) - 1) / len(log))
    assert found.value == pytest.approx(reward.mean())
    assert found.standard_error == pytest.approx(error, rel=1e-9)


def test_ratios_leave_fewer_rows_to_a_mean() -> None:
    weight = np.array([[1.0, 1.0, 0.0], [3.0, 1.0, 0.0]]).T
    sums, squares = weight.sum(axis=0), np.square(weight).sum(axis=0)
    effective = sums**2 / squares
    assert own_fit(sums, squares) == pytest.approx(
        np.sqrt(np.minimum(effective / (effective - 1), 2))
    )
    assert own_fit(np.zeros(1), np.zeros(1)) == pytest.approx(np.sqrt(2.0))

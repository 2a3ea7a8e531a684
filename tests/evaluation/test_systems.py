from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest

from o2td import LSETD, LSTD, LSTDQ, Transitions, evaluation
from o2td.evaluation.systems import (
    FOLDS,
    Actions,
    FeatureSystem,
    LoneStarts,
    States,
    fitting_rows,
    own_fit,
    runs,
)
from o2td.features import Fourier, Tabular

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


# -- parts of systems -----------------------------------------------------------------------


@pytest.mark.parametrize("trace", [0.0, 0.8])
def test_a_system_on_some_features_shares_the_sums_of_all(line, basis, trace):
    whole = filled(FeatureSystem(basis, trace), line)
    index = np.array([2, 0])
    part = whole.part(basis, index, 1e-3)
    assert (part.d, part.ridge, part.whole, whole.whole) == (2, 1e-3, whole, whole)
    z = whole.left(line, basis.rows(line))[:, index]
    right = basis.rows(line).right
    A = z.T @ right[:, index]
    A += 1e-3 * np.abs(np.diagonal(A)).mean() * np.eye(2)
    theta = np.linalg.solve(A, z.T @ right[:, -1])
    np.testing.assert_allclose(part.solve().theta, theta, rtol=1e-7)
    np.testing.assert_allclose(part.lift(theta), [theta[1], 0.0, theta[0], 0.0])
    np.testing.assert_allclose(part.lift(np.eye(2)), np.eye(4)[:, index])
    assert whole.lift(theta) is theta
    np.testing.assert_allclose(part.start(), whole.start()[index])
    np.testing.assert_allclose(
        part.adjoint(), np.linalg.solve(A.T, whole.start()[index]), rtol=1e-7
    )
    some = np.arange(FOLDS) < 3
    rest = line.pick(fold_of(line.key, FOLDS) < 3)
    alone = filled(FeatureSystem(basis, trace), rest)
    np.testing.assert_allclose(whole.solve(some).theta, alone.solve().theta, rtol=1e-7)
    np.testing.assert_allclose(whole.start(some), alone.start())
    ridged = whole.solve(None, 0.5).theta
    other = filled(FeatureSystem(basis, trace, ridge=0.5), line)
    np.testing.assert_allclose(ridged, other.solve().theta, rtol=1e-9)
    assert part.label == f"{basis.name}, λ = {trace:g}, ridge 0.001"
    assert whole.label == f"{basis.name}, λ = {trace:g}"


@pytest.mark.parametrize("lanes", [0, 12])
def test_systems_of_parts_merge_into_that_of_the_whole(line, basis, lanes):
    def made(block):
        return filled(FeatureSystem(basis, 0.5, lanes=lanes), block, counts_of(block.key, 12))

    half = np.arange(line.count) < 9
    whole, one, two = made(line), made(line.pick(half)), made(line.pick(~half))
    fresh = FeatureSystem(basis, 0.5, lanes=lanes)
    fresh.merge(one)
    fresh.merge(FeatureSystem(basis, 0.5, lanes=lanes))
    fresh.merge(two)
    np.testing.assert_allclose(fresh.folds, whole.folds, atol=1e-9)
    np.testing.assert_allclose(fresh.starts, whole.starts, atol=1e-9)
    np.testing.assert_array_equal(fresh.opened, whole.opened)
    assert (fresh.lane_values() is None) == (lanes == 0)
    if lanes:
        np.testing.assert_allclose(fresh.lane_values(), whole.lane_values(), rtol=1e-8)


def test_starts_without_rows_count_in_means_and_lanes(line, basis):
    counts, key = counts_of(line.key, 9), np.arange(7, dtype=np.uint64)
    system = filled(FeatureSystem(basis, lanes=9), line, counts)
    lone = LoneStarts(np.linspace(-2.0, 2.0, 7)[:, None], key, np.zeros(7, dtype=int))
    before, more = system.lane_values(), counts_of(key, 9)
    system.add_starts(lone, fold_of(key, FOLDS), more)
    own, theirs = basis.rows(line).first, basis.phi(lone.input)
    mean = np.concatenate([own, theirs]).mean(axis=0)
    np.testing.assert_allclose(system.start(), mean)
    theta = system.solve().theta
    np.testing.assert_allclose(system.start_values(lone, theta), theirs @ theta)
    after = system.lane_values()
    assert (before != after).any()
    start = own.T @ counts[:, 2] + theirs.T @ more[:, 2]
    flat = system.lanes[2].reshape(system.d, -1)
    solved = np.linalg.solve(flat[:, :-1], flat[:, -1])
    wanted = start @ solved / (counts[:, 2].sum() + more[:, 2].sum())
    assert after[2] == pytest.approx(wanted, rel=1e-6)


def test_the_logged_policys_equations_have_no_ratios(line, basis):
    system = filled(FeatureSystem(basis, 0.5, ridge=1e-6).logged(), line)
    rows = basis.rows(line)
    A = rows.here.T @ rows.right[:, :-1]
    A += 1e-6 * np.abs(np.diagonal(A)).mean() * np.eye(4)
    theta = np.linalg.solve(A, rows.here.T @ rows.reward)
    np.testing.assert_allclose(system.solve().theta, theta, rtol=1e-7)


def test_actions_that_no_row_has_are_told_by_their_ridge():
    """One-hot features of three states and two actions, of which one pair is never tried."""
    rng = np.random.default_rng(3)
    n = 240
    log = pd.DataFrame({"episode": np.arange(n) // 4})
    log["state"] = np.cumsum(rng.integers(0, 3, n)) % 3  # a state may lead to itself
    log["action"] = np.where(log.state == 1, 0, rng.integers(0, 2, n))
    log = log.assign(reward=1.0, terminated=np.arange(n) % 4 == 3, behavior_prob=0.5)
    policy = np.array([[0.5, 0.5], [0.4, 0.6], [0.9, 0.1]])
    for a in (0, 1):
        log[f"target_prob_{a}"] = policy[log.state, a]
    block = by_fold(block_of(log))
    system = filled(FeatureSystem(Actions(States(Tabular(3).fit()), 2), ridge=1e-8), block)
    rows = block.rows
    count, move = np.zeros((3, 2)), np.zeros((6, 6))
    np.add.at(count, (rows.state, rows.action), 1.0)
    for t in range(n):
        if not rows.terminated[t]:
            for a in (0, 1):
                share = 0.9 * policy[rows.next_state[t], a] / count[rows.state[t], rows.action[t]]
                move[3 * rows.action[t] + rows.state[t], 3 * a + rows.next_state[t]] += share
    start = np.zeros(6)
    for s in rows.state[block.first[:-1]]:
        start[[s, 3 + s]] += policy[s] / block.count
    visits = np.linalg.solve(np.eye(6) - move.T, start)
    lost = visits[4] * 5.0
    assert system.untried(5.0) == pytest.approx(lost / (visits.sum() - visits[4] + lost), rel=1e-4)


def test_runs_of_folds_and_rows_that_fit():
    assert list(runs(np.array([2, 2, 0, 0, 0, 2]))) == [(2, 0, 2), (0, 2, 5), (2, 5, 6)]
    assert list(runs(np.array([1]))) == [(1, 0, 1)]
    assert fitting_rows(1 << 21) == 1
    assert fitting_rows(1 << 10) == 1 << 10
    assert fitting_rows(0) == 1 << 20

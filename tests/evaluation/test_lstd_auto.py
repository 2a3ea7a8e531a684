"""LSTD that chooses its trace, as an estimate of a log's value."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from o2td import LSTD, Transitions, domains, evaluation
from o2td.evaluation.estimators import lstd_auto
from o2td.features import Fourier

from .logs import line_log, line_value


def rows_of(log: pd.DataFrame, features: Fourier) -> Transitions:
    phi, later = (features.transform(log[[name]].to_numpy()) for name in ("obs_0", "next_obs_0"))
    chance = np.where(log.action == 1, log.target_prob_1, log.target_prob_0)
    return Transitions(
        phi,
        log.reward,
        later,
        discount=np.where(log.terminated, 0.0, 0.9),
        rho=chance / log.behavior_prob,
        start=~log.duplicated("episode"),
    )


def test_it_is_the_solver_on_the_same_features():
    log = line_log(60, 5)
    answer = evaluation.evaluate(log, 0.9, features="fourier:3", methods="lstd_auto", lanes=20)
    inputs = log[["obs_0", "next_obs_0"]].to_numpy()
    features = Fourier(3, bounds=[(inputs.min(), inputs.max())]).fit()
    rows = rows_of(log, features)
    solver = LSTD(trace="auto").fit(rows)
    value = float(np.asarray(rows.phi)[rows.start].mean(axis=0) @ solver.theta)
    found = answer["lstd_auto"]
    assert found.value == pytest.approx(value, rel=1e-6)
    assert str(solver.solution.direction) in found.about
    assert found.low < line_value(0.9) < found.high


def test_it_is_computed_on_request_only_and_never_recommended():
    log = line_log(40, 6)
    assert "lstd_auto" not in {row.method for row in evaluation.evaluate(log, 0.9).estimates}
    answer = evaluation.evaluate(log, 0.9, methods="lstd_auto,pdis", lanes=20)
    assert answer.recommended.method != "lstd_auto"


def test_states_have_one_weight_each():
    problem = domains.random_walk("tabular")
    batch = problem.sample(3000, seed=2)
    start = np.asarray(batch.start)
    log = pd.DataFrame(
        {
            "episode": np.cumsum(start),
            "state": batch.state,
            "next_state": np.maximum(batch.next_state, 0),
            "reward": batch.reward,
            "terminated": np.asarray(batch.discount) == 0.0,
            "rho": batch.rho,
        }
    )
    log = log[log.episode < log.episode.max()]
    answer = evaluation.evaluate(log, 0.9, methods="lstd_auto,lstd", lanes=20)
    assert answer["lstd_auto"].value == pytest.approx(answer["lstd"].value, abs=0.2)


def test_chosen_features_are_averaged_each_with_a_trace_of_its_own():
    log = line_log(60, 5)
    answer = evaluation.evaluate(log, 0.9, methods="lstd_auto", lanes=20)
    found, listed = answer["lstd_auto"], answer.features["candidates"]
    kept = [one for one in listed if one["verdict"].startswith("kept") and not one["trace"]]
    bases = sum(one["count"] <= 200 for one in kept)
    assert f"mean of {bases - 2 * (bases // 4)} of {bases} fits" in found.about
    assert found.low < line_value(0.9) < found.high


def test_odd_bases_do_not_move_the_mean():
    assert lstd_auto._midmean([1.0, 1.1, 0.9, 60.0]) == (pytest.approx(1.0), 3)
    values = [1.0, 1.2, 0.8, 1.1, 0.9, 1.0, -50.0, 70.0, np.nan]
    assert lstd_auto._midmean(values) == (pytest.approx(1.0), 4)


class Groups:
    """Ten groups of rows, as a bench has them."""

    def __init__(self, log: pd.DataFrame, features: Fourier) -> None:
        self.log, self.features = log, features
        self.group = log.episode.to_numpy() % 10
        self.left_out = np.arange(10)

    def transitions(self, chosen: np.ndarray) -> Transitions:
        return rows_of(self.log[chosen], self.features)

    def start(self, without: int) -> np.ndarray:
        rows = self.transitions(self.group != without)
        return np.asarray(rows.phi)[rows.start].mean(axis=0)


def test_leaving_out_by_halves_is_leaving_out_one_by_one():
    log = line_log(120, 7)
    bounds = [(log.obs_0.min(), log.obs_0.max())]
    bench = Groups(log, Fourier(2, bounds=bounds).fit())
    # With a trace that is given: which one is chosen also depends on the order of the rows.
    whole = LSTD(trace=0.9, ridge=1e-3)
    found = list(lstd_auto._without(bench, whole))
    expected = []
    for left in range(10):
        solver = LSTD(trace=0.9, ridge=1e-3).fit(bench.transitions(bench.group != left))
        expected.append(bench.start(left) @ solver.theta)
    assert np.ptp(expected) > 1e-3
    np.testing.assert_allclose(found, expected, rtol=1e-8)

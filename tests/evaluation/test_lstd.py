"""What weighted histories say of a fit's errors."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from o2td.evaluation.estimators.lstd import Correction, LSTDEstimator, off_by

from .logs import line_log
from .study import traced


@pytest.mark.parametrize("reach", [3, 10**6])
def test_a_correction_of_rewards_is_the_weighted_sum_within_its_reach(reach):
    study, found = traced(line_log(30, 3))
    column = Correction(study.weighed, 0, reach).of(found)
    assert column.mean() == pytest.approx(study.weighed.horizon.weighted()[:reach].sum())
    assert np.isfinite(column).all()


def test_a_correction_is_weighted_by_the_number_of_episodes_and_the_weights_of_its_step():
    study, found = traced(line_log(30, 3))
    block, horizon = found.episodes, study.weighed.horizon
    delta = np.random.default_rng(0).normal(size=len(block.rows))
    other = replace(found, first=found.first * 2, delta=[found.delta[0], delta])
    each = []
    for low, high in zip(block.first[:-1], block.first[1:], strict=True):
        steps = np.arange(min(high - low, 4))
        error = found.weight[low + steps] * found.gone[low + steps] * delta[low + steps]
        each.append(study.weighed.units * (error * horizon.inverse[steps]).sum())
    np.testing.assert_allclose(Correction(study.weighed, 1, 4).of(other), each, rtol=1e-9)


@pytest.mark.parametrize(
    ("mean", "average", "expected"), [(-4.0, False, 3.5), (-4.0, True, 1.5), (0.4, False, -0.1)]
)
def test_what_a_correction_shows_beyond_two_errors(mean, average, expected):
    short = SimpleNamespace(mean=mean, error=0.25)
    assert off_by(short, average) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("size", "episodes", "exact", "reaches"),
    [
        ([200.0, 100.0, 60.0, 50.0, 49.0], 400, False, [2]),
        ([200.0, 100.0, 60.0, 50.0, 49.0], 400, True, [2, 4]),
        ([200.0, 100.0, 60.0, 50.0, 49.0], 100, False, [5]),
        ([200.0, 100.0, 60.0, 50.0, 49.0], 200, True, [4]),
        ([99.0, 90.0], 400, False, []),
        ([99.0, 90.0], 400, True, [2]),
        ([1.0, 1.0, 0.5], 2, False, [2]),
    ],
)
def test_histories_correct_as_far_as_enough_of_them_are_effective(size, episodes, exact, reaches):
    wanted = []
    influences = SimpleNamespace(
        correct=lambda baseline: 7, want=lambda column: wanted.append(column) or 10 + len(wanted)
    )
    horizon = SimpleNamespace(effective_size=np.array(size), inverse=np.ones(len(size)))
    study = SimpleNamespace(
        weighed=SimpleNamespace(horizon=horizon, units=episodes), influences=influences,
        survey=SimpleNamespace(episodes=episodes), choice=SimpleNamespace(exact=exact),
        fitting=SimpleNamespace(has=lambda system: True), corrected=None, baseline=None,
    )  # fmt: skip
    found = LSTDEstimator()._corrections(study)
    assert list(found.values()) == [11, 12][: len(found)]
    assert sorted(found) == reaches
    assert [column.reach for column in wanted] == list(found)
    assert all(column.baseline == 7 for column in wanted)
    study.fitting.has = lambda system: False
    assert LSTDEstimator()._corrections(study) == {}

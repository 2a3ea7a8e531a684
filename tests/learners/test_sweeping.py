"""Parts, spans and threads of a sweep."""

from __future__ import annotations

from concurrent.futures import CancelledError, ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest

from o2td import Transitions, metrics, sweep
from o2td.domains import garnet
from o2td.emphasis import FollowOn, Omega
from o2td.learners import GTD2, O2TD, TD, sweeping

from .test_sweep import Own


@pytest.mark.parametrize(
    ("count", "sizes"),
    [(1, [1]), (11, [11]), (12, [12]), (16, [16]), (17, [16, 1]), (28, [28]), (40, [32, 8])],
)
def test_parts_are_whole_groups_and_a_rest(count, sizes):
    found = sweeping.parts(list(range(count)))
    assert [len(part) for part in found] == sizes
    assert [k for part in found for k in part] == list(range(count))


@pytest.mark.parametrize("count", [1, 5, 20])
@pytest.mark.parametrize("every", [30, 64, 100])
def test_spans_do_not_change_what_is_recorded(count, every, monkeypatch):
    """Metrics worked out in a thread, of records that are overwritten two stretches later."""
    problem = garnet(seed=1)
    batch = problem.sample(3000, seed=1)
    error = {"rmse": metrics.rmse(problem), "rmspbe": metrics.rmspbe(problem)}
    learners = [
        *(TD(a, trace=0.5) for a in np.geomspace(0.001, 0.1, count)),
        *(GTD2(a) for a in np.geomspace(0.001, 0.1, count)),
    ]
    once = sweep(learners, batch, error, every)
    monkeypatch.setattr(sweeping, "SPAN", 192)
    inline = sweep(learners, batch, error, every)
    monkeypatch.setattr(sweeping, "OVERLAP", -1)
    parts = sweep(learners, batch, error, every)
    for name in error:
        np.testing.assert_allclose(parts.values[name], once.values[name], rtol=1e-10)
        np.testing.assert_array_equal(parts.values[name], inline.values[name])
    np.testing.assert_allclose(parts.theta, once.theta, rtol=1e-10)


def test_what_fails_in_the_thread_is_not_lost(monkeypatch):
    monkeypatch.setattr(sweeping, "SPAN", 64)
    monkeypatch.setattr(sweeping, "OVERLAP", -1)
    problem = garnet(seed=1)

    def fails(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(sweeping, "metric_values", fails)
    with pytest.raises(ZeroDivisionError):
        sweep([TD(0.1)], problem.sample(1000, seed=0), {"rmse": metrics.rmse(problem)}, 10)


def test_a_stream_that_nobody_waits_for_ends_early():
    batch, (stop, on) = garnet(seed=1).sample(100, seed=0), (Event(), Event())
    stop.set()
    lanes = sweeping._lanes([TD(0.1)])
    with pytest.raises(CancelledError):
        sweeping._one_stream(lanes, batch, None, None, stop)
    found = sweeping._one_stream(lanes, batch, None, None, on)
    np.testing.assert_array_equal(found.theta, sweep([TD(0.1)], batch).theta)


def test_an_error_in_one_stream_ends_the_others(monkeypatch):
    """Those that have not begun are not begun, and those that have are told."""
    begun, told = [], Event()

    def stream(own, batch, metrics, every, stop):
        begun.append(own)
        if own == 0:
            raise ZeroDivisionError
        if stop.wait(20.0):
            told.set()

    monkeypatch.setattr(sweeping, "_one_stream", stream)
    with pytest.raises(ZeroDivisionError):
        sweeping._side_by_side(2, list(range(9)), [None] * 9, [None] * 9, 1)
    assert told.is_set() or begun == [0]
    assert len(begun) <= 3


def curves(seed):
    problem = garnet(seed=1)
    error = {"rmse": metrics.rmse(problem)}
    return sweep([TD(0.1), TD(0.01)], problem.sample(2000, seed=seed), error, 10).values["rmse"]


def test_sweeps_in_threads_of_the_user_share_the_helpers(monkeypatch):
    alone = [curves(seed) for seed in range(6)]
    monkeypatch.setattr(sweeping, "OVERLAP", -1)
    monkeypatch.setattr(sweeping, "spare", lambda: 1)
    with ThreadPoolExecutor(max_workers=6) as pool:
        for one, other in zip(alone, pool.map(curves, range(6)), strict=True):
            np.testing.assert_array_equal(one, other)


def test_metrics_of_ones_own_in_every_form_are_one_compiled_function():
    """Arrays that are read-only have another type: it would be compiled again, for a second each."""
    batch = Transitions(np.eye(2), np.ones(2), np.eye(2), discount=0.5)
    R = np.array([[1.0, 2.0], [0.0, 3.0]])
    frozen = metrics.Quadratic("frozen", R.copy(), np.array([1.0, 2.0]), 0.0)
    frozen.R.flags.writeable = frozen.center.flags.writeable = False
    forms = [frozen, Own(R), Own(R.astype(np.int32)), Own(R.tolist(), constant=np.array(0))]
    forms += [Own(np.asfortranarray(R)), Own(np.repeat(R, 2, axis=1)[:, ::2], np.array([1, 2]))]
    forms += [Own(R, np.array([1.0, 0.0, 2.0, 0.0])[::2])]
    named = {str(k): metric for k, metric in enumerate(forms)}
    sweep([TD(0.1)], batch, {"frozen": frozen}, 1)
    compiled = len(sweeping.metric_values.signatures)
    result = sweep([TD(0.1)], batch, named, 1)
    assert len(sweeping.metric_values.signatures) == compiled
    for value in result.values.values():
        np.testing.assert_array_equal(value, result.values["0"])
    assert result.values["0"][0, 1] == pytest.approx(frozen.value(result.theta[:, 0]), rel=1e-14)


class Noting(TD):
    """A constructor that makes something which copies must not share."""

    def __init__(self, step_size=0.1):
        super().__init__(step_size)
        self.notes = []


@pytest.mark.parametrize("lanes", [1, 16])
def test_lanes_are_copies_as_the_constructor_makes_them(lanes):
    batch = garnet(seed=1).sample(300, seed=1)
    learner, assigned = TD(0.05, emphasis=Omega("sample")).partial_fit(batch), TD(0.1)
    row = batch[:1]
    learner.learn_one(row.phi[0], row.reward[0], row.next_phi[0], 0.5)
    assigned.step_size, assigned.emphasis = 0.02, FollowOn()
    noting, theta = Noting(), learner.theta.copy()
    result = sweep([learner, assigned, noting] * lanes, batch)
    expected = [O2TD(0.05), TD(0.02, emphasis=FollowOn()), TD(0.1)]
    for found, own in zip(result.learners, expected * lanes, strict=True):
        np.testing.assert_allclose(found.theta, own.fit(batch).theta, rtol=1e-12)
    np.testing.assert_array_equal(learner.theta, theta)
    learner.learn_one(row.phi[0], row.reward[0], row.next_phi[0], 0.5)
    assert learner.steps == batch.n + 2
    assert result.learners[2].notes is not noting.notes

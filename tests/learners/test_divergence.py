"""A learner diverges at the same step whichever way its rows come, and however long features are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from o2td import Transitions, sweep
from o2td.learners import (
    ETD,
    GTD2,
    HTD,
    O2TD,
    TD,
    TDC,
    TDCMP,
    TDRC,
    TrueOnlineHTD,
    TrueOnlineTD,
    VarianceTD,
    VTrace,
)

GRADIENT = (GTD2, TDC, TDRC, HTD, TDCMP)
TRACED = [lambda a, kind=kind: kind(a, trace=0.9) for kind in (TD, ETD, O2TD, VTrace)]
TRACED += [lambda a, kind=kind: kind(a, second_step_size=a, trace=0.9) for kind in GRADIENT]
SCALES = [1e-3, 1.0, 1e3]


def stream(seed, scale, sparse):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(5, 3)) * scale
    state, after = rng.integers(5, size=(2, 300))
    rows = csr_array if sparse else np.ascontiguousarray
    discount = np.where(rng.random(300) < 0.05, 0.0, 1.0)
    return Transitions(
        rows(table[state]),
        rng.normal(size=300),
        rows(table[after]),
        discount,
        rho=rng.random(300) * 3,
    )


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", range(len(TRACED)))
def test_the_step_does_not_depend_on_how_rows_are_split(kind, scale, sparse):
    for seed in range(4):
        batch = stream(seed, scale, sparse)
        learner = TRACED[kind](float(10.0 ** (seed / 2 + 1)) / scale**2)
        whole = learner.clone().partial_fit(batch)
        step = whole.status.step
        assert whole.status.kind == "diverged"
        for size in (1, 50):
            parts = learner.clone()
            for block in batch.chunks(size):
                parts.partial_fit(block)
            assert (parts.status.step, parts.steps) == (step, step)
            np.testing.assert_allclose(parts.theta, whole.theta, rtol=1e-3)
        for lanes, every in ((1, 7), (13, 7), (13, 300)):
            swept = sweep([learner] * lanes, batch, every=every)
            assert swept.diverged.tolist() == [step] * lanes


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", range(len(TRACED)))
def test_nor_on_whether_they_come_one_by_one(kind, scale, tmp_path):
    batch = stream(0, scale, False)
    learner = TRACED[kind](30.0 / scale**2)
    whole = learner.clone().partial_fit(batch)
    for t in range(len(batch)):
        if t == 20:
            learner.save(tmp_path / "half.npz")
            learner = type(learner).load(tmp_path / "half.npz")
        phi, following = batch.phi[t].copy(), batch.next_phi[t].copy()
        learner.learn_one(phi, batch.reward[t], following, batch.discount[t], batch.rho[t])
    assert whole.status.kind == learner.status.kind == "diverged"
    assert learner.status.step == whole.status.step


@pytest.mark.parametrize("kind", [TrueOnlineTD, TrueOnlineHTD, VarianceTD])
def test_traces_of_few_entries_are_as_before_where_a_stretch_is_repeated(kind):
    """Rows have one entry each: what a trace lists must be that of the row the lane goes back to."""
    rng = np.random.default_rng(0)
    table, (state, after) = csr_array(np.eye(12)), rng.integers(12, size=(2, 120))
    rho, reward = rng.random(120) * 3, rng.normal(size=120)
    batch = Transitions(table[state], reward, table[after], np.ones(120), rho=rho)
    learner = kind(3.0, trace=0.9)
    single = learner.clone()
    for block in batch.chunks(1):
        single.partial_fit(block)
    assert single.status.step > 21
    for every in (7, 120):
        swept = sweep([learner], batch, every=every)
        assert swept.diverged.tolist() == [single.status.step]
        np.testing.assert_allclose(swept.theta[:, 0], single.theta, rtol=1e-9)


@pytest.mark.parametrize("kind", [TD, GTD2])
@pytest.mark.parametrize("convert", [np.asarray, csr_array])
@pytest.mark.parametrize(
    ("alpha", "reward", "rho"), [(1e-10, 1e155, 1.0), (0.1, 1.0, 1e155)], ids=["error", "step"]
)
def test_an_error_or_a_step_beyond_the_bound_alone_is_divergence(convert, kind, alpha, reward, rho):
    phi = convert(np.ones((3, 2)))
    rows = Transitions(phi, np.array([0.5, reward, 0.5]), phi, 0.0, rho=np.array([1.0, rho, 1.0]))
    learner = kind(step_size=alpha).partial_fit(rows)
    assert (learner.status.kind, learner.status.step) == ("diverged", 1)
    np.testing.assert_array_equal(learner.theta, kind(step_size=alpha).partial_fit(rows[:1]).theta)


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("convert", [np.asarray, csr_array])
@pytest.mark.parametrize("place", [1, 2])
def test_a_step_along_the_successors_features_alone_beyond_the_bound_is_divergence(
    convert, lanes, place
):
    """The row's error is 0 and its second weights are small: only `z.w phi'` is too large."""
    here = convert(np.tile([1.0, 0.0], (place + 1, 1)))
    after = convert(np.tile([0.0, 1.0], (place + 1, 1)))
    rho = np.append(np.ones(place), 1e155)
    reward = np.ones(place + 1)
    first = TDC(step_size=1.0, second_step_size=0.1)
    known = first.clone().partial_fit(
        Transitions(here[:place], reward[:place], after[:place], 0.9, rho=rho[:place])
    )
    reward[-1] = known.theta[0] - 0.9 * known.theta[1]
    rows = Transitions(here, reward, after, 0.9, rho=rho)
    learner = first.clone().partial_fit(rows)
    assert (learner.status.kind, learner.status.step) == ("diverged", place)
    np.testing.assert_array_equal(learner.theta, known.theta)
    swept = sweep([first] * lanes, rows)
    assert swept.diverged.tolist() == [place] * lanes

"""Every way through the kernels on a few rows of few features, against the plain reference.

Short enough to run without compilation, so that mutants of compiled lines meet them.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from o2td import metrics, sweep
from o2td.emphasis import FollowOn, Omega
from o2td.learners import (
    ETD,
    GTD,
    GTD2,
    GTD2MP,
    HTD,
    O2TD,
    TD,
    TDC,
    TDRC,
    PowerDecay,
    ResidualGradient,
    WeightedLearner,
    family,
)

from . import reference
from .conftest import LAYOUTS, as_dicts, as_rows, random_rows
from .test_against_reference import CASES, A, W, gradient, weighted


def short(n=40, seed=4, d=5, states=9, **changes):
    table, batch = random_rows(n, d=d, states=states, seed=seed)
    batch |= {key: value(batch[key]) for key, value in changes.items()}
    return table, batch


def last(count):
    """Discounts of 0 but for the last so many rows."""

    def of(discount):
        return np.where(np.arange(len(discount)) < len(discount) - count, 0.0, 0.9)

    return of


STREAMS = {
    "mixed": short(),
    "other": short(33, seed=11, d=4),
    "terminal first": short(9, discount=last(5)),
    "terminal only": short(6, discount=last(0)),
    "one row": short(1, seed=2),
    "no start": short(12, start=np.zeros_like),
    "no discount": short(12, discount=np.ceil, start=np.zeros_like),
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("case", CASES)
def test_reference(case, name):
    learner, plain = CASES[case]
    stream = STREAMS[name]
    expected = plain(as_dicts(*stream))
    for layout, build in LAYOUTS.items():
        rows = build(*stream)
        theta = learner.clone().partial_fit(rows).theta
        np.testing.assert_allclose(theta, expected, rtol=1e-10, atol=1e-14, err_msg=layout)
        parts = learner.clone()
        for low in range(0, rows.n, 7):
            parts.partial_fit(rows[low : low + 7])
        np.testing.assert_allclose(parts.theta, expected, rtol=1e-10, atol=1e-14, err_msg=layout)


# -- lanes side by side ----------------------------------------------------------------------------


WEIGHTED = {
    TD(A): weighted(),
    TD(0.3): weighted(alpha=0.3),
    TD("auto"): weighted(alpha="auto"),
    ETD(A / 5): weighted(alpha=A / 5, kind="follow"),
    **{
        O2TD(A, omega=name): weighted(kind=f"omega:{name}")
        for name in ("sample", "printed", "moments")
    },
}
TRACED = {
    TD(A, trace=0.5): weighted(lam=0.5),
    TD(0.3, trace=1.0): weighted(alpha=0.3, lam=1.0),
    ETD(A / 5, trace=0.4): weighted(alpha=A / 5, lam=0.4, kind="follow"),
    O2TD(A, omega="sample", trace=0.7): weighted(lam=0.7, kind="omega:sample"),
}
PAIRS = {
    GTD2(A, second_step_size=W): ("GTD2", A, W, {}),
    GTD2(0.3, second_step_size=0.2): ("GTD2", 0.3, 0.2, {}),
    GTD2("auto"): ("GTD2", "auto", "auto", {}),
    GTD2(PowerDecay(0.3, 0.6), second_step_size=W): ("GTD2", lambda t: 0.3 * t**-0.6, W, {}),
    GTD2(A, second_step_size=W, emphasis=Omega("sample")): ("GTD2", A, W, {"kind": "omega:sample"}),
    GTD2(A / 5, second_step_size=W, emphasis=FollowOn()): ("GTD2", A / 5, W, {"kind": "follow"}),
}
FULL = {
    **PAIRS,
    GTD(A, second_step_size=W): ("GTD", A, W, {}),
    GTD(A, second_step_size=1.0): ("GTD", A, 1.0, {}),
    GTD2(A, second_step_size=W, form="expanded"): ("GTD2 expanded", A, W, {}),
    TDC(A, second_step_size=W): ("TDC", A, W, {}),
    TDRC(A, second_step_size=W): ("TDRC", A, W, {"kappa": 1.0}),
    TDRC(A, second_step_size=0.7, regularizer=2.5): ("TDRC", A, 0.7, {"kappa": 2.5}),
    HTD(A, second_step_size=W): ("HTD", A, W, {}),
}
TOGETHER = {"lean": PAIRS, "full": FULL}
LONG = short(75, seed=3)


def run_together(monkeypatch, lanes, every, stream=LONG):
    monkeypatch.setattr(family, "TOGETHER", 1)
    d = stream[0].shape[1]
    norm = {"norm": metrics.Quadratic("norm", np.eye(d), np.zeros(d), 0.0)}
    return sweep(lanes, as_rows(*stream), norm, every)


def recorded(plain, every):
    rows = as_dicts(*LONG)
    return [np.linalg.norm(plain(rows[:t])) for t in range(every, len(rows) + 1, every)]


@pytest.mark.parametrize("every", [None, 7, 36])
@pytest.mark.parametrize("trace", [0.0, 0.5])
def test_weighted_lanes_side_by_side(trace, every, monkeypatch):
    plain = TRACED if trace else WEIGHTED
    lanes = list(plain)
    result = run_together(monkeypatch, [*lanes, TD(1e90, trace=trace), lanes[0]], every)
    assert result.diverged.tolist() == [-1] * len(lanes) + [result.diverged[-2], -1]
    for k, lane in enumerate([*lanes, None, lanes[0]]):
        if lane is not None:
            expected = plain[lane](as_dicts(*LONG))
            np.testing.assert_allclose(result.theta[:, k], expected, rtol=1e-10, atol=1e-14)
            if every is not None:
                found = result.values["norm"][k]
                np.testing.assert_allclose(found, recorded(plain[lane], every), rtol=1e-9)


@pytest.mark.parametrize("every", [None, 7, 36])
@pytest.mark.parametrize("kind", TOGETHER)
def test_gradient_lanes_side_by_side(kind, every, monkeypatch):
    pairs = TOGETHER[kind]
    wild = TDRC(1e90, regularizer=1e-3) if kind == "full" else GTD2(1e90)
    lanes = [*pairs, wild, next(iter(pairs))]
    result = run_together(monkeypatch, lanes, every)
    for k, lane in enumerate(lanes):
        if lane is not wild:
            name, alpha, second, options = pairs[lane]
            rows = as_dicts(*LONG)
            theta, w = reference.gradient_pair(name, rows, alpha, second, **options)
            np.testing.assert_allclose(result.theta[:, k], theta, rtol=1e-10, atol=1e-14)
            np.testing.assert_allclose(result.learners[k].w, w, rtol=1e-10, atol=1e-14)
            assert result.diverged[k] == -1
    if every is not None:
        name, alpha, second, options = pairs[lanes[0]]
        norms = recorded(lambda rows: reference.gradient(name, rows, alpha, second), every)
        np.testing.assert_allclose(result.values["norm"][0], norms, rtol=1e-9)
        np.testing.assert_allclose(result.values["norm"][-1], norms, rtol=1e-9)


WILD = [
    *(TD(1e90), ETD(1e70), O2TD(1e100)),
    *(TD(1e90, trace=0.5), ETD(1e70, trace=0.3), O2TD(1e100, trace=0.4)),
    *(
        GTD2(1e90, second_step_size=1.0),
        GTD2(1.0, second_step_size=1e100),
        GTD2(1e60),
        GTD(1e90, second_step_size=1.0),
        GTD(1e-3, second_step_size=1e60),
    ),
    *(
        TDC(1e80),
        TDC(1e-9, second_step_size=1e100),
        TDRC(1e90),
        HTD(1e70),
        HTD(1e-100, second_step_size=1e60),
    ),
]


@pytest.mark.parametrize("wild", WILD, ids=repr)
def test_a_lane_among_others_stops_where_it_stops_alone(wild, monkeypatch):
    """Its theta and w are those before the row that overflows, and other lanes go on."""
    weighted = TD(A, trace=0.5 if wild._traced else 0.0)
    calm = weighted if isinstance(wild, WeightedLearner) else TDRC(A, second_step_size=W)
    stream = as_rows(*LONG)
    alone = wild.clone().partial_fit(stream)
    step = alone.status.step
    assert 0 < step < stream.n
    before = wild.clone().partial_fit(stream[:step])
    assert before.status.kind != "diverged"
    result = run_together(monkeypatch, [calm, wild, calm], None)
    assert result.diverged.tolist() == [-1, step, -1]
    for learner in (alone, result.learners[1]):
        for name in ("theta", "w", "z"):
            if name in before._arrays:
                found, expected = learner._arrays[name], before._arrays[name]
                np.testing.assert_allclose(found, expected, rtol=1e-8)
    others = run_together(monkeypatch, [calm, calm, calm], None)
    np.testing.assert_array_equal(result.theta[:, [0, 2]], others.theta[:, [0, 2]])


# -- w held as a scale times w ---------------------------------------------------------------------


@pytest.mark.parametrize("keep", [2.0**-50, -(2.0**50), 0.0, 0.5])
@pytest.mark.parametrize(
    "learner",
    [TDRC, partial(TDRC, trace=0.6), GTD, partial(GTD, trace=0.6)],
    ids=["TDRC", "TDRC traced", "GTD", "GTD traced"],
)
def test_sparse_rows_shrink_and_grow_the_second_weights(learner, keep):
    """One row moves w, eight rows with ratio 0 and another feature only multiply it by `keep`."""
    table = np.array([[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 0.0, 3.0], [0.0, 1.5, 1.0, 0.0]])
    state = np.array([0, *[1] * 8, 0, 2])
    learner = learner(1e-160 if abs(keep) > 1.0 else 0.1, second_step_size=1.0 - keep)
    batch = {"state": state, "next_state": np.roll(state, -1), "reward": np.arange(1.0, 12.0)}
    batch |= {"discount": np.full(11, 0.5), "rho": np.where(state == 1, 0.0, 0.8)}
    for rows in (9, 10, 11):
        cut = {name: array[:rows] for name, array in batch.items()}
        stream = [LAYOUTS[name](table, cut) for name in LAYOUTS]
        dense, *others = [learner.clone().partial_fit(one) for one in stream]
        if rows == 9 and isinstance(learner, GTD):
            first = (1.0 - keep) * 0.8 * table[0]
            np.testing.assert_allclose(dense.w, first * keep**8, rtol=1e-12)
        for other in others:
            assert other.status.kind == dense.status.kind
            np.testing.assert_allclose(other.theta, dense.theta, rtol=1e-12)
            np.testing.assert_allclose(other.w, dense.w, rtol=1e-12)


# -- what is remembered from row to row --------------------------------------------------------------


REGRESSED = {
    O2TD(A, omega="moments"): weighted(kind="omega:regression"),
    O2TD(A, omega="moments", trace=0.7): weighted(lam=0.7, kind="omega:regression"),
    GTD2(A, second_step_size=W, emphasis=Omega("moments")): gradient(
        "GTD2", kind="omega:regression"
    ),
}


@pytest.mark.parametrize("learner", REGRESSED, ids=repr)
@pytest.mark.parametrize("sparse", [False, True])
def test_moments_without_states_are_regressed(learner, sparse):
    table, batch = short(60, seed=5)
    expected = REGRESSED[learner](as_dicts(table, batch))
    phi = as_rows(table, batch, sparse)
    anonymous = type(phi)(
        phi=phi.phi, next_phi=phi.next_phi, reward=phi.reward, discount=phi.discount,
        rho=phi.rho, start=phi.start,
    )  # fmt: skip
    for size in (60, 13, 1):
        found = learner.clone()
        for low in range(0, 60, size):
            found.partial_fit(anonymous[low : low + size])
        np.testing.assert_allclose(found.theta, expected, rtol=1e-10)


def test_a_sparse_trace_forgets_entries_that_vanish():
    """Below 1e-150 an entry is 0 and no longer on the list; at 1e-140 it still is."""
    table = np.array([[1.0, 0.0], [0.0, 1.0]])
    state = np.array([0, 1, 1, 1])
    rows = {"state": state, "next_state": state, "reward": np.ones(4), "discount": np.ones(4)}
    for decay, left in [(1e-70, 2), (1e-80, 1)]:
        rho = np.array([1.0, 1.0, decay, decay])
        for learner in (TD(0.1, trace=1.0), GTD2(0.1, trace=1.0), HTD(0.1, trace=1.0)):
            fitted = learner.clone().partial_fit(
                LAYOUTS["csr table"](table, {**rows, "rho": np.roll(rho, -1)})
            )
            size = fitted._arrays["size"].ravel()[0]
            z = fitted._arrays["z"][0]
            assert np.count_nonzero(z) == size
            assert sorted(fitted._arrays["active"][0, :size]) == np.flatnonzero(z).tolist()
            if isinstance(learner, TD):
                assert size == left


@pytest.mark.parametrize(
    "learner",
    [
        GTD2MP(A, second_step_size=W, trace=0.6),
        HTD(A, second_step_size=W, trace=0.6),
        TDRC(A, second_step_size=W, trace=0.6),
    ],
    ids=repr,
)
def test_traces_and_second_weights_are_the_same_in_every_layout(learner):
    stream = short(30, seed=8)
    dense, *others = [learner.clone().partial_fit(build(*stream)) for build in LAYOUTS.values()]
    for other in others:
        for name in ("w", "z"):
            np.testing.assert_allclose(
                other._arrays[name], dense._arrays[name], rtol=1e-11, atol=1e-300
            )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize(("step_size", "reward"), [(1e-200, 1e200), (1e200, 1.0)])
def test_an_error_or_a_step_that_is_too_large_is_divergence(layout, double, step_size, reward):
    """Either is enough: the error of the third row, or its step."""
    table, batch = short(6, seed=2, reward=lambda x: np.where(np.arange(6) < 3, 0.0, reward))
    batch |= {"target_prob": batch["behavior_prob"]}
    learner = ResidualGradient(step_size, double=double)
    learner.partial_fit(LAYOUTS[layout](table, batch))
    assert (learner.status.kind, learner.status.step) == ("diverged", 3)
    np.testing.assert_array_equal(learner.theta, 0.0)


def test_lanes_side_by_side_leave_their_traces(monkeypatch):
    lanes = [TD(A, trace=0.6), O2TD(A, trace=0.9), TD(0.01, trace=0.3)]
    result = run_together(monkeypatch, lanes, None)
    for lane, trained in zip(lanes, result.learners, strict=True):
        alone = lane.clone().partial_fit(as_rows(*LONG))
        np.testing.assert_allclose(trained._arrays["z"], alone._arrays["z"], rtol=1e-10)
        assert trained._arrays["z"].any()


@pytest.mark.parametrize("lane", [TD(A), TD(A, trace=0.5), GTD2(A)], ids=repr)
def test_a_lane_that_stops_at_its_first_row_stays_out(lane, monkeypatch):
    """Also where a later row, two blocks on, would stop it again."""
    rewards = np.zeros(150)
    rewards[[0, 140]] = 1e200
    stream = short(150, seed=6, d=3, reward=lambda _: rewards)
    result = run_together(monkeypatch, [lane, lane], None, stream)
    assert result.diverged.tolist() == [0, 0]
    np.testing.assert_array_equal(result.theta, 0.0)


# -- where a number gets too large -------------------------------------------------------------------


PLAIN = [
    *(TD, partial(TD, trace=0.5), ETD, partial(ETD, trace=0.3), O2TD, partial(O2TD, trace=0.4)),
    *(partial(O2TD, omega="printed"), GTD, partial(GTD, trace=0.5), GTD2, partial(GTD2, trace=0.5)),
    *(partial(GTD2, form="expanded"), TDC, partial(TDC, trace=0.5), TDRC, HTD),
    *(partial(HTD, trace=0.5), GTD2MP, partial(GTD2MP, trace=0.5)),
]


def quiet(n, at, size, seed=2):
    """Rewards of 0 but for some rows; ratios of 1."""
    rewards = np.zeros(n)
    rewards[at] = size
    table, batch = short(n, seed=seed, reward=lambda _: rewards)
    batch |= {"target_prob": batch["behavior_prob"], "state": 1 + batch["state"] % 8}
    return table, batch


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", PLAIN, ids=repr)
def test_an_error_that_is_too_large_is_divergence_however_small_the_step(kind, layout):
    stream = LAYOUTS[layout](*quiet(6, [3], 1e200))
    learner = kind(1e-200).partial_fit(stream)
    assert (learner.status.kind, learner.status.step) == ("diverged", 3)
    np.testing.assert_array_equal(learner.theta, 0.0)
    fine = kind(1e-200).partial_fit(LAYOUTS[layout](*quiet(6, [3], 1e140)))
    assert fine.status.kind == "ok"
    assert fine.steps == 6


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", PLAIN[:7], ids=repr)
def test_a_step_that_is_too_large_is_divergence_however_small_the_error(kind, layout):
    stream = LAYOUTS[layout](*quiet(6, [3], 1.0))
    learner = kind(1e200).partial_fit(stream)
    assert (learner.status.kind, learner.status.step) == ("diverged", 3)
    np.testing.assert_array_equal(learner.theta, 0.0)
    assert kind(1e100).partial_fit(stream[:4]).status.kind == "ok"


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("kind", [TD, partial(TD, trace=0.5), GTD2, O2TD], ids=repr)
def test_a_lane_that_stops_at_its_first_row_stays_out_of_later_blocks(kind, average, layout):
    """Also where it would go on: a record is taken after every fifth row."""
    stream = LAYOUTS[layout](*quiet(12, [0, 7], [1e200, 1.0]))
    lanes = [kind(0.1, average=average), kind(1e-3, average=average)]
    d = stream.d
    norm = {"norm": metrics.Quadratic("norm", np.eye(d), np.zeros(d), 0.0)}
    result = sweep(lanes, stream, norm, 5)
    assert result.diverged.tolist() == [0, 0]
    np.testing.assert_array_equal(result.theta, 0.0)
    calm = sweep(lanes, stream[1:], norm, 5)
    assert calm.diverged.tolist() == [-1, -1]

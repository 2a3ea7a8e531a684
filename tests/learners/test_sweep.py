from __future__ import annotations

import threading
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from o2td import Lane, Transitions, metrics, sweep
from o2td.domains import garnet, random_walk
from o2td.emphasis import FollowOn, Omega
from o2td.errors import InputError
from o2td.learners import (
    ABTD,
    ETD,
    GTD,
    GTD2,
    HTD,
    MEMBERS,
    O2TD,
    TD,
    TDC,
    TDRC,
    ResidualGradient,
    TreeBackup,
    VTrace,
)

from .conftest import LAYOUTS, random_rows

LANES = [
    *(member(step_size=0.03) for member in MEMBERS),
    *(TD(a, trace=trace) for a in (0.01, 0.1) for trace in (0.0, 0.5, 0.9)),
    *(
        O2TD(0.02, omega="state"),
        O2TD(0.02, omega="moments", trace=0.4),
        ETD(0.001, trace=0.3),
        TD("auto"),
    ),
    *(GTD2(0.02, emphasis=Omega("sample")), HTD(0.02, trace=0.5), TDRC(0.02, trace=0.9)),
    ResidualGradient(0.02, double=False),
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_lanes_are_the_learners_one_by_one(layout):
    batch = LAYOUTS[layout](*random_rows(700))
    result = sweep(LANES, batch)
    for k, learner in enumerate(LANES):
        alone = learner.clone().partial_fit(batch)
        np.testing.assert_allclose(result.theta[:, k], alone.theta, rtol=1e-11, atol=1e-13)
    assert (result.diverged == -1).all()


WEIGHTED = [TD(a) for a in (0.001, 0.01, 0.02, 0.05, 0.1)] + [
    TD("auto"),
    ETD(0.003),
    ETD(0.003, decay=0.2),
]
WEIGHTED += [O2TD(0.05, omega=reading) for reading in ("sample", "printed", "state", "moments")]
LEAN = [GTD2(a) for a in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)] + [
    GTD2(0.02, second_step_size=0.01),
    GTD2("auto"),
    GTD2(0.3, second_step_size=0.3),
]
LEAN += [GTD2(0.02, emphasis=Omega("sample")), GTD2(0.003, emphasis=FollowOn())]
OTHERS = [
    TDC(0.05, second_step_size=0.02),
    TDRC(0.05),
    TDRC(0.05, second_step_size=0.5, regularizer=2.0),
    TDRC("auto"),
]
OTHERS += [
    HTD(0.05, second_step_size=0.02),
    GTD(0.05, second_step_size=0.1),
    GTD(0.05, second_step_size=1.0),
    GTD2(0.05, form="expanded"),
]
TRACED = [TD(a, trace=trace) for a in (0.01, 0.05) for trace in (0.2, 0.5, 0.9, 1.0)]
TRACED += [
    ETD(0.003, trace=0.5),
    ETD(0.003, trace=0.9, decay=0.2),
    VTrace(0.05, trace=0.7),
    TD("auto", trace=0.3),
]
TRACED += [
    O2TD(0.02, omega=reading, trace=0.4) for reading in ("sample", "printed", "state", "moments")
]
TOGETHER = {
    "weighted": (WEIGHTED, TD(1e5)),
    "traced": (TRACED, TD(1e5, trace=0.8)),
    "lean": (LEAN, GTD2(1e5)),
    "gradient": ([*LEAN, *OTHERS], TDRC(1e5)),
}


@pytest.mark.parametrize("kind", TOGETHER)
@pytest.mark.parametrize("layout", ["dense", "table"])
@pytest.mark.parametrize("every", [None, 7, 45, 64])
def test_side_by_side_gives_what_the_plain_kernel_gives(layout, every, kind):
    table, batch = random_rows(300, d=70, states=40, sparse=False, double=False)
    stream = LAYOUTS[layout](table, batch)
    lanes, wild = TOGETHER[kind]
    lanes = [*lanes[:3], wild, *lanes[3:]]
    metric = {"norm": metrics.Quadratic("norm", np.eye(70), np.zeros(70), 0.0)}
    result = sweep(lanes, stream, metric, every)
    for k, learner in enumerate(lanes):
        alone = learner.clone().partial_fit(stream)
        np.testing.assert_allclose(result.theta[:, k], alone.theta, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            result.learners[k]._arrays.get("w", 0.0), alone._arrays.get("w", 0.0), 1e-9, 1e-12
        )
        assert result.diverged[k] == alone._diverged[0]
        for j, step in enumerate(result.steps):
            if not 0 <= result.diverged[k] < step:
                expected = np.linalg.norm(learner.clone().partial_fit(stream[:step]).theta)
                assert result.values["norm"][k, j] == pytest.approx(expected, rel=1e-9)
    assert result.diverged[3] > 0
    assert (np.delete(result.diverged, 3) == -1).all()


def test_metrics_are_recorded_at_their_steps():
    problem = garnet(seed=3)
    batch = problem.sample(1000, seed=1)
    error = {"rmse": metrics.rmse(problem), "rmspbe": metrics.rmspbe(problem)}
    lanes = [TD(0.01), O2TD(0.01), GTD2(0.01), TD(0.01, trace=0.9)]
    result = sweep(lanes, batch, error, every=70)
    assert result.steps.tolist() == list(range(70, 1001, 70))
    for k, learner in enumerate(lanes):
        for j, step in enumerate(result.steps):
            theta = learner.clone().partial_fit(batch[:step]).theta
            for name, metric in error.items():
                expected = metric.value(theta)
                assert result.values[name][k, j] == pytest.approx(expected, rel=1e-9)


def test_learners_are_left_alone():
    learner = TD(0.1)
    sweep([learner, learner], LAYOUTS["dense"](*random_rows(50)))
    assert learner.status.kind == "new"


def test_a_lane_may_have_its_own_target():
    table, batch = random_rows(400, double=False)
    stream = LAYOUTS["table"](table, batch)
    rng = np.random.default_rng(5)
    rho, reward = rng.random(400) * 2, rng.normal(size=400)
    discount = np.where(rng.random(400) < 0.2, 0.0, 0.7)
    own = [
        Lane(TD(0.05, trace=0.5), rho=rho),
        Lane(GTD2(0.05), reward=reward, discount=discount),
        Lane(ETD(0.01), rho=rho, reward=reward, discount=discount),
        TD(0.05, trace=0.5),
    ]
    result = sweep(own, stream, every=100)
    for k, lane in enumerate(own):
        seen = dict(batch)
        learner = lane
        if isinstance(lane, Lane):
            learner = lane.learner
            for name in ("rho", "reward", "discount"):
                if getattr(lane, name) is not None:
                    seen[name] = getattr(lane, name)
        alone = learner.clone().partial_fit(Transitions.from_table(table, **seen))
        np.testing.assert_allclose(result.theta[:, k], alone.theta, rtol=1e-11, atol=1e-13)


def test_a_lane_that_diverges_leaves_the_others_exact():
    problem = garnet(seed=0)
    batch = problem.sample(3000, seed=2)
    calm = [TD(0.01), GTD2(0.01), O2TD(0.001)]
    wild = [TD(100.0), GTD2(100.0), O2TD(100.0)]
    error = {"rmse": metrics.rmse(problem)}
    both = sweep([*calm, *wild], batch, error, every=100)
    alone = sweep(calm, batch, error, every=100)
    np.testing.assert_array_equal(both.theta[:, :3], alone.theta)
    np.testing.assert_array_equal(both.values["rmse"][:3], alone.values["rmse"])
    assert (both.diverged[:3] == -1).all()
    assert np.isfinite(both.theta).all()
    assert not np.isnan(both.values["rmse"]).any()
    for k in (3, 4, 5):
        step = both.diverged[k]
        assert 0 < step < 3000
        assert np.isinf(both.values["rmse"][k][both.steps > step]).all()
        learner = [*calm, *wild][k].clone().partial_fit(batch)
        assert learner.status.kind == "diverged"
        assert learner.status.step == step


@pytest.mark.parametrize("every", [0, -1])
def test_nonsense_is_refused(every):
    batch = LAYOUTS["dense"](*random_rows(10))
    with pytest.raises(InputError, match="every"):
        sweep([TD(0.1)], batch, every=every)
    with pytest.raises(InputError, match="at least one"):
        sweep([], batch)


@pytest.mark.parametrize("every", [None, 100, 70_000])
def test_memory_does_not_grow_with_the_stream(every):
    rng = np.random.default_rng(0)
    table, state = rng.normal(size=(5, 2)), rng.integers(5, size=200_001)
    batch = Transitions.from_table(table, state[:-1], np.ones(200_000), state[1:], 0.9)
    lanes = [TD(0.001), GTD2(0.001), TD(0.001, trace=0.5)] * 8
    sweep(lanes, batch[:300], every=every)
    tracemalloc.start()
    result = sweep(lanes, batch, every=every)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16e6
    alone = TD(0.001).partial_fit(batch)
    np.testing.assert_allclose(result.theta[:, 0], alone.theta, rtol=1e-10)
    few = sweep(lanes[:3], batch, every=every)
    np.testing.assert_array_equal(few.theta, result.theta[:, :3])


def test_more_records_than_rows_is_none():
    result = sweep([TD(0.1)], LAYOUTS["dense"](*random_rows(10)), every=11)
    assert result.steps.size == 0


def test_many_streams_are_the_streams_one_by_one():
    problems = [garnet(seed=k) for k in range(3)]
    streams = [problem.sample(400, seed=k) for k, problem in enumerate(problems)]
    measured = [{"rmse": metrics.rmse(problem)} for problem in problems]
    lanes = [TD(0.05), O2TD(0.01, omega="state"), GTD2(0.05)]
    both = sweep(lanes, streams, measured, every=50, workers=2)
    assert both.values["rmse"].shape == (3, 3, 8)
    for k, stream in enumerate(streams):
        alone = sweep(lanes, stream, measured[k], every=50)
        np.testing.assert_array_equal(both.values["rmse"][k], alone.values["rmse"])
        np.testing.assert_array_equal(both.theta[k], alone.theta)
    with pytest.raises(InputError, match="one length"):
        sweep(lanes, [streams[0], streams[1][:100]])
    with pytest.raises(InputError, match="one mapping"):
        sweep(lanes, streams, measured[:2])


def logged(seed, policy):
    """Rows of one behaviour, seen under one of two targets."""
    rng = np.random.default_rng(seed)
    phi, behavior = rng.normal(size=(301, 4)), rng.uniform(0.3, 1.0, 300)
    target = rng.uniform(0.05, 1.0, (2, 300))[policy]
    return Transitions(
        phi[:-1], 1.0, phi[1:], 0.9, target_prob=target, behavior_prob=behavior,
        start=np.arange(300) % 50 == 0,
    )  # fmt: skip


@pytest.mark.parametrize(
    "learner",
    [
        TD(0.01, trace=0.8),
        TreeBackup(0.01, trace=0.8),
        ABTD(0.01, zeta=0.8),
        VTrace(0.01, trace=0.8),
        GTD2(0.01),
    ],
)
def test_a_lane_of_another_target_is_a_learner_of_that_target(learner):
    """The trace too: tree backup and ABTD read the target's probabilities."""
    stream, wanted = logged(0, 0), logged(0, 1)
    lane = sweep([Lane(learner, rho=wanted.rho)], stream)
    expected = learner.clone().partial_fit(wanted).theta
    np.testing.assert_allclose(lane.theta[:, 0], expected, rtol=1e-12)


def test_probabilities_of_another_target_are_left_out_where_they_are_not_known():
    stream = logged(0, 0)
    np.testing.assert_array_equal(stream.retargeted(reward=1.0).target_prob, stream.target_prob)
    np.testing.assert_allclose(stream.retargeted(rho=0.5).target_prob, stream.behavior_prob / 2)
    assert stream.retargeted(rho=1.0 / stream.behavior_prob).target_prob.max() == 1.0
    for lane in (Lane(TreeBackup(0.1), rho=5.0), Lane(ABTD(0.1), rho=5.0)):
        with pytest.raises(InputError, match="needs target_prob"):
            sweep([lane], stream)


def test_lanes_have_a_target_of_their_own_on_every_stream():
    streams, wanted = ([logged(seed, policy) for seed in (0, 1, 2)] for policy in (0, 1))
    rho = [rows.rho for rows in wanted]
    for given in (rho, np.array(rho)):
        found = sweep([Lane(TD(0.01, trace=0.5), rho=given, reward=2.0), TD(0.01)], streams)
        for k, rows in enumerate(wanted):
            own = TD(0.01, trace=0.5).partial_fit(rows.retargeted(reward=2.0))
            np.testing.assert_allclose(found.theta[k][:, 0], own.theta, rtol=1e-12)
    with pytest.raises(InputError, match=r"rho of shape \(300,\), and there are 3 streams"):
        sweep([Lane(TD(0.01), rho=rho[0])], streams)
    one = sweep([Lane(TD(0.01), rho=rho[0])], streams[:1])
    np.testing.assert_allclose(one.theta[0][:, 0], TD(0.01).partial_fit(wanted[0]).theta)


def test_a_lane_that_doubles_cannot_have_its_own_target():
    """The second successor's ratio and discount are the stream's."""
    rng = np.random.default_rng(0)
    phi, after, second = rng.normal(size=(3, 50, 2))
    stream = Transitions(phi, 1.0, after, 0.9, next_phi_2=second, rho_2=rng.random(50))
    for lane in (Lane(ResidualGradient(0.01), rho=0.5), Lane(ResidualGradient(0.01), discount=0.5)):
        with pytest.raises(InputError, match="second successor"):
            sweep([lane], stream)
    sweep([Lane(ResidualGradient(0.01), reward=0.5), Lane(TD(0.01), rho=0.5)], stream)
    assert stream.retargeted(discount=0.5).next_phi_2 is None
    assert stream.retargeted(reward=0.5).next_phi_2 is not None


def test_what_a_sweep_cannot_read_is_said():
    problem = garnet(seed=1)
    batch, error = problem.sample(100, seed=0), metrics.rmse(problem)
    wider = Transitions(np.ones((100, 2)), 1.0, np.ones((100, 2)), 0.9)
    with pytest.raises(InputError, match="same names"):
        sweep([TD(0.1)], [batch, batch], [{"a": error}, {"b": error}])
    with pytest.raises(InputError, match="features"):
        sweep([TD(0.1)], [batch, wider])
    for wrong in (error, 5, "rmse"):
        with pytest.raises(InputError, match="mapping"):
            sweep([TD(0.1)], batch, wrong)
    for part in (
        {"center": np.full(8, np.nan)},
        {"constant": np.inf},
        {"R": np.full((8, 8), np.nan)},
    ):
        with pytest.raises(InputError, match="not finite"):
            sweep([TD(0.1)], batch, {"rmse": replace(error, **part)})
    assert sweep([TD(0.1)], batch, {"rmse": error}, every=10**20).values["rmse"].shape == (1, 0)


@pytest.mark.parametrize(("rows", "numbers"), [(2, 3), (4, 4), (3, 2), (3, 4)])
def test_a_metric_of_another_size_is_refused(rows, numbers):
    """Compiled code would read beyond its end."""
    other = metrics.Quadratic("other", np.eye(rows), np.zeros(numbers), 0.0)
    batch = Transitions(np.eye(3), np.ones(3), np.eye(3), discount=0.5)
    with pytest.raises(InputError, match=r"'other' has R .* for 3 features"):
        sweep([TD(0.1)], batch, {"other": other})


def test_a_metric_that_is_not_triangular_is_refused():
    """Half of such a matrix would not be read."""
    full = metrics.Quadratic("full", np.ones((3, 3)), np.zeros(3), 0.0)
    batch = Transitions(np.eye(3), np.ones(3), np.eye(3), discount=0.5)
    with pytest.raises(InputError, match="not upper triangular"):
        sweep([TD(0.1)], batch, {"full": full})
    turned = metrics.Quadratic("turned", np.linalg.qr(full.R)[1], full.center, 0.0)
    result = sweep([TD(0.1)], batch, {"turned": turned})
    assert result.values["turned"][0, 0] == pytest.approx(
        np.linalg.norm(full.R @ result.theta[:, 0])
    )


def test_one_stream_takes_one_mapping_of_metrics():
    batch = Transitions(np.eye(3), np.ones(3), np.eye(3), discount=0.5)
    with pytest.raises(InputError, match="one stream takes one mapping"):
        sweep([TD(0.1)], batch, [{}, {}])


def test_a_learner_that_has_learned_nothing_predicts_nothing():
    with pytest.raises(InputError, match="learned nothing yet"):
        TD(0.1).predict(np.ones(3))


class Own:
    """A metric of somebody else's: not of `o2td.metrics`, with what a metric needs."""

    def __init__(self, R, center=(1.0, 2.0), constant=0.0):
        self.R, self.center, self.constant = R, center, constant


@pytest.mark.parametrize(
    "part",
    [
        {"R": np.eye(2) * 1j},
        {"R": np.ma.array(np.eye(2))},
        {"R": "x"},
        {"center": None},
        {"constant": None},
        {"constant": "a"},
        {"constant": [1.0, 2.0]},
        {"constant": 1j},
    ],
    ids=str,
)
def test_a_metric_that_is_not_numbers_is_refused_by_its_name(part):
    batch = Transitions(np.eye(2), np.ones(2), np.eye(2), discount=0.5)
    with pytest.raises(InputError, match="metric 'own'"):
        sweep([TD(0.1)], batch, {"own": Own(**{"R": np.eye(2), **part})})


def test_one_worker_is_the_thread_that_asks():
    """So that an interrupt ends it; a pool would first run the stream to its end."""
    seen = []

    class Asking(TD):
        def _fill_rows(self, block, out):
            seen.append(threading.current_thread())
            super()._fill_rows(block, out)

    batch = Transitions(np.eye(2), np.ones(2), np.eye(2), discount=0.5)
    sweep([Asking(0.1)], [batch, batch], workers=np.int64(1))
    assert set(seen) == {threading.current_thread()}
    sweep([Asking(0.1)], [batch, batch], workers=np.int64(2))
    assert len(set(seen)) > 1


def test_numbers_of_a_lane_that_are_ragged_are_refused_by_name():
    batch = Transitions(np.eye(3), np.ones(3), np.eye(3), discount=0.5)
    with pytest.raises(InputError, match="rho of a lane is not an array"):
        sweep([Lane(TD(0.1), rho=[np.ones(3), np.ones(2)])], [batch, batch])


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True, "2"])
def test_counts_of_a_sweep_are_whole_numbers(wrong):
    batch = random_walk().sample(20, seed=0)
    with pytest.raises(InputError, match="every must be a whole number of at least 1"):
        sweep([TD(0.1)], batch, every=wrong)
    with pytest.raises(InputError, match="workers must be a whole number of at least 1"):
        sweep([TD(0.1)], [batch, batch], workers=wrong)

"""A step of one's own: the same as the built-in TD, on every layout, compiled and in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy.sparse import csr_array

import o2td
from o2td import exact
from o2td.checks import check_learner
from o2td.errors import NoAnswerError
from o2td.learners import StepLearner
from o2td.learners.step_learner import add, count, dot, follow, index, square, td_error, value

from . import golden


@njit
def compiled_step(row, p, s, theta, z):
    delta = td_error(row, theta)
    follow(z, row.decay, row.emphasis, row.phi)
    add(theta, row.alpha * row.rho * delta, z)


def plain_step(row, p, s, theta, z):
    delta = td_error(row, theta)
    follow(z, row.decay, row.emphasis, row.phi)
    add(theta, row.alpha * row.rho * delta, z)


class CompiledTD(StepLearner):
    vectors = ("theta", "z")
    traces = ("z",)
    step = staticmethod(compiled_step)


class PlainTD(StepLearner):
    vectors = ("theta", "z")
    traces = ("z",)
    step = staticmethod(plain_step)


BOTH = [CompiledTD, PlainTD]
THEORY = {"interest_ignored", "scale_free", "dynamics_shapes", "drift", "rest_at_limit"}


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("layout", golden.LAYOUTS)
@pytest.mark.parametrize("setting", [{}, {"trace": 0.8}, {"trace": 0.8, "emphasis": "follow-on"}])
def test_a_step_of_ones_own_is_td(kind, layout, setting):
    batch = golden.rows(layout)
    expected = o2td.TD(step_size=0.03, **setting).partial_fit(batch).theta
    np.testing.assert_allclose(kind(0.03, **setting).partial_fit(batch).theta, expected, atol=1e-14)


def test_a_step_in_python_reads_a_parameter_that_is_called_like_a_method_of_arrays():
    seen = []

    class Curious(PlainTD):
        @staticmethod
        def step(row, p, s, theta, z):
            seen.append(p.trace)

    Curious(0.03, trace=0.8).partial_fit(golden.rows("dense")[:2])
    assert seen == [0.8] * 2


@pytest.mark.parametrize("kind", BOTH)
def test_conformance(kind):
    report = check_learner(kind(trace=0.7))
    assert set(report.not_applicable) == THEORY


@pytest.mark.parametrize("kind", BOTH)
def test_sixty_four_lanes_with_metrics_are_each_what_it_is_alone(kind):
    problem = o2td.domains.random_walk()
    batch = problem.sample(200, seed=3)
    sizes = np.geomspace(0.001, 0.5, 64)
    metrics = {"rmse": o2td.metrics.rmse(problem)}
    result = o2td.sweep([kind(a, trace=0.5) for a in sizes], batch, metrics, every=50)
    own = o2td.sweep([o2td.TD(step_size=a, trace=0.5) for a in sizes], batch, metrics, every=50)
    np.testing.assert_allclose(result.values["rmse"], own.values["rmse"], rtol=1e-12)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_averages_recorded_after_every_row_are_those_of_td(kind, layout):
    batch, settings = golden.rows(layout)[:60], {"trace": 0.5, "average": True}
    metrics = {"norm": o2td.metrics.held_out(np.eye(batch.d), np.zeros(batch.d))}
    result = o2td.sweep([kind(0.03, **settings)], batch, metrics, every=1)
    own = o2td.sweep([o2td.TD(0.03, **settings)], batch, metrics, every=1)
    np.testing.assert_allclose(result.values["norm"], own.values["norm"], rtol=1e-12)
    assert len(np.unique(result.values["norm"])) > 50


@pytest.mark.parametrize("kind", BOTH)
def test_an_entry_of_a_sparse_trace_that_has_vanished_is_dropped(kind):
    """The first row's feature decays by 1e-40 a row; below 1e-150 it is nothing."""
    phi, left = csr_array(np.eye(2)[[0, 1, 1, 1, 1, 0]]), []
    rows = o2td.Transitions(phi, np.zeros(6), phi, 1e-40)
    learner = kind(0.1, trace=1.0)
    for row in rows.chunks(1):
        left.append(learner.partial_fit(row).vector("z")[0])
    np.testing.assert_allclose(left, [1.0, 1e-40, 1e-80, 1e-120, 0.0, 1.0], rtol=1e-12)


@pytest.mark.parametrize("kind", BOTH)
def test_lanes_that_diverge_between_records_end_where_each_ends_alone(kind):
    """Steps so different that lanes end in several stretches, and some not at all."""
    batch = golden.rows("dense")[:40]
    lanes = [kind(a, trace=0.5) for a in (0.01, 1e3, 1e5, 1e8, 1e12, 1e20, 1e60)]
    alone = [lane.clone().partial_fit(batch) for lane in lanes]
    ends = [one.status.step if one.status.kind == "diverged" else -1 for one in alone]
    assert ends[0] == -1
    assert len({end // 7 for end in ends[1:]}) > 2
    for every in (7, 13, 40):
        swept = o2td.sweep(lanes, batch, every=every)
        assert swept.diverged.tolist() == ends
        np.testing.assert_allclose(swept.theta.T, [one.theta for one in alone], rtol=1e-9)


@pytest.mark.parametrize("kind", BOTH)
def test_without_theory_it_says_so(kind):
    with pytest.raises(NoAnswerError, match="gives no mean dynamics"):
        exact.fixed_point(o2td.domains.random_walk(), kind())


@pytest.mark.parametrize("kind", BOTH)
def test_a_lane_that_diverges_stops_where_built_in_td_stops(kind):
    batch = golden.rows("dense")
    expected = o2td.TD(step_size=1e30, trace=0.5).partial_fit(batch)
    found = kind(1e30, trace=0.5).partial_fit(batch)
    assert found.status.step == expected.status.step
    np.testing.assert_allclose(found.theta, expected.theta)


def gathered(row, s, theta, out):
    out[0] += row.rho_before * row.before + 10.0 * row.start
    for k in range(count(row.next_phi)):
        out[index(row.next_phi, k)] += value(row.next_phi, k) * s.steps
    out[1] += square(row.phi) + dot(row.phi, out)
    add(theta, 1e-3, row.phi)


@njit
def gathering(row, p, s, theta, out):
    gathered_compiled(row, s, theta, out)


def gathering_plainly(row, p, s, theta, out):
    gathered(row, s, theta, out)


gathered_compiled = njit(gathered)


class Gatherer(StepLearner):
    vectors = ("theta", "out")
    step = staticmethod(gathering)


class PlainGatherer(StepLearner):
    vectors = ("theta", "out")
    step = staticmethod(gathering_plainly)


@pytest.mark.parametrize("layout", golden.LAYOUTS)
def test_every_function_does_the_same_compiled_and_not(layout):
    batch = golden.rows(layout)[:20]
    one, two = (kind(0.1).partial_fit(batch).vector("out") for kind in (Gatherer, PlainGatherer))
    np.testing.assert_allclose(one, two, rtol=1e-12)
    dense = PlainGatherer(0.1).partial_fit(golden.rows("dense")[:20]).vector("out")
    np.testing.assert_allclose(one, dense, rtol=1e-12)


def test_carried_numbers_are_nothing_before_the_first_row_and_unknown_ones_are_named():
    class Summed(StepLearner):
        vectors = ("theta",)
        scalars = ("earned",)

        @staticmethod
        def step(row, p, s, theta):
            s.earned += row.reward

    learner = Summed(0.1)
    assert learner.scalar("earned") == 0.0
    rows = o2td.domains.random_walk().sample(30)
    assert learner.partial_fit(rows).scalar("earned") == pytest.approx(rows.reward.sum())
    with pytest.raises(o2td.errors.InputError, match="spent"):
        learner.scalar("spent")


class Gathering(StepLearner):
    """theta is moved by what no ratio enters, z by all of it."""

    vectors = ("theta", "z")
    traces = ("z",)

    @staticmethod
    def step(row, p, s, theta, z):
        follow(z, row.decay, row.rho, row.phi)
        add(theta, row.alpha, row.phi)


@pytest.mark.parametrize(("ratio", "ends"), [(1e155, True), (1e101, False), (1e99, False)])
@pytest.mark.parametrize("average", [False, True])
def test_a_trace_that_overflows_ends_a_lane_although_the_next_row_begins_another(
    ratio, ends, average
):
    n = 8
    rho = np.where(np.arange(n) == 4, ratio, 1.0)
    phi = np.ones((n, 2))
    rows = o2td.Transitions(phi, np.ones(n), phi, 0.5, rho=rho, start=np.arange(n) % 5 == 0)
    learner = Gathering(0.25, trace=0.5, average=average).partial_fit(rows)
    assert (learner.status.kind, learner.status.step) == (("diverged", 4) if ends else ("ok", n))
    if not average:
        np.testing.assert_allclose(learner.theta, 0.25 * learner.status.step)

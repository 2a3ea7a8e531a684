"""Edges that a changed line would move unnoticed: found by mutating the learners."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy.sparse import csr_array

import o2td
from o2td import Problem, Transitions, archive, domains, exact, metrics
from o2td.emphasis import Omega
from o2td.errors import FormatError, InputError
from o2td.learners import Learner, PowerDecay, sweep


@pytest.mark.parametrize(
    ("step_size", "floor"), [(0.0, 0.5), (1.5, 0.5), (np.nan, 0.5), (0.5, 0.0), (0.5, 1.5)]
)
def test_omega_refuses_shares_outside_their_interval(step_size: float, floor: float) -> None:
    with pytest.raises(InputError, match="step_size and floor must be in"):
        Omega("moments", step_size, floor)
    Omega("moments", 1.0, 1.0)


@pytest.mark.parametrize(("c", "p"), [(0.0, 1.0), (-1.0, 1.0), (np.inf, 1.0), (1.0, -0.1)])
def test_power_decay_refuses_what_does_not_decay(c: float, p: float) -> None:
    with pytest.raises(InputError, match="PowerDecay needs c > 0 and p >= 0"):
        PowerDecay(c, p)
    assert PowerDecay(1.0, 0.0).at(np.array([1.0, 9.0])).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "learner",
    [
        o2td.TDC(PowerDecay(0.5, 0.7), second_step_size=0.05),
        o2td.TDC(0.05, second_step_size=PowerDecay(0.5, 0.7)),
        o2td.GTD2(0.05, emphasis=Omega("state")),
        o2td.TD(PowerDecay(0.5, 0.7)),
        o2td.ETD("auto"),
    ],
    ids=repr,
)
def test_rows_one_by_one_where_no_compiled_step_fits(learner: o2td.Learner) -> None:
    batch = domains.random_walk().sample(60, seed=0)
    one = learner.clone()
    for t in range(batch.n):
        assert batch.state is not None
        assert batch.next_state is not None
        one.learn_one(
            batch.phi[t], batch.reward[t], batch.next_phi[t], batch.discount[t], batch.rho[t],
            start=bool(batch.start[t]), state=int(batch.state[t]),
        )  # fmt: skip
    whole = learner.clone().partial_fit(batch)
    np.testing.assert_allclose(one.theta, whole.theta, rtol=1e-12, atol=1e-15)


def test_the_second_weights_can_be_seen_and_not_changed() -> None:
    learner = o2td.TDC(0.05)
    assert learner.w.shape == (0,)
    learner.partial_fit(domains.random_walk().sample(50, seed=0))
    assert learner.w.shape == learner.theta.shape
    assert learner.w.any()
    with pytest.raises(ValueError, match="read-only"):
        learner.w[0] = 1.0


def test_a_lane_counts_up_to_the_step_before_it_diverged() -> None:
    """A record after t rows is good if row t, counted from 0, is the first that cannot be taken."""
    problem = domains.random_walk()
    batch = problem.sample(30, seed=0)
    result = sweep([o2td.TD(1e80)], batch, metrics={"rmse": metrics.rmse(problem)}, every=1)
    at = int(result.diverged[0])
    assert 0 < at < 30
    assert np.isfinite(result.values["rmse"][0, :at]).all()
    assert np.isinf(result.values["rmse"][0, at:]).all()


def test_records_of_a_stream_longer_than_what_is_held_at_a_time() -> None:
    problem = domains.random_walk()
    batch = problem.sample(70_000, seed=0)
    every = 7
    result = sweep([o2td.TD(0.01)], batch, metrics={"rmse": metrics.rmse(problem)}, every=every)
    values = result.values["rmse"][0]
    assert len(values) == 70_000 // every
    assert np.isfinite(values).all()
    for t in (every * 5, 65_534, 69_993):
        learner = o2td.TD(0.01).partial_fit(batch[:t])
        assert values[t // every - 1] == pytest.approx(exact.mse(problem, learner.theta) ** 0.5)


@pytest.mark.parametrize(
    "learner", [o2td.TD(0.1, trace=0.5), o2td.O2TD(0.1, omega="state"), o2td.GTD2(0.1, trace=0.5)]
)
def test_a_state_that_is_never_visited_does_not_spoil_the_mean(learner: o2td.Learner) -> None:
    transition = np.zeros((3, 1, 3))
    transition[0, 0, 1] = transition[1, 0, 0] = transition[2, 0, 0] = 1.0
    problem = Problem(
        transition, np.array([[1.0], [0.0], [5.0]]), discount=0.9, behavior=np.ones((3, 1)),
        target=np.ones((3, 1)), features=np.eye(3), start=[1.0, 0.0, 0.0],
    )  # fmt: skip
    mean = learner.mean_dynamics(exact.model(problem))
    assert np.isfinite(mean.A).all()
    assert np.isfinite(mean.b).all()
    answer = exact.fixed_point(problem, learner)
    assert np.isfinite(answer.theta).all()
    np.testing.assert_allclose(answer.theta[:2], [1.0 / 0.19, 0.9 / 0.19])


@pytest.mark.parametrize("trace", [-0.1, 1.1, np.nan, "0.5", None])
def test_a_trace_is_a_share(trace: object) -> None:
    with pytest.raises(InputError, match="trace"):
        o2td.TD(0.1, trace=trace)  # type: ignore[arg-type]


def rows_of(n=6):
    rng = np.random.default_rng(3)
    return Transitions(rng.normal(size=(n, 2)), rng.normal(size=n), rng.normal(size=(n, 2)), 0.9)


@pytest.mark.parametrize(
    ("learner", "change"),
    [
        (o2td.VTrace(0.01, trace=0.5), {"clip": 0.2, "trace": 7.0}),
        (o2td.GTD2(0.01), {"step_size": 0.5, "form": "bad"}),
        (o2td.TD(0.01), {"trace": 0.3, "emphasis": "odd"}),
    ],
)
def test_parameters_change_all_or_not_at_all(learner, change):
    learner = learner.clone().partial_fit(rows_of())
    before, theta = learner.get_params(), learner.theta
    with pytest.raises(InputError):
        learner.set_params(**change)
    assert learner.get_params() == before
    np.testing.assert_array_equal(learner.theta, theta)
    assert learner.status.step == 6


@pytest.mark.parametrize("kind", [o2td.TD, o2td.GTD2])
def test_what_was_handed_out_stays_as_it_was(kind):
    rows = rows_of()
    learner, seen, second = kind(0.1), [], []
    for t in range(rows.n):
        learner.learn_one(rows.phi[t].copy(), rows.reward[t], rows.next_phi[t].copy(), 0.9)
        seen.append(learner.theta)
        second.append(getattr(learner, "w", learner.theta))
    for t in range(rows.n):
        other = kind(0.1).partial_fit(rows[: t + 1])
        np.testing.assert_allclose(seen[t], other.theta, rtol=1e-12)
        np.testing.assert_allclose(second[t], getattr(other, "w", other.theta), rtol=1e-12)
    with pytest.raises(ValueError, match="read-only"):
        learner.theta[0] = 1.0


def test_a_copy_learns_by_itself():
    rows = rows_of()
    learner = o2td.TD(0.1, trace=0.5).partial_fit(rows)
    other = copy.copy(learner)
    theta = learner.theta
    other.partial_fit(rows)
    np.testing.assert_array_equal(learner.theta, theta)
    assert (other.status.step, learner.status.step) == (12, 6)
    np.testing.assert_allclose(other.theta, learner.partial_fit(rows).theta, rtol=1e-14)


def test_numbers_of_numpy_can_be_saved(tmp_path):
    learner = o2td.ETD(0.1, decay=np.float32(0.5)).partial_fit(rows_of())
    learner.save(tmp_path / "etd.npz")
    assert o2td.Learner.load(tmp_path / "etd.npz").decay == 0.5


@pytest.mark.parametrize("start", ["no", float("nan"), 2, None])
def test_marks_of_a_row_are_true_or_false(start):
    rows = rows_of()
    learner = o2td.TD(0.1, trace=0.5).partial_fit(rows)
    given = (rows.phi[0].copy(), 1.0, rows.next_phi[0].copy(), 0.9)
    with pytest.raises(InputError, match="start"):
        learner.learn_one(*given, start=start)
    assert learner.status.step == 6
    for good in (True, np.True_, 1, np.array([True]), 1.0):
        learner.learn_one(*given, start=good)
    assert learner.status.step == 11


def test_texts_are_not_numbers():
    for wrong in (lambda: PowerDecay("a", 1), lambda: PowerDecay(1, None)):
        with pytest.raises(InputError, match="PowerDecay needs"):
            wrong()
    with pytest.raises(InputError, match="step_size and floor"):
        Omega("moments", step_size="a")


@pytest.mark.parametrize("reading", ["state", "moments"])
def test_states_with_huge_numbers_are_refused_before_memory_is(reading):
    state = np.array([0, 1, 10**12])
    rows = Transitions(np.ones((3, 2)), 1.0, np.ones((3, 2)), 0.9, state=state, next_state=state)
    with pytest.raises(InputError, match="without gaps"):
        o2td.O2TD(0.1, omega=reading).partial_fit(rows)


def test_no_rows_of_a_table():
    rows = Transitions.from_table(np.eye(2), [], [], [], 0.9)
    assert len(rows) == 0
    assert o2td.TD(0.1).partial_fit(rows).status.kind == "new"


@pytest.mark.parametrize("learner", [o2td.TD(0.1, trace=0.5), o2td.HTD(0.1, trace=0.5)], ids=repr)
@pytest.mark.parametrize("active", [[0, 0, 0], [1, 2, 0], [0, 1, 1]])
def test_a_forged_list_of_a_trace_s_entries_is_refused(learner, active, tmp_path):
    """One that names an index twice would grow beyond its end, one that forgets some is wrong."""
    one = csr_array(np.array([[1.0, 0.0, 0.0]]))
    learner = learner.clone().partial_fit(Transitions(one, 1.0, one, 0.9))
    learner.save(tmp_path / "good.npz")
    assert o2td.Learner.load(tmp_path / "good.npz")._arrays["active"].tolist() == [[0, 0, 0]]
    for name, k in (("active", 0), ("active_b", 1)):
        forged = copy.deepcopy(learner)
        if name == "active_b" and not forged._arrays["size"][0, 1]:
            continue
        forged._arrays[name][0] = active
        forged._arrays["size"][0, k] = 2 if active == [1, 2, 0] else 3
        forged.save(tmp_path / "forged.npz")
        with pytest.raises(FormatError, match=f"{name} does not list"):
            o2td.Learner.load(tmp_path / "forged.npz")


@pytest.mark.parametrize("sparse", [False, True])
def test_a_state_that_stays_what_it_is_gives_no_update_by_state(sparse):
    """`dphi = 0` there; what rounding leaves of the sum of `rho dphi` is not divided by."""
    phi = np.tile(np.random.default_rng(0).normal(size=4), (50, 1))
    rows = csr_array(phi) if sparse else phi
    stay = Transitions(rows, 1.0, rows, 1.0, rho=np.linspace(0.1, 3.0, 50), state=np.zeros(50, int))
    for learner in (o2td.O2TD(0.1, omega="state"), o2td.GTD2(0.1, emphasis=Omega("state"))):
        assert (learner.partial_fit(stay).theta == 0.0).all()


@pytest.mark.parametrize("kind", [o2td.TD, o2td.GTD2, o2td.ResidualGradient])
def test_files_from_before_bounds_were_kept_can_be_read(kind, tmp_path):
    batch = domains.garnet(seed=2).sample(200, seed=0, double=True)
    options = {"double": True} if kind is o2td.ResidualGradient else {"trace": 0.5}
    whole = kind(0.05, **options).partial_fit(batch)
    half = kind(0.05, **options).partial_fit(batch[:100])
    half.save(tmp_path / "new.o2td")
    header, arrays = archive.load(tmp_path / "new.o2td", "learner")
    del arrays["arrays.bound"]
    given = {name: header[name] for name in ("algorithm", "parameters")}
    archive.save(tmp_path / "old.o2td", "learner", given, arrays)
    resumed = Learner.load(tmp_path / "old.o2td").partial_fit(batch[100:])
    np.testing.assert_array_equal(resumed.theta, whole.theta)


def test_gtd2_has_two_forms() -> None:
    with pytest.raises(InputError, match="form"):
        o2td.GTD2(form="odd")
    assert o2td.GTD2(form="sampled").form == "sampled"

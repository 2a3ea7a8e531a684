"""`LSTD(trace="auto")`: its sums against plain loops, its estimates against many streams, its choice."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import o2td
from o2td import domains, exact
from o2td.errors import InputError
from o2td.solvers.choice import Direction, _candidates, _covariance, _factors, _reveals
from o2td.solvers.directions import ADJUSTED, DIRECTIONS, TRACES, collect, groups

from .test_choice_reference import bias
from .test_merge import layouts, stream


def _plain(batch):
    """The sums by group, row by row."""
    d, n = batch.d, batch.n
    phi, later = np.asarray(batch.phi), np.asarray(batch.next_phi)
    system = np.zeros((groups(d), len(TRACES), d, d + 1))
    noise = np.zeros((groups(d), len(ADJUSTED), d, d))
    for k, (trace, clip) in enumerate(TRACES):
        e = np.zeros(d)
        for t in range(n):
            e = (np.zeros(d) if batch.start[t] else e) + phi[t]
            g, rho = batch.discount[t], batch.rho[t]
            right = np.append(phi[t] - (g * later[t] if g > 0.0 else 0.0), batch.reward[t])
            system[t % groups(d), k] += rho * np.outer(e, right)
            if k in ADJUSTED:
                noise[t % groups(d), ADJUSTED.index(k)] += (rho - 1.0) * np.outer(e, phi[t])
            e = trace * g * min(rho, clip) * e
    return system, noise


@pytest.mark.parametrize("layout", ["dense", "csr", "table"])
def test_sums_are_those_of_a_plain_loop(layout):
    rows = layouts(stream(3, False))
    system, noise = _plain(rows["dense"])
    sums = collect(rows[layout]).arrays()
    np.testing.assert_allclose(sums["system"][:, :, :-1], system, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(sums["noise"][:, :, :-1], noise, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("n", [40, 5000])
def test_tables_and_dense_rows_give_the_same_sums(n):
    table = domains.garnet(seed=1).sample(n, seed=0)
    dense = o2td.Transitions(
        table.phi, table.reward, table.next_phi, table.discount, rho=table.rho, start=table.start
    )
    one, two = collect(table).arrays(), collect(dense).arrays()
    for name in one:
        np.testing.assert_allclose(one[name], two[name], rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("n", [8, 60, 400])
def test_weights_of_exactly_one_and_two_count_in_tables(n):
    rng = np.random.default_rng(n)
    table, state, after = rng.normal(size=(4, 2)), *rng.integers(4, size=(2, n))
    rho, reward = rng.choice([0.0, 1.0, 2.0], size=n), rng.choice([0.0, 1.0], size=n)
    given = {"rho": rho, "start": rng.random(n) < 0.1}
    rows = o2td.Transitions.from_table(table, state, reward, after, 1.0, **given)
    dense = o2td.Transitions(table[state], reward, table[after], 1.0, **given)
    one, two = collect(rows).arrays(), collect(dense).arrays()
    for name in one:
        np.testing.assert_allclose(one[name], two[name], rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("even", [False, True])
def test_rows_with_few_entries_give_the_sums_of_dense_rows(even):
    rng, n, d = np.random.default_rng(5), 500, 70
    phi = np.where(rng.random((n + 1, d)) < 0.05, rng.normal(size=(n + 1, d)), 0.0)
    phi[7] = 0.0
    discount = np.where(rng.random(n) < 0.1, 0.0, 0.9)
    later = phi[1:].copy()
    later[discount == 0.0, 3] = 1e300  # must not be read
    given = {
        "rho": np.ones(n) if even else rng.exponential(size=n) * (rng.random(n) < 0.8),
        "start": rng.random(n) < 0.05,
    }
    reward = rng.normal(size=n) * (rng.random(n) < 0.5)
    sparse, dense = (
        o2td.Transitions(kind(phi[:-1]), reward, kind(later), discount, **given)
        for kind in (csr_array, np.array)
    )
    for rows in (slice(0, n), slice(13, 13), slice(31, n)):
        one, two = collect(sparse[rows]), collect(dense[rows])
        assert (one.kept is not None) == (two.rows > 0)  # took another way
        for mine, other in zip(one.totals(), two.totals(), strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-11, atol=1e-11)
        for name in ("carry", "through"):
            np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-11)
        for name, array in one.arrays().items():
            np.testing.assert_allclose(array, two.arrays()[name], rtol=1e-11, atol=1e-11)
    parts = collect(sparse[:200]).then(collect(sparse[200:])).arrays()
    for name, array in collect(dense).arrays().items():
        np.testing.assert_allclose(parts[name], array, rtol=1e-11, atol=1e-11, err_msg=name)


def test_a_direction_without_adjustment_gives_what_a_fixed_trace_gives():
    batch = domains.collision(seed=0).sample(3000, seed=3)
    solver = o2td.LSTD(trace="auto").fit(batch)
    candidates = [c for c in solver.solution.candidates if not c.direction.shrinkage]
    plain = [c for c in candidates if not c.direction.adjusted]
    assert [(c.direction.trace, c.direction.clip) for c in plain] == list(TRACES)
    direction = solver.solution.direction
    if not direction.adjusted and direction.clip == np.inf and not direction.shrinkage:
        fixed = o2td.LSTD(trace=direction.trace).fit(batch).theta
        np.testing.assert_allclose(solver.theta, fixed, rtol=1e-8)
    assert direction == min(solver.solution.candidates, key=lambda c: c.error).direction
    assert str(direction) in solver.solution.message


def test_tables_are_summed_by_state_and_give_what_dense_rows_give():
    table = domains.garnet(states=40, features=12, seed=3).sample(900, seed=1)
    dense = o2td.Transitions(
        table.phi, table.reward, table.next_phi, table.discount, rho=table.rho, start=table.start
    )
    assert collect(table).kept is not None
    one, two = (o2td.LSTD(trace="auto").fit(rows) for rows in (table, dense))
    np.testing.assert_allclose(one.theta, two.theta, rtol=1e-8)
    for mine, other in zip(one.solution.candidates, two.solution.candidates, strict=True):
        assert mine[1:] == pytest.approx(other[1:], rel=1e-6, abs=1e-9)
    parts = o2td.LSTD(trace="auto").fit(table[:333]).merge(o2td.LSTD(trace="auto").fit(table[333:]))
    np.testing.assert_allclose(parts.theta, two.theta, rtol=1e-8)


def test_many_features_have_fewer_groups():
    problem = domains.garnet(states=150, features=110, seed=3)
    batch = problem.sample(600, seed=1)
    assert len(collect(batch).arrays()["system"]) == groups(110) < groups(100)
    assert np.isfinite(o2td.LSTD(trace="auto").fit(batch).theta).all()


def test_features_whose_ratios_are_all_zero_have_no_weight():
    """Nothing is known of them, so adjusting leaves rounding errors, which are no equations."""
    rng, m, n = np.random.default_rng(8), 10, 231
    rng.integers(9, size=2)
    one, two = (np.minimum(rng.geometric(0.4, n + 1) - 1, m - 1) for _ in range(2))
    phi = np.hstack([np.eye(m)[one], np.eye(m)[two]])
    rho = 2.0 * rng.integers(2, size=n)
    reward = rng.normal(size=n) + 1.0 + one[:-1]
    batch = o2td.Transitions(phi[:-1], reward, phi[1:], np.full(n, 0.9), rho=rho)
    assert np.abs(o2td.LSTD(trace="auto").fit(batch).theta).max() < 1e3


def test_a_long_trace_is_not_believed_against_shorter_ones_that_agree():
    theta, parts = np.zeros((len(DIRECTIONS), 2)), np.zeros((len(DIRECTIONS), 7, 2))
    theta[4] = 10.0  # λ = 1
    assert [c.bias for c in _candidates(theta, parts, np.eye(2))[:4]] == [0.0] * 4
    theta[3] = 1.0  # λ = 0.9: it is off, λ = 0 so by at most twice as much, others by as much
    found = [c.bias for c in _candidates(theta, parts, np.eye(2))]
    assert found[:5] == pytest.approx([2.0**1.5, 2.0**0.5, 2.0**0.5, 2.0**0.5, 0.0])
    assert min(found[8:]) > 12.0  # shrinking is another matter


@pytest.mark.parametrize("seed", range(3))
def test_biases_of_answers_without_noise_are_their_distances(seed):
    """Those of longer traces count up to what the next shorter ones show."""
    theta = np.random.default_rng(seed).normal(size=(len(DIRECTIONS), 2))
    theta[0] *= 0.1 if seed else 3.0
    apart = np.sum((theta[:, None] - theta) ** 2, axis=-1)
    want = [bias(k, apart, 0.0 * apart) for k in range(len(DIRECTIONS))]
    parts = np.zeros((len(DIRECTIONS), 7, 2))
    found = [c.bias for c in _candidates(theta, parts, np.eye(2))]
    np.testing.assert_allclose(found, want, rtol=1e-12)


def test_a_matrix_that_rounding_leaves_singular_has_an_answer():
    """It ended in an error about numbers that are not finite."""
    lu, pivots = _factors(np.ones((2, 2)))
    assert np.abs(np.diag(lu)).min() > 0.0
    np.testing.assert_array_equal(pivots, [0, 1])


def test_few_rows_are_not_adjusted():
    batch = domains.garnet(states=60, features=40, seed=3).sample(100, seed=1)
    solution = o2td.LSTD(trace="auto").fit(batch).solution
    assert not solution.direction.adjusted
    assert any(candidate.direction.adjusted for candidate in solution.candidates)


def test_the_estimated_deviation_is_that_over_many_streams():
    problem = domains.garnet(seed=4, peak=0)
    fits = [
        o2td.LSTD(trace="auto").fit(problem.sample(4000, seed=s)).solution.candidates
        for s in range(40)
    ]
    told = np.array([[c.deviation for c in fit if not c.direction.shrinkage] for fit in fits])
    for trace, place in ((0.0, 0), (0.5, 1)):
        thetas = [o2td.LSTD(trace=trace).fit(problem.sample(4000, seed=s)).theta for s in range(40)]
        apart = (thetas - np.mean(thetas, axis=0)) @ problem.features.T
        seen = np.sqrt(np.mean(np.sum(apart**2 * problem.visits, axis=1) / problem.visits.sum()))
        assert 0.6 < np.median(told[:, place]) / seen < 1.5


def test_short_traces_that_land_far_off_are_not_chosen():
    problem = domains.collision(seed=1)
    solver = o2td.LSTD(trace="auto").fit(problem.sample(30_000, seed=0))
    fixed = o2td.LSTD().fit(problem.sample(30_000, seed=0))
    biased = solver.solution.candidates[0]
    assert biased.direction.trace == 0.0
    assert biased.bias > 3.0 * biased.deviation
    best = exact.rmse(problem, exact.best_approximation(problem))
    assert exact.rmse(problem, solver.theta) < 1.02 * best < 0.9 * exact.rmse(problem, fixed.theta)


def test_adjusted_ratios_take_out_the_noise_of_actions():
    problem = domains.random_walk("tabular")
    batch = problem.sample(3000, seed=0)
    auto, fixed = o2td.LSTD(trace="auto").fit(batch), o2td.LSTD().fit(batch)
    assert auto.solution.direction.adjusted
    assert exact.rmse(problem, auto.theta) < 0.3 * exact.rmse(problem, fixed.theta)


def test_few_rows_are_shrunk_and_the_level_stays():
    problem = domains.garnet(states=300, features=40, discount=0.99, seed=7)
    shrunk, errors = 0, []
    for seed in range(12):
        batch = problem.sample(400, seed=(7, seed))
        phi, later = (np.column_stack([x, np.ones(batch.n)]) for x in (batch.phi, batch.next_phi))
        one, two = (
            o2td.LSTD(trace="auto").fit(
                o2td.Transitions(phi, batch.reward + more, later, 0.99, rho=batch.rho)
            )
            for more in (0.0, 5.0)
        )
        if one.solution.direction.shrinkage and one.solution.direction == two.solution.direction:
            shrunk += 1
            np.testing.assert_allclose(two.predict(phi), one.predict(phi) + 500.0, rtol=1e-6)
        fitted = (o2td.LSTD(trace=x).fit(batch).theta for x in ("auto", 0.0, 0.5, 0.9))
        errors.append([exact.rmse(problem, theta) for theta in fitted])
    chosen, *fixed = np.exp(np.mean(np.log(errors), axis=0))
    assert shrunk >= 4
    assert chosen < 0.95 * min(fixed)


def test_scales_of_features_and_rewards_change_no_choice():
    batch = domains.garnet(seed=2).sample(2000, seed=0)
    plain = o2td.LSTD(trace="auto").fit(batch)
    scale = np.array([1e6, 1e-6, 1.0, 1e3, 1e-3, 1.0, 1e6, 1e-6])
    other = o2td.Transitions(
        batch.phi * scale,
        1e-6 * batch.reward,
        batch.next_phi * scale,
        batch.discount,
        rho=batch.rho,
    )
    scaled = o2td.LSTD(trace="auto").fit(other)
    assert scaled.solution.direction == plain.solution.direction
    np.testing.assert_allclose(scaled.theta * scale, 1e-6 * plain.theta, rtol=1e-5)


@pytest.mark.parametrize("layout", ["dense", "table"])
@pytest.mark.parametrize("rewards", [1e200, 1e-200])
def test_rewards_of_any_size_change_no_choice(layout, rewards):
    rng = np.random.default_rng(3)
    state, later = rng.integers(0, 25, (2, 200))
    rho, reward, table = rng.choice([0.5, 1.5], 200), rng.normal(size=200), rng.normal(size=(25, 4))
    batch = o2td.Transitions.from_table(table, state, reward, later, 0.9, rho=rho)
    if layout == "dense":
        batch = o2td.Transitions(batch.phi, reward, batch.next_phi, 0.9, rho=rho)
    one, other = (
        o2td.LSTD(trace="auto").fit(x).solution
        for x in (batch, batch.retargeted(reward=rewards * reward))
    )
    assert other.direction == one.direction
    np.testing.assert_allclose(other.theta, rewards * one.theta, rtol=1e-9)
    for found, expected in zip(other.candidates, one.candidates, strict=True):
        assert found.deviation == pytest.approx(rewards * expected.deviation, rel=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_features_whose_squares_hardly_exist_have_an_answer(ridge):
    rng = np.random.default_rng(4)
    phi, later = 1e-160 * rng.normal(size=(2, 200, 3))
    batch = o2td.Transitions(phi, rng.normal(size=200), later, 0.9)
    with np.errstate(all="raise", under="ignore"):
        solver = o2td.LSTD(trace="auto", ridge=ridge).fit(batch)
    assert np.isfinite(solver.theta).all()


def test_what_does_not_go_together_is_refused():
    with pytest.raises(InputError, match="difference"):
        o2td.LSTD(trace="auto", rho_on="target")


def test_longer_traces_and_less_shrinkage_reveal_a_bias():
    plain, longer = Direction(0.5, np.inf, False), Direction(0.9, np.inf, False)
    clipped, shrunk = plain._replace(clip=2.0), plain._replace(shrinkage=0.1)
    assert _reveals(longer, plain)
    assert not _reveals(plain, longer)
    assert not _reveals(plain, plain)
    assert not _reveals(plain._replace(adjusted=True), plain)  # as long
    assert _reveals(plain, shrunk)  # the same without shrinkage
    assert not _reveals(shrunk, plain)
    assert not _reveals(longer._replace(shrinkage=0.1), plain)
    assert not _reveals(longer._replace(clip=2.0), plain)
    assert _reveals(plain, clipped)
    assert not _reveals(plain, longer._replace(clip=2.0))


def test_many_features_get_fewer_groups():
    assert [groups(d) for d in (1, 100, 101, 5000)] == [17, 17, 7, 7]


@pytest.mark.parametrize("size", [0.0, 1e-25, 1e-8])
def test_a_stream_without_ratios_to_speak_of(size):
    """As `LSTD()` says it where all are 0; states that are left out make the Gram matrix singular."""
    rows = domains.four_rooms(3, "low").sample(300, seed=1)
    few = o2td.Transitions(
        rows.phi,
        rows.reward,
        rows.next_phi,
        rows.discount,
        rho=np.where(np.arange(rows.n) == 7, size, 0.0),
        start=rows.start,
    )
    solver = o2td.LSTD(trace="auto").fit(few)
    assert np.isfinite(solver.theta).all()
    if size == 0.0:
        told = solver.solution
        assert (told.status, told.rank, told.residual) == ("no data", 0, 0.0)
        assert told.condition == np.inf
        assert not solver.theta.any()


def test_covariances_count_neighbouring_groups_by_two_thirds_and_one_third():
    """Bartlett's weights, also between the last groups and the first, and (n - 1) in place of n."""
    rng, k, n, d = np.random.default_rng(2), 3, 7, 4
    parts, root = rng.normal(size=(k, n, d)), rng.normal(size=(d, d))
    C = root @ root.T
    want = np.zeros((k, k))
    for i in range(k):
        for j in range(k):
            for g in range(n):
                for apart, weight in ((0, 1.0), (1, 2 / 3), (2, 1 / 3)):
                    for other in {(g + apart) % n, (g - apart) % n}:
                        want[i, j] += weight * parts[i, g] @ C @ parts[j, other]
    np.testing.assert_allclose(_covariance(parts, C), want * n / (n - 1), rtol=1e-10)

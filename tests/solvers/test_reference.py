"""Each solver against a plain reference written apart from it, on every layout."""

from __future__ import annotations

import numpy as np
import pytest

import o2td
from o2td.errors import InputError

from . import reference
from .reference import garnet, layouts

LAYOUTS = ["dense", "csr", "table", "csr table"]


def stream(seed, n=150, terminal=False, **options):
    return garnet(seed, terminal=terminal, **options).sample(n, seed=seed, double=True)


def close(theta, expected, tolerance=1e-10):
    np.testing.assert_allclose(
        theta, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max()
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("trace", [0.0, 0.7, 1.0])
def test_lstd(layout, terminal, trace):
    batch = stream(1, terminal=terminal)
    solver = o2td.LSTD(trace=trace).fit(layouts(batch)[layout])
    close(solver.theta, reference.lstd(batch, trace))
    assert solver.solution.status == "ok"
    assert solver.solution.rank == batch.d


@pytest.mark.parametrize("n", [30, 300])
def test_lstd_on_few_and_on_many_rows_of_a_table(n):
    batch = stream(2, n=n)
    for trace in (0.0, 0.5):
        close(o2td.LSTD(trace=trace).fit(batch).theta, reference.lstd(batch, trace))


def test_lstd_with_ridge():
    batch = stream(3)
    close(o2td.LSTD(trace=0.3, ridge=0.7).fit(batch).theta, reference.lstd(batch, 0.3, ridge=0.7))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_lstd_with_the_ratio_on_the_target_warns(layout):
    batch = stream(4)
    with pytest.warns(UserWarning, match="variance"):
        solver = o2td.LSTD(rho_on="target")
    close(solver.fit(layouts(batch)[layout]).theta, reference.lstd_target(batch))


@pytest.mark.filterwarnings("ignore:rho_on")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("trace", [0.4, 1.0])
def test_lstd_with_the_ratio_on_the_target_along_traces(layout, trace):
    batch = layouts(stream(4))[layout]
    wanted = reference.lstd_target(stream(4), trace)
    close(o2td.LSTD(trace, rho_on="target").fit(batch).theta, wanted)
    parts = [o2td.LSTD(trace, rho_on="target").update(batch[a:b]) for a, b in ((0, 37), (37, None))]
    close(parts[0].merge(parts[1]).theta, wanted)


@pytest.mark.filterwarnings("ignore:rho_on")
def test_the_ratio_on_the_target_has_the_same_limit_if_all_actions_are_tried():
    problem = o2td.domains.garnet(seed=3)
    model = o2td.exact.model(problem)
    for trace in (0.0, 0.7):
        both = (o2td.LSTD(trace, rho_on=on).limit(model) for on in ("difference", "target"))
        close(next(both), next(both))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("trace", [0.0, 0.6])
def test_differential_lstd(layout, trace):
    plain = stream(7)
    batch = layouts(plain)[layout]
    theta, mean = reference.differential_lstd(plain, trace, ridge=0.3)
    solver = o2td.DifferentialLSTD(trace, ridge=0.3).fit(batch)
    close(solver.theta, theta)
    assert solver.average_reward == pytest.approx(mean, rel=1e-9)
    parts = [o2td.DifferentialLSTD(trace, 0.3).update(batch[a:b]) for a, b in ((0, 41), (41, None))]
    close(parts[0].merge(parts[1]).theta, theta)


def test_differential_lstd_finds_what_differential_td_goes_to():
    """Average reward and differential values of a continuing chain, off-policy, from the truth."""
    rng = np.random.default_rng(2)
    P, R = rng.dirichlet(np.ones(5), size=(5, 2)), rng.normal(size=(5, 2))
    b, pi = (rng.dirichlet(np.full(2, 3.0), size=5) for _ in range(2))
    problem = o2td.Problem(
        transition=P, reward=R, discount=1.0, behavior=b, target=pi, features=np.eye(5)
    )
    K = np.einsum("sa,sat->st", pi, P)
    stay = np.linalg.matrix_power(K, 200)[0]
    mean = stay @ (pi * R).sum(axis=1)
    batch = problem.sample(300_000, seed=1)
    solver = o2td.DifferentialLSTD().fit(batch)
    assert solver.average_reward == pytest.approx(mean, abs=0.02)
    truth = np.linalg.solve(np.eye(5) - K + np.outer(np.ones(5), stay), (pi * R).sum(axis=1) - mean)
    centred = solver.theta - solver.theta.mean()
    np.testing.assert_allclose(centred, truth - truth.mean(), atol=0.05)
    limit = o2td.DifferentialLSTD().limit(o2td.exact.model(problem))
    np.testing.assert_allclose(limit - limit.mean(), truth - truth.mean(), atol=1e-9)
    dynamics = o2td.DifferentialTD(0.1, trace=0.3).mean_dynamics(o2td.exact.model(problem))
    same = o2td.DifferentialLSTD(0.3).limit(o2td.exact.model(problem))
    rest = dynamics.A @ np.append(same, mean) - dynamics.b
    np.testing.assert_allclose(rest, 0.0, atol=1e-10)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(("trace", "decay"), [(0.0, None), (0.6, None), (0.6, 0.5), (1.0, 0.2)])
def test_lsetd(layout, terminal, trace, decay):
    batch = stream(5, terminal=terminal)
    solver = o2td.LSETD(trace=trace, decay=decay).fit(layouts(batch)[layout])
    expected = reference.lstd(batch, trace, emphatic=True, decay=decay)
    close(solver.theta, expected, 1e-9)


def test_lstdq_averages_the_next_action_and_ignores_ratios():
    rng = np.random.default_rng(6)
    n, d, actions = 80, 3, 2
    phi, later = rng.normal(size=(n, d)), rng.normal(size=(n, d))
    action, probs = rng.integers(actions, size=n), rng.dirichlet(np.ones(actions), size=n)
    reward = rng.normal(size=n)
    A, b = np.zeros((6, 6)), np.zeros(6)
    for t in range(n):
        own, mean = np.zeros(6), np.zeros(6)
        own[action[t] * d : action[t] * d + d] = phi[t]
        for a in range(actions):
            mean[a * d : a * d + d] = probs[t, a] * later[t]
        A += np.outer(own, own - 0.8 * mean)
        b += own * reward[t]
    from scipy.sparse import csr_array

    for kind in (np.asarray, csr_array):
        batch = o2td.Transitions(
            o2td.LSTDQ.features(kind(phi), action, actions),
            reward,
            o2td.LSTDQ.next_features(kind(later), probs),
            0.8,
            rho=rng.random(n),
        )
        close(o2td.LSTDQ().fit(batch).theta, np.linalg.solve(A, b))
    with pytest.raises(InputError, match="action is 2 in row 0"):
        o2td.LSTDQ.features(phi, np.full(n, 2), actions)
    with pytest.raises(InputError, match="row 0"):
        o2td.LSTDQ.next_features(phi, np.ones((n, 2)))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("weighting", ["normalized", "ordinary"])
@pytest.mark.parametrize("start", ["zero", "td"])
@pytest.mark.parametrize(("states", "d"), [(12, 4), (5, 8)])
def test_sotd(layout, weighting, start, states, d):
    batch = stream(7, states=states, d=d)
    solver = o2td.SOTD(weighting=weighting, start=start).fit(layouts(batch)[layout])
    close(solver.theta, reference.sotd(batch, weighting, start), 1e-8)


def test_sotd_with_ridge():
    batch = stream(8)
    for start in ("zero", "td"):
        solver = o2td.SOTD(start=start, ridge=0.3).fit(batch)
        close(solver.theta, reference.sotd(batch, start=start, ridge=0.3))


@pytest.mark.parametrize("solver", ["gradient", "nesterov"])
@pytest.mark.parametrize("start", ["zero", "td"])
@pytest.mark.parametrize(("states", "d"), [(12, 4), (4, 6)])
def test_sotd_by_iteration_agrees_with_the_direct_solve(solver, start, states, d):
    batch = stream(9, n=400, states=states, d=d)
    iterated = o2td.SOTD(solver=solver, start=start, tolerance=1e-12, max_iterations=200_000)
    iterated.fit(batch)
    assert iterated.solution.status != "not converged"
    assert iterated.solution.iterations > 0
    close(iterated.theta, o2td.SOTD(start=start).fit(batch).theta, 1e-6)


def test_sotd_says_when_it_stopped_too_early():
    solution = o2td.SOTD(solver="gradient", start="td", max_iterations=1).fit(stream(9)).solution
    assert solution.status == "not converged"
    assert "max_iterations" in solution.message


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("nonnegative", [False, True])
def test_diagonal_sotd(layout, nonnegative):
    batch = stream(10)
    solver = o2td.DiagonalSOTD(nonnegative=nonnegative, tolerance=1e-13, max_iterations=50_000)
    solver.fit(layouts(batch)[layout])
    theta, omega = reference.diagonal_sotd(batch, nonnegative=nonnegative)
    close(solver.omega, omega, 1e-5)
    close(solver.theta, theta, 1e-4)
    assert nonnegative == bool((solver.omega >= 0.0).all())
    np.testing.assert_array_equal(solver.omega_state, np.unique(batch.state))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("weighted", [True, False])
def test_bellman_residual_by_state(layout, weighted):
    batch = stream(11, terminal=True)
    solver = o2td.BellmanResidual("aggregated", weighted=weighted)
    close(solver.fit(layouts(batch)[layout]).theta, reference.bellman_residual(batch, weighted))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("sampling", ["single", "double"])
def test_bellman_residual_by_row(layout, sampling):
    batch = stream(12, terminal=True)
    solver = o2td.BellmanResidual(sampling).fit(layouts(batch)[layout])
    expected = reference.bellman_residual_rows(batch, double=sampling == "double")
    close(solver.theta, expected)


def test_bellman_residual_takes_what_the_data_allow():
    batch = stream(13)
    views = {
        "double": batch,
        "aggregated": garnet(13).sample(150, seed=13),
        "single": o2td.Transitions(batch.phi, batch.reward, batch.next_phi, batch.discount),
    }
    for sampling, view in views.items():
        auto = o2td.BellmanResidual().fit(view)
        np.testing.assert_array_equal(auto.theta, o2td.BellmanResidual(sampling).fit(view).theta)
    auto = o2td.BellmanResidual().fit(views["single"])
    assert auto.fit(batch).theta == pytest.approx(o2td.BellmanResidual("double").fit(batch).theta)
    mixed = o2td.BellmanResidual().update(views["single"])
    mixed.merge(o2td.BellmanResidual().update(batch))
    with pytest.raises(InputError, match="second successor"):
        mixed.solve()


def test_bellman_residual_ridge():
    batch = stream(14)
    D, R, _, xi = reference.aggregated(batch)
    A, b = D.T @ (xi[:, None] * D), D.T @ (xi * R)
    solver = o2td.BellmanResidual("aggregated", ridge=0.5).fit(batch)
    close(solver.theta, np.linalg.solve(A + 0.5 * np.eye(4), b))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("ratios", ["per-decision", "trajectory"])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("truncated", ["keep", "drop"])
def test_monte_carlo(layout, ratios, weighted, truncated):
    batch = stream(15, terminal=True)
    solver = o2td.MonteCarlo(ratios, weighted, truncated).fit(layouts(batch)[layout])
    close(solver.theta, reference.monte_carlo(batch, ratios, weighted, truncated))


def test_monte_carlo_with_cut_trajectories():
    batch = stream(16, n=90)
    start = np.zeros(90, dtype=bool)
    start[[0, 17, 18, 50]] = True
    vectors = {"rho": batch.rho, "start": start}
    batch = o2td.Transitions(batch.phi, batch.reward, batch.next_phi, batch.discount, **vectors)
    for ratios in ("per-decision", "trajectory"):
        solver = o2td.MonteCarlo(ratios).fit(batch)
        close(solver.theta, reference.monte_carlo(batch, ratios))
        assert solver.solution.counts == {
            "rows of truncated trajectories counted as if nothing followed": 90
        }
    nothing = o2td.MonteCarlo(truncated="drop").fit(batch)
    assert nothing.solution.status == "no data"
    assert not nothing.theta.any()


def test_weighted_per_decision_returns_of_a_constant_value_have_no_variance():
    batch = stream(17, terminal=True)
    constant = o2td.Transitions(
        np.ones((batch.n, 1)),
        3.0 * (1.0 - batch.discount),
        np.ones((batch.n, 1)),
        batch.discount,
        rho=batch.rho,
        start=batch.start,
    )
    # the last trajectory is cut, so leave it out
    assert o2td.MonteCarlo(truncated="drop").fit(constant).theta[0] == pytest.approx(3.0, rel=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("weighting", ["normalized", "ordinary"])
@pytest.mark.parametrize("terminal", [False, True])
def test_plugin_optimal(layout, weighting, terminal):
    batch = stream(18, terminal=terminal)
    solver = o2td.PluginOptimal(weighting).fit(layouts(batch)[layout])
    close(solver.theta, reference.plugin_optimal(batch, weighting)[0], 1e-9)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_plugin_optimal_takes_lstd_where_a_successor_was_never_visited(layout):
    batch = stream(19, n=25, states=40)
    solver = o2td.PluginOptimal().fit(layouts(batch)[layout])
    theta, strange = reference.plugin_optimal(batch)
    assert strange > 0
    note = "successors never visited take the prediction of LSTD"
    assert solver.solution.counts[note] == strange
    close(solver.theta, theta, 1e-8)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_averager(layout):
    weights = np.random.default_rng(20).dirichlet(np.ones(5), size=12)
    weights[:, 4] = 0.0
    weights /= weights.sum(axis=1, keepdims=True)
    batch = stream(20, features=weights, terminal=True)
    solver = o2td.Averager().fit(layouts(batch)[layout])
    close(solver.theta, reference.averager(batch))
    assert solver.solution.counts == {"features never touched": 1}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_averager_refuses_other_features(layout):
    batch = stream(21)
    with pytest.raises(InputError, match=r"row \d+ .*sum to 1"):
        o2td.Averager().fit(layouts(batch)[layout])
    phi = np.eye(2)
    with pytest.raises(InputError, match="next_phi is not a row of weights in row 1"):
        o2td.Averager().fit(o2td.Transitions(phi, 0.0, [[1.0, 0.0], [2.0, -1.0]], 0.9))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("denoise", [False, True])
def test_dantzig_is_optimal_by_duality(layout, denoise):
    """The dual `max b·y - eps ||y||_1` subject to `||A^T y||_inf <= 1` reaches the same number."""
    from scipy.optimize import linprog

    batch = stream(22)
    eps = 0.05
    solver = o2td.DantzigTD(epsilon=eps, denoise=denoise, ridge=0.1).fit(layouts(batch)[layout])
    if denoise:
        D, R, _, _ = reference.aggregated(batch)
        M = np.linalg.solve(D @ D.T + 0.1 * np.eye(len(D)), D)
        A, b = M.T @ D, M.T @ R
    else:
        Z = batch.rho[:, None] * batch.phi / batch.n
        A = Z.T @ (batch.phi - batch.discount[:, None] * batch.next_phi)
        b = Z.T @ batch.reward
    assert np.abs(A @ solver.theta - b).max() <= eps * (1 + 1e-6)
    d = batch.d
    split = np.concatenate([eps - b, eps + b])
    dual = linprog(split, A_ub=np.block([[A.T, -A.T], [-A.T, A.T]]), b_ub=np.ones(2 * d))
    assert -dual.fun == pytest.approx(np.abs(solver.theta).sum(), rel=1e-6)


def test_dantzig_without_slack_is_lstd():
    batch = stream(23)
    close(o2td.DantzigTD(epsilon=0.0).fit(batch).theta, o2td.LSTD().fit(batch).theta, 1e-6)


def test_dantzig_says_when_nothing_satisfies_the_constraint():
    phi = np.array([[1.0, 0.0], [0.0, 1.0]])
    batch = o2td.Transitions(phi, [1.0, 1.0], np.array([[1.0, 0.0], [0.0, 0.0]]), [1.0, 0.0])
    solution = o2td.DantzigTD(epsilon=0.0).fit(batch).solution
    assert solution.status == "infeasible"


def test_states_that_the_target_never_leaves_are_left_out():
    batch = stream(24)
    rho = np.where(batch.state == 3, 0.0, batch.rho)
    silent = o2td.Transitions.from_table(
        batch.table, batch.state, batch.reward, batch.next_state, batch.discount, rho=rho
    )
    for solver, expected in (
        (o2td.SOTD(), reference.sotd(silent)),
        (o2td.BellmanResidual("aggregated"), reference.bellman_residual(silent)),
        (o2td.PluginOptimal(), reference.plugin_optimal(silent)[0]),
    ):
        close(solver.fit(silent).theta, expected, 1e-8)
        assert solver.solution.counts["states left out, all their ratios are zero"] == 1


@pytest.mark.parametrize("name", ["SOTD", "DiagonalSOTD", "PluginOptimal"])
def test_without_states_the_error_says_what_to_pass(name):
    batch = o2td.Transitions(np.eye(2), 0.0, np.eye(2), 0.9)
    with pytest.raises(InputError, match="pass state="):
        getattr(o2td, name)().fit(batch)
    with pytest.raises(InputError, match="pass state="):
        o2td.BellmanResidual(weighted=False).fit(batch)
    with pytest.raises(InputError, match="next_state"):
        o2td.PluginOptimal().fit(o2td.Transitions(np.eye(2), 0.0, np.eye(2), 0.9, state=[0, 1]))

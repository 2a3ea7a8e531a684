from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from o2td import Problem, chain, exact
from o2td.errors import InputError, NoAnswerError


def random_chain(seed: int, n: int, branching: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    P = np.zeros((n, n))
    for s in range(n):
        successors = np.append(rng.choice(n, min(branching, n), replace=False), (s + 1) % n)
        np.add.at(P[s], successors, rng.dirichlet(np.ones(len(successors))))
    return P


def sparse_chain(seed: int, n: int, branching: int = 5) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    row, column = np.repeat(np.arange(n), branching), rng.integers(0, n, n * branching)
    P = sp.coo_array((rng.random(n * branching), (row, column)), shape=(n, n)).tocsr()
    return sp.csr_array(sp.diags_array(1.0 / P.sum(axis=1)) @ P)


@given(st.integers(0, 10_000), st.integers(2, 30))
@settings(max_examples=40, deadline=None)
def test_stationary_distribution_is_invariant(seed: int, n: int) -> None:
    P = random_chain(seed, n)
    xi = chain.stationary_distribution(P, np.eye(n)[0])
    assert xi.sum() == pytest.approx(1.0, abs=1e-12)
    assert (xi > 0.0).all()
    np.testing.assert_allclose(xi @ P, xi, rtol=1e-11)


@given(st.integers(0, 10_000), st.integers(2, 20), st.floats(0.01, 0.9))
@settings(max_examples=40, deadline=None)
def test_missing_probability_restarts(seed: int, n: int, ending: float) -> None:
    Q = random_chain(seed, n) * (1.0 - ending * np.random.default_rng(seed).random(n))[:, None]
    start = np.random.default_rng(seed + 1).dirichlet(np.ones(n))
    xi = chain.stationary_distribution(Q, start)
    written_out = Q + np.outer(1.0 - Q.sum(axis=1), start)
    np.testing.assert_allclose(xi @ written_out, xi, rtol=1e-11)


@pytest.mark.parametrize("n", [2, 3, 7])
def test_periodic_chain_has_its_time_average(n: int) -> None:
    cycle = np.roll(np.eye(n), 1, axis=1)
    xi = chain.stationary_distribution(cycle, np.eye(n)[0])
    np.testing.assert_allclose(xi, np.full(n, 1.0 / n), rtol=1e-14)


def test_transient_and_unreachable_states_have_no_share() -> None:
    P = np.array([[0, 1.0, 0, 0], [0, 0, 1.0, 0], [0, 1.0, 0, 0], [1.0, 0, 0, 0]])
    xi = chain.stationary_distribution(P, np.array([1.0, 0, 0, 0]))
    np.testing.assert_array_equal(xi, [0.0, 0.5, 0.5, 0.0])


def test_two_closed_classes_are_refused_unless_only_one_is_reached() -> None:
    P = np.array([[0, 0.5, 0.5], [0, 1.0, 0], [0, 0, 1.0]])
    with pytest.raises(NoAnswerError, match=r"with state 1 or with state 2; start inside"):
        chain.stationary_distribution(P, np.array([1.0, 0, 0]))
    xi = chain.stationary_distribution(P, np.array([0, 0, 1.0]))
    np.testing.assert_array_equal(xi, [0, 0, 1.0])


def test_restarts_end_where_a_closed_class_is_found() -> None:
    # From 0: to the closed state 1, or the end and a new start; in the long run always 1.
    P = np.array([[0.0, 0.1], [0.0, 1.0]])
    np.testing.assert_array_equal(chain.stationary_distribution(P, np.array([1.0, 0])), [0, 1.0])


def test_tiny_shares_keep_their_sign_and_size() -> None:
    n, up = 25, 0.1
    P = np.zeros((n, n))
    for s in range(n):
        P[s, min(s + 1, n - 1)] += up
        P[s, max(s - 1, 0)] += 1.0 - up
    xi = chain.stationary_distribution(P, np.eye(n)[n - 1])
    expected = (up / (1.0 - up)) ** np.arange(n)
    np.testing.assert_allclose(xi, expected / expected.sum(), rtol=1e-10)


def test_probabilities_above_one_are_refused() -> None:
    with pytest.raises(InputError, match=r"sum to 1\.5 from state 1"):
        chain.stationary_distribution(np.array([[0, 1.0], [0.5, 1.0]]), np.array([1.0, 0]))


@given(st.integers(0, 10_000), st.integers(1, 25), st.floats(0.0, 0.999))
@settings(max_examples=40, deadline=None)
def test_solve_is_the_power_series(seed: int, n: int, gamma: float) -> None:
    K = gamma * random_chain(seed, n)
    B = np.random.default_rng(seed).standard_normal((n, 2))
    X, Y = chain.solve(K, B), chain.solve_transposed(K, B)
    terms = int(np.ceil(np.log(1e-18) / np.log(max(gamma, 1e-9)))) + 1
    total, flow, a, b = B.copy(), B.copy(), B, B
    for _ in range(min(terms, 45_000)):
        a, b = K @ a, K.T @ b
        total, flow = total + a, flow + b
    size = np.abs(B).max() / (1.0 - gamma)
    np.testing.assert_allclose(X, total, rtol=0, atol=1e-10 * size)
    np.testing.assert_allclose(Y, flow, rtol=0, atol=1e-10 * size * n)


def test_no_discount_needs_an_end_that_every_state_reaches() -> None:
    K = np.array([[0, 1.0, 0], [0, 0, 1.0], [0, 0, 0]])
    np.testing.assert_allclose(chain.solve(K, np.ones(3)), [3.0, 2.0, 1.0])
    K = np.array([[0.5, 0, 0], [0, 0, 1.0], [0, 1.0, 0]])
    for solver in (chain.solve, chain.solve_transposed):
        with pytest.raises(
            NoAnswerError, match=r"from state 1 does not converge.*discount below 1"
        ):
            solver(K, np.ones(3))


def test_growing_weights_are_refused() -> None:
    K = np.array([[0.0, 3.0], [0.5, 0.0]])  # spectral radius sqrt(1.5)
    with pytest.raises(NoAnswerError, match="grow from step to step"):
        chain.solve(K, np.ones(2))
    K[1, 0] = 0.3  # sqrt(0.9), though a row still sums to 3
    x = chain.solve(K, np.ones(2))
    np.testing.assert_allclose(x - K @ x, 1.0, atol=1e-12)


def test_shapes_and_infinities_are_refused() -> None:
    with pytest.raises(InputError, match="shape"):
        chain.solve(np.eye(3) * 0.5, np.ones(2))
    with pytest.raises(InputError, match="not finite"):
        chain.solve(np.full((2, 2), np.nan), np.ones(2))


@pytest.mark.parametrize("gamma", [0.9, 0.9999])
def test_sparse_agrees_with_dense(gamma: float, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 500
    P = sparse_chain(3, n)
    B = np.random.default_rng(0).standard_normal((n, 3))
    start = np.full(n, 1.0 / n)
    dense = chain.solve(gamma * P, B), chain.solve_transposed(gamma * P, B)
    xi = chain.stationary_distribution(P, start)
    monkeypatch.setattr(chain, "DENSE_LIMIT", 10)
    sparse = chain.solve(gamma * P, B), chain.solve_transposed(gamma * P, B)
    for one, other in zip(dense, sparse, strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-9 * np.abs(one).max())
    np.testing.assert_allclose(chain.stationary_distribution(P, start), xi, rtol=1e-9)


def test_sparse_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "DENSE_LIMIT", 1)
    with pytest.raises(NoAnswerError, match="from state 0 does not converge"):
        chain.solve(sparse_chain(0, 50), np.ones(50))
    growing = sp.csr_array(np.array([[0.0, 3.0], [0.5, 0.0]]))
    with pytest.raises(NoAnswerError, match="grow from step to step"):
        chain.solve(growing, np.ones(2))


def test_long_chains_fall_back_on_factors() -> None:
    """Chains that iteration cannot solve: 20,000 steps to the end, without discount."""
    n = 20_000
    K = sp.diags_array([np.full(n - 1, 0.5), np.full(n - 2, 0.5)], offsets=[1, 2], shape=(n, n))
    length = chain.solve(sp.csr_array(K), np.ones(n))
    assert length[-1] == 1.0
    assert length[0] == pytest.approx(2.0 * n / 3.0, rel=1e-4)
    xi = chain.stationary_distribution(sp.csr_array(K), np.eye(1, n)[0])
    assert xi[0] == pytest.approx(1.0 / length[0], rel=1e-9)


def test_a_uniform_start_does_not_fill_a_sparse_chain() -> None:
    n = 20_000
    Q = sp.csr_array(sparse_chain(1, n) * 0.99)
    start = np.full(n, 1.0 / n)
    xi = chain.stationary_distribution(Q, start)
    np.testing.assert_allclose(Q.T @ xi + 0.01 * start, xi, rtol=0, atol=1e-15)


@pytest.mark.slow
def test_hundred_thousand_states() -> None:
    n = 100_000
    P = sparse_chain(5, n)
    B = np.random.default_rng(1).random((n, 4))
    xi = chain.stationary_distribution(P, np.full(n, 1.0 / n))
    assert np.abs(P.T @ xi - xi).sum() < 1e-13
    for gamma in (0.9, 0.999):
        X = chain.solve(gamma * P, B)
        assert np.abs(X - gamma * (P @ X) - B).max() < 1e-11 * np.abs(X).max()
    side = 316
    step = sp.diags_array([np.full(side - 1, 0.25)] * 2, offsets=[-1, 1])
    grid = sp.csr_array(sp.kron(step, sp.eye_array(side)) + sp.kron(sp.eye_array(side), step))
    time = chain.solve(grid, np.ones(side * side))  # leaves the grid at its border only
    assert np.abs(time - grid @ time - 1.0).max() < 1e-12 * time.max()


def grid(side: int) -> Problem:
    """A torus on which the policy only ever goes right, from one state."""
    n = side * side
    at = np.arange(n)
    x, y = at % side, at // side
    moves = (y * side + (x + 1) % side, (y + 1) % side * side + x)
    ways = [sp.csr_array((np.ones(n), (at, to)), shape=(n, n)) for to in moves]
    right = np.tile([1.0, 0.0], (n, 1))
    start = (at == 0).astype(float)
    return Problem(ways, (y == 0) * 1.0, 0.9, right, right, np.ones((n, 1)), start=start)


@pytest.mark.parametrize("side", [20, 50])  # 400 states are dense, 2,500 sparse
def test_actions_that_are_never_taken_lead_nowhere(side: int) -> None:
    problem = grid(side)
    assert exact.state_distribution(problem)[:side].sum() == pytest.approx(1.0)
    assert exact.best_approximation(problem)[0] == pytest.approx(10.0)
    assert (problem.sample(500, seed=0, scheme="iid").state < side).all()


def test_a_sum_without_end_is_refused_whatever_the_size() -> None:
    """The target circles in five states, which an action that it never takes would leave."""
    for n in (500, 2500):
        at = np.arange(n)
        stay = np.where(at < 5, (at + 1) % 5, np.minimum(at + 1, n - 1))
        ways = [
            sp.csr_array((np.ones(n), (at, to)), shape=(n, n)) for to in (stay, np.full(n, n - 1))
        ]
        target, behavior = np.tile([1.0, 0.0], (n, 1)), np.full((n, 2), 0.5)
        with pytest.raises(NoAnswerError):
            exact.value(
                Problem(ways, 1.0, 1.0, behavior, target, np.ones((n, 1)), terminal=[n - 1])
            )


@pytest.mark.parametrize("k", [2, 8, 13, 24])
def test_many_columns_at_once_are_as_good_as_one(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 2100
    K = 0.95 * sparse_chain(7, n)
    B = np.random.default_rng(k).standard_normal((n, k)) * 10.0 ** np.arange(-k, k, 2)
    B[:, 1] = 0.0
    for solver, A in ((chain.solve, K), (chain.solve_transposed, K.T)):
        X = solver(K, B)
        left = np.linalg.norm(X - A @ X - B, axis=0)
        assert (left <= 1e-12 * (np.linalg.norm(B, axis=0) + np.linalg.norm(X, axis=0))).all()
        assert not X[:, 1].any()
        for j in (0, k - 1):
            one = solver(K, B[:, j])
            np.testing.assert_allclose(X[:, j], one, rtol=0, atol=1e-11 * np.abs(one).max())
    monkeypatch.setenv("OMP_NUM_THREADS", "3")  # threads share nothing that they write to
    np.testing.assert_array_equal(chain.solve_transposed(K, B), X)


def test_columns_that_iteration_cannot_solve_are_solved_by_factors() -> None:
    n = 5000
    K = sp.csr_array(sp.diags_array([np.full(n - 1, 1.0)], offsets=[1], shape=(n, n)))
    B = np.random.default_rng(0).random((n, 20))
    np.testing.assert_allclose(chain.solve(K, B), np.cumsum(B[::-1], axis=0)[::-1], rtol=1e-9)
    np.testing.assert_allclose(chain.solve_transposed(K, B), np.cumsum(B, axis=0), rtol=1e-9)

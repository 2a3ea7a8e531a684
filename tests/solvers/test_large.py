"""What large systems are solved by agrees with what small ones are."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import o2td
from o2td import chain, domains, exact
from o2td.errors import NoAnswerError
from o2td.linear_algebra import pivoted, solve
from o2td.solvers import diagonal, diagonal_sotd
from o2td.solvers.groups import distinct
from o2td.solvers.plugin_optimal import _unique_pairs


@pytest.mark.parametrize(
    ("m", "n", "rank"), [(300, 300, 299), (300, 300, 180), (270, 300, 270), (300, 400, 260)]
)
@pytest.mark.parametrize("spread", [0.0, 4.0])
def test_pivots_and_singular_values_agree(
    m: int, n: int, rank: int, spread: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(m + rank)
    A = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    A = A * np.exp(spread * rng.standard_normal(n))
    b = rng.standard_normal(m)
    assert pivoted.pivoted(A / np.abs(A).max(axis=0), 1e-12) is not None
    quick = solve(A, b)
    monkeypatch.setattr(pivoted, "_SMALL", 10**6)
    slow = solve(A, b)
    assert (quick.rank, quick.status) == (slow.rank, slow.status) == (rank, "minimum norm")
    assert quick.condition == pytest.approx(slow.condition, rel=0.3)
    np.testing.assert_allclose(quick.theta, slow.theta, rtol=0, atol=1e-9 * abs(slow.theta).max())


def test_pivots_leave_doubtful_ranks_to_singular_values() -> None:
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((300, 300)))[0]
    falling = (Q * 10.0 ** -np.linspace(0.0, 16.0, 300)) @ Q.T
    assert pivoted.pivoted(falling, 1e-13) is None
    assert solve(falling, rng.standard_normal(300)).rank < 300


@pytest.mark.parametrize("seed", [0, 1])
def test_other_coordinates_give_the_same_weights(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = domains.garnet(states=120, features=6, seed=seed).sample(20_000, seed=seed)
    quick = o2td.DiagonalSOTD(tolerance=1e-13).fit(batch)
    monkeypatch.setattr(diagonal, "_LARGEST", 0)
    slow = o2td.DiagonalSOTD(tolerance=1e-13).fit(batch)
    assert quick.solution.iterations < slow.solution.iterations
    change = np.linalg.norm(slow.omega - 1.0)
    assert np.linalg.norm(quick.omega - slow.omega) <= 1e-8 * change


def test_weights_that_cannot_fit_are_those_of_least_squares() -> None:
    """Many states of few kinds: more weights than equations, and no weights that solve them."""
    rng = np.random.default_rng(3)
    kind, phi = rng.integers(0, 3, 60), rng.standard_normal((3, 3))
    state = np.arange(60)
    next_state = np.array([np.flatnonzero(kind == (k + 1) % 3)[0] for k in kind])
    batch = o2td.Transitions.from_table(phi[kind], state, rng.random(60), next_state, 0.9)
    omega = o2td.DiagonalSOTD(tolerance=1e-13).fit(batch).omega
    table = phi[kind]
    delta = table - 0.9 * table[next_state]
    columns = np.einsum("si,sj->ijs", delta, table).reshape(9, 60) / 60.0
    gap = (table.T @ table / 60.0).ravel() - columns @ np.ones(60)
    expected = 1.0 + np.linalg.lstsq(columns, gap, rcond=1e-10)[0]
    assert np.linalg.norm(columns @ (expected - 1.0) - gap) > 1e-3 * np.linalg.norm(gap)
    np.testing.assert_allclose(omega, expected, atol=1e-7)


def test_a_limit_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = domains.garnet(states=60, features=8, seed=0)
    monkeypatch.setattr(diagonal_sotd, "_WORK", 0.0)
    monkeypatch.setattr(diagonal_sotd, "_LEAST", 2)
    with pytest.raises(NoAnswerError, match="not found within 2 steps on 60 states with 8"):
        o2td.DiagonalSOTD().limit(exact.model(problem))
    rows = {row.method: row for row in exact.analyze(problem, (0.0,))}
    assert "not found within 2 steps" in rows["DiagonalSOTD"].reason
    assert rows["SOTD"].rmse is not None


def test_sparse_averages_agree_with_dense_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    n, d = 3000, 400
    weight = rng.dirichlet(np.ones(3), (2, n))
    phi, next_phi = (
        sp.csr_array(
            (w.ravel(), (np.repeat(np.arange(n), 3), rng.integers(0, d, 3 * n))), shape=(n, d)
        )
        for w in weight
    )
    batch = o2td.Transitions(phi, rng.random(n), next_phi, 0.95, rho=rng.random(n))
    dense = o2td.Averager().fit(batch).solution
    monkeypatch.setattr(o2td.solvers.system, "SPARSE_FEATURES", 100)
    monkeypatch.setattr(chain, "DENSE_LIMIT", 100)
    sparse = o2td.Averager().fit(batch).solution
    assert (sparse.status, sparse.rank) == (dense.status, dense.rank) == ("ok", d)
    assert sparse.condition == pytest.approx(39.0, rel=0.05)  # (1 + gamma) / (1 - gamma)
    np.testing.assert_allclose(sparse.theta, dense.theta, rtol=1e-10)


def test_sparse_averages_without_discount_fall_back() -> None:
    d = 5000
    eye = sp.csr_array(sp.eye_array(d))
    batch = o2td.Transitions(eye, 0.0, eye, 1.0)
    assert o2td.Averager().fit(batch).solution.status in ("minimum norm", "no data")


@pytest.mark.parametrize("largest", [1, 7, 60, 10**9])
def test_states_that_occur_are_those_that_sorting_finds(largest: int) -> None:
    state = np.random.default_rng(largest).integers(0, largest, 50)
    found = distinct(state)
    expected = np.unique(state, return_index=True, return_inverse=True)
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, two)
    assert [len(part) for part in distinct(state[:0])] == [0, 0, 0]


@pytest.mark.parametrize("largest", [1, 7, 1000])
def test_pairs_that_occur_are_those_of_a_dictionary(largest: int) -> None:
    rng = np.random.default_rng(largest)
    pair, weight = rng.integers(0, largest, (2, 300)), rng.random(300)
    total: dict[tuple[int, int], float] = {}
    for s, t, w in zip(*pair.tolist(), weight.tolist(), strict=True):
        total[s, t] = total.get((s, t), 0.0) + w
    found, sums = _unique_pairs(pair, weight)
    assert list(zip(*found.tolist(), strict=True)) == sorted(total)
    assert sums.tolist() == [total[key] for key in sorted(total)]
    assert _unique_pairs(pair[:, :0], weight[:0])[0].shape == (2, 0)

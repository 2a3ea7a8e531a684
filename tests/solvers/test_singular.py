"""Dependent features in many rows: rounding errors of the sums are not taken for a rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import o2td
from o2td import Transitions
from o2td.linear_algebra import EPS, rounding, solve

STATES, FEATURES = 40, 5
SOLVERS = [
    o2td.LSTD(),
    o2td.LSTD(trace=0.5),
    o2td.LSETD(decay=0.5),
    o2td.LSTDQ(),
    o2td.MonteCarlo(),
    o2td.BellmanResidual(sampling="single"),
    o2td.BellmanResidual(sampling="aggregated"),
    o2td.PluginOptimal(),
    o2td.SOTD(),
    o2td.DiagonalSOTD(),
]


def dependent(seed: int, few: bool = False) -> Any:
    """A table of rank 4; `few` values are rounded alike in every row."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(STATES, FEATURES - 1))
    mix = rng.normal(size=FEATURES - 1)
    if few:
        base, mix = rng.integers(1, 4, size=base.shape) / 10.0, np.ones(FEATURES - 1)
    return np.column_stack([base, base @ mix])


def rows(table: Any, layout: str, n: int, seed: int = 0, rho: float | None = None) -> Transitions:
    rng = np.random.default_rng(seed)
    state, later = rng.integers(STATES, size=n), rng.integers(STATES, size=n)
    reward, ratio = rng.normal(size=n), rng.uniform(0.0, 2.0, size=n)
    options = {"discount": 0.9, "rho": ratio if rho is None else rho}
    if layout == "table":
        return Transitions.from_table(table, state, reward, later, **options)
    form = csr_array if layout == "csr" else np.asarray
    return Transitions(
        form(table[state]), reward, form(table[later]), state=state, next_state=later, **options
    )


def expect_smallest(solver: Any, table: Any) -> None:
    found = solver.solution
    assert (found.status, found.rank) == ("minimum norm", FEATURES - 1)
    null = np.linalg.svd(table)[2][-1]
    assert abs(null @ found.theta) < 1e-9 * np.linalg.norm(found.theta)


@pytest.mark.parametrize("layout", ["dense", "csr", "table"])
@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("few", [False, True])
def test_many_rows_of_dependent_features(solver: Any, layout: str, few: bool) -> None:
    for seed in (0, 1):
        table = dependent(seed, few)
        batch = rows(table, layout, 30_000, seed, rho=0.7 if few else None)
        expect_smallest(solver.clone().fit(batch), table)


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_rows_one_by_one_find_the_same_answer(solver: Any) -> None:
    table = dependent(3, few=True)
    batch = rows(table, "dense", 1000, rho=0.7)
    parts = solver.clone()
    for part in batch.chunks(1):
        parts.update(part)
    expect_smallest(parts, table)
    whole = solver.clone().fit(batch)
    np.testing.assert_allclose(table @ parts.theta, table @ whole.theta, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(parts.theta, whole.theta, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_means_of_equal_rows_are_that_row(layout: str) -> None:
    """However many visits there were, and however the batches are cut."""
    table = dependent(4)
    batch = rows(table, layout, 3000)
    assert batch.state is not None
    solver = o2td.SOTD()
    for part in batch.chunks(700):
        solver.update(part)
    sums: Any = solver._sums
    phi = sums.features()
    phi = phi.toarray() if layout == "csr" else phi
    np.testing.assert_array_equal(phi, table[np.unique(batch.state)])


def test_means_of_rows_that_differ() -> None:
    rng = np.random.default_rng(5)
    phi, state = rng.normal(size=(60, 3)), rng.integers(4, size=60)
    for form in (np.asarray, csr_array):
        batch = Transitions(form(phi), np.ones(60), form(phi), 0.5, state=state)
        solver = o2td.SOTD()
        for low, high in ((0, 11), (11, 12), (12, 60)):
            solver.update(batch[low:high])
        sums: Any = solver._sums
        found = sums.features()
        found = found if isinstance(found, np.ndarray) else found.toarray()
        expected = [phi[state == s].mean(axis=0) for s in range(4)]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("condition", [1e8, 1e10, 2e11])
def test_poor_systems_of_full_rank_are_not_called_singular(condition: float) -> None:
    """With as many rows as a million, in the sums of which the errors are far smaller."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        for d in (3, 10, 50):
            U, V = (np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(2))
            s = np.ones(d)
            s[-1] = 1.0 / condition
            A = U @ (s[:, None] * V)
            found = solve(A, A @ np.ones(d), rows=1_000_000)
            assert found.rank == d
            assert found.status == ("ok" if found.condition <= 1e12 else "ill-conditioned")
            assert found.residual < 30 * EPS


def test_what_counts_as_rounding_grows_with_the_rows() -> None:
    A = np.array([[1.0, 1.0], [1.0, 1.0 + 3e-14]])
    b = np.array([1.0, 1.0])
    assert solve(A, b).rank == 2
    found = solve(A, b, rows=100_000)
    assert (found.status, found.rank) == ("minimum norm", 1)
    np.testing.assert_allclose(found.theta, np.linalg.pinv(A, rcond=1e-10) @ b, atol=1e-9)
    assert rounding((3, 7)) == 7 * EPS
    assert rounding((3, 7), 100) == 40 * EPS


@pytest.mark.parametrize("epsilon", [0.0, 0.01])
@pytest.mark.parametrize("denoise", [False, True])
def test_the_dantzig_selector_says_that_others_are_as_small(epsilon: float, denoise: bool) -> None:
    rng = np.random.default_rng(6)
    table = rng.normal(size=(STATES, 4))
    solver = o2td.DantzigTD(epsilon=epsilon, denoise=denoise)
    assert solver.clone().fit(rows(table, "dense", 2000)).solution.status == "ok"
    twice = np.column_stack([table, table[:, 0]])
    for layout in ("dense", "csr", "table"):
        found = solver.clone().fit(rows(twice, layout, 2000)).solution
        assert (found.status, found.rank, found.condition) == ("minimum norm", 4, np.inf)
        assert "a smallest one" in found.message


@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_empty_rows_and_columns_are_left_out(make: Any) -> None:
    rng = np.random.default_rng(7)
    A = np.zeros((9, 9))
    A[np.ix_([0, 2, 5, 6], [1, 2, 5, 6])] = rng.normal(size=(4, 4))
    b = rng.normal(size=9)
    found = solve(make(A), b)
    assert (found.status, found.rank, found.condition) == ("minimum norm", 4, np.inf)
    np.testing.assert_allclose(found.theta, np.linalg.pinv(A) @ b, rtol=1e-10, atol=1e-12)
    assert not found.theta[[0, 3, 4, 7, 8]].any()
    # more columns than rows are left: the smallest of many
    A[2], A[5] = 0.0, 0.0
    found = solve(make(A), b)
    assert (found.status, found.rank, found.condition) == ("minimum norm", 2, np.inf)
    np.testing.assert_allclose(found.theta, np.linalg.pinv(A) @ b, rtol=1e-8, atol=1e-10)


def test_states_never_visited_leave_the_answer_to_the_others() -> None:
    """One weight per state, every second state unvisited: LU alone, of the visited half."""
    rng = np.random.default_rng(8)
    d, n = 400, 4000
    state, later = 2 * rng.integers(d // 2, size=n), 2 * rng.integers(d // 2, size=n)
    eye = csr_array(np.eye(d))
    batch = Transitions(eye[state], rng.normal(size=n), eye[later], 0.9)
    found = o2td.LSTD().fit(batch).solution
    assert (found.status, found.rank) == ("minimum norm", d // 2)
    half = csr_array(np.eye(d // 2))
    part = Transitions(half[state // 2], batch.reward, half[later // 2], 0.9)
    alone = o2td.LSTD().fit(part).theta
    np.testing.assert_allclose(found.theta[::2], alone, rtol=1e-12, atol=1e-15)
    assert not found.theta[1::2].any()


def test_a_large_answer_of_a_singular_sparse_system_is_not_taken() -> None:
    """Rounding makes LU succeed; what it finds along the null direction is noise."""
    rng = np.random.default_rng(9)
    d = 30
    U, V = (np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(2))
    s = np.logspace(0.0, -9.0, d)
    s[-1] = 1e-17
    A = U @ (s[:, None] * V)
    b = A @ np.ones(d) + 1e-3 * U[:, -1]
    found = solve(csr_array(A), b, rows=100)
    assert found.status in ("minimum norm", "not converged")
    assert np.abs(found.theta).max() < 1e8

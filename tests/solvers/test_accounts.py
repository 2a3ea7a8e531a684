"""What solvers say beside theta: status, rank, condition, residual, iterations, what was left out."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import o2td
from o2td import Transitions
from o2td.errors import InputError
from o2td.linear_algebra import backward_error, condition_of, pseudo_inverse, solve

from . import reference

BY_STATE = [
    o2td.SOTD(),
    o2td.SOTD(solver="nesterov", start="td"),
    o2td.DiagonalSOTD(),
    o2td.PluginOptimal(),
    o2td.DantzigTD(denoise=True),
    o2td.BellmanResidual(),
]
OTHERS = [o2td.LSTD(), o2td.LSETD(), o2td.MonteCarlo(), o2td.DantzigTD(), o2td.LSTD(trace=0.5)]


def rows(rho: Any = 1.0, n: int = 4, **options: Any) -> Transitions:
    state = np.arange(n) % 3
    return Transitions.from_table(
        np.eye(3, 2) + 0.5, state, np.ones(n), (state + 1) % 3, 0.5, rho=rho, **options
    )


def nothing(solver: Any) -> Any:
    found = solver.solution
    assert found.status == "no data"
    assert (found.rank, found.condition, found.iterations) == (0, np.inf, 0)
    np.testing.assert_array_equal(solver.theta, [0.0, 0.0])
    return found


@pytest.mark.parametrize("solver", [*BY_STATE, *OTHERS], ids=repr)
def test_no_rows_are_no_data(solver: Any) -> None:
    assert nothing(solver.clone().fit(rows(n=0))).residual == 0.0


@pytest.mark.parametrize("solver", BY_STATE, ids=repr)
def test_ratios_of_zero_are_no_data_and_counted(solver: Any) -> None:
    found = nothing(solver.clone().fit(rows(rho=np.zeros(4))))
    assert found.residual == 0.0
    assert list(found.counts.values()) == [3]
    part = solver.clone().fit(rows(rho=np.array([1.0, 0.0, 1.0, 2.0])))
    assert part.solution.status != "no data"
    assert part.solution.counts["states left out, all their ratios are zero"] == 1


def test_only_truncated_trajectories_are_no_data() -> None:
    start = np.array([True, False, True, False])
    found = nothing(o2td.MonteCarlo(truncated="drop").fit(rows(start=start)))
    assert found.residual == 0.0
    assert found.counts == {"rows of truncated trajectories dropped": 4}
    kept = o2td.MonteCarlo(truncated="keep").fit(rows(start=start)).solution
    assert kept.status == "ok"
    assert kept.counts == {"rows of truncated trajectories counted as if nothing followed": 4}


@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_a_matrix_of_zeros_is_no_data(make: Any) -> None:
    A = make(np.zeros((2, 2)))
    for b, residual in (([0.0, 0.0], 0.0), ([0.0, 3.0], 1.0)):
        found = solve(A, np.array(b))
        assert (found.status, found.rank, found.condition) == ("no data", 0, np.inf)
        assert (found.residual, found.iterations) == (residual, 0)
        np.testing.assert_array_equal(found.theta, [0.0, 0.0])


@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_ridge_is_on_the_diagonal(make: Any) -> None:
    A, b = np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([3.0, 5.0])
    found = solve(make(A), b, 2.0)
    np.testing.assert_allclose(found.theta, np.linalg.solve(A + 2.0 * np.eye(2), b), rtol=1e-14)
    assert (found.status, found.rank, found.iterations) == ("ok", 2, 0)


def test_a_closed_set_without_discount_is_told() -> None:
    batch = Transitions.from_table(np.eye(2), [0, 1], [1.0, -1.0], [1, 0], discount=1.0)
    found = o2td.PluginOptimal().fit(batch).solution
    assert (found.status, found.rank, found.iterations) == ("minimum norm", 2, 0)
    proper = Transitions.from_table(np.eye(2), [0, 1], [1.0, -1.0], [1, 0], discount=0.9)
    assert o2td.PluginOptimal().fit(proper).solution.status == "ok"


@pytest.mark.parametrize("solver", ["gradient", "nesterov"])
@pytest.mark.parametrize("ridge", [0.0, 0.3, 3.0])
@pytest.mark.parametrize("start", ["zero", "td"])
@pytest.mark.parametrize("d", [2, 5])
def test_descent_finds_the_direct_answer(solver: str, ridge: float, start: str, d: int) -> None:
    """With more states than features and with fewer; a ridge larger than all curvature too."""
    rng = np.random.default_rng(3)
    state, later = rng.integers(3, size=40), rng.integers(3, size=40)
    table = rng.normal(size=(3, d))
    batch = Transitions.from_table(table, state, rng.normal(size=40), later, 0.6)
    direct = o2td.SOTD(start=start, ridge=ridge).fit(batch)
    by_steps = o2td.SOTD(
        start=start, solver=solver, ridge=ridge, tolerance=1e-13, max_iterations=200_000
    ).fit(batch)
    assert by_steps.solution.status == direct.solution.status
    assert 0 < by_steps.solution.iterations < 200_000
    assert by_steps.solution.iterations % 10 == 0
    assert direct.solution.iterations == 0
    np.testing.assert_allclose(table @ by_steps.theta, table @ direct.theta, rtol=1e-7)


@pytest.mark.parametrize("solver", ["gradient", "nesterov"])
def test_descent_that_is_cut_short_says_so(solver: str) -> None:
    rng = np.random.default_rng(3)
    state, later = rng.integers(6, size=40), rng.integers(6, size=40)
    batch = Transitions.from_table(rng.normal(size=(6, 3)), state, np.ones(40), later, 0.6)
    found = o2td.SOTD(solver=solver, tolerance=1e-14, max_iterations=3).fit(batch).solution
    assert (found.status, found.iterations) == ("not converged", 3)


def test_weights_that_may_not_be_negative() -> None:
    """The projected search ends at the least-squares weights where these are not negative."""
    rng = np.random.default_rng(5)
    state, later = rng.integers(4, size=60), rng.integers(4, size=60)
    table = rng.normal(size=(4, 3))
    batch = Transitions.from_table(table, state, rng.normal(size=60), later, 0.5)
    free = o2td.DiagonalSOTD(tolerance=1e-13).fit(batch)
    held = o2td.DiagonalSOTD(nonnegative=True, tolerance=1e-13, max_iterations=100_000).fit(batch)
    assert held.solution.status == "ok"
    assert (free.omega > 0.0).all()
    np.testing.assert_allclose(held.omega, free.omega, rtol=1e-6)
    np.testing.assert_allclose(held.theta, free.theta, rtol=1e-6)
    few = o2td.DiagonalSOTD(nonnegative=True, tolerance=1e-13, max_iterations=2).fit(batch)
    assert (few.solution.status, few.solution.iterations) == ("not converged", 2)


def test_backward_errors() -> None:
    A, b = np.array([[1.0, 2.0], [0.0, 4.0]]), np.array([1.0, 8.0])
    theta = np.array([1.0, 1.0])
    # b - A theta = (-2, 4); the norms are 4 of A, 1 of theta and 8 of b.
    assert backward_error(A, theta, b) == pytest.approx(4.0 / (4.0 * 1.0 + 8.0))
    assert backward_error(csr_array(A), theta, b) == pytest.approx(4.0 / 12.0)
    assert backward_error(A * 1e-200, theta * 1e-100, b * 1e-300) == pytest.approx(4.0 / 12.0)
    assert backward_error(A, np.array([np.inf, 0.0]), b) == np.inf
    assert backward_error(A, np.zeros(2), np.zeros(2)) == 0.0


@pytest.mark.parametrize("ridge", [0.0, 0.7])
def test_pseudo_inverses(ridge: float) -> None:
    rng = np.random.default_rng(2)
    full, low = rng.normal(size=(5, 3)), rng.normal(size=(5, 2)) @ rng.normal(size=(2, 3))
    for R in (full, low):
        U, W = pseudo_inverse(R, ridge)
        if ridge:
            expected = np.linalg.solve(R.T @ R + ridge * np.eye(3), R.T)
        else:
            expected = np.linalg.pinv(R, rcond=1e-13)
        np.testing.assert_allclose(W @ U.T, expected, rtol=1e-9, atol=1e-12)
    units = np.array([2.0**-60, 1.0, 2.0**60])
    if not ridge:
        U, W = pseudo_inverse(full * units)
        np.testing.assert_allclose(units[:, None] * W @ U.T, np.linalg.pinv(full), atol=1e-12)
    U, W = pseudo_inverse(np.zeros((4, 3)))
    assert (U.shape, W.shape) == ((4, 0), (3, 0))


def test_condition_numbers_do_not_depend_on_units() -> None:
    rng = np.random.default_rng(4)
    R = rng.normal(size=(4, 3))
    assert condition_of(np.zeros((2, 2))) == np.inf
    assert condition_of(np.eye(3)) == pytest.approx(1.0)
    assert condition_of(R * np.array([2.0**40, 1.0, 2.0**-30])) == pytest.approx(condition_of(R))
    near = np.array([[1.0, 1.0], [0.0, 1e-6]])
    assert condition_of(near) == pytest.approx(np.linalg.cond(near), rel=2.0)


@pytest.mark.parametrize("states", [1, 2, 4])
@pytest.mark.parametrize("unit", [0.0, 0.01, 100.0])
def test_the_projected_search_takes_steps_of_the_right_size(states: int, unit: float) -> None:
    """Features of any size, none at all too, and few states, whose curvature is worked out apart."""
    rng = np.random.default_rng(7)
    table = unit * (np.eye(states, 2) + 0.1 * rng.random((states, 2)))
    state = np.arange(12) % states
    batch = Transitions.from_table(table, state, np.ones(12), np.roll(state, 1), 0.3)
    fitted = o2td.DiagonalSOTD(nonnegative=True, tolerance=1e-12, max_iterations=50_000).fit(batch)
    assert np.isfinite(fitted.omega).all()
    if unit == 0.0:
        nothing(fitted.clone().fit(batch[:0]))
        np.testing.assert_array_equal(fitted.omega, np.ones(states))
        assert fitted.solution.status == "no data"
        return
    assert fitted.solution.status in ("ok", "minimum norm")
    free = o2td.DiagonalSOTD(tolerance=1e-13).fit(batch)
    if (free.omega > 0.0).all() and states <= 2:
        np.testing.assert_allclose(fitted.theta, free.theta, rtol=1e-5)


def test_the_condition_number_is_that_of_the_columns() -> None:
    """Rows and columns have one size here, so that equilibration leaves the matrix as it is."""
    A = np.eye(4) + np.array([[0.0, 0.9, 0.9, 0.9], *np.zeros((3, 4))])
    found = solve(A, np.ones(4))
    assert found.condition == pytest.approx(np.linalg.cond(A, 1))
    assert found.condition != pytest.approx(np.linalg.cond(A, np.inf), rel=0.2)
    assert (found.status, found.rank) == ("ok", 4)


def test_a_parameter_out_of_range_is_told_its_range() -> None:
    with pytest.raises(InputError) as told:
        o2td.LSTD(trace=1.5)
    assert str(told.value) == "trace must be a number in [0, 1], got 1.5"
    with pytest.raises(InputError) as told:
        o2td.LSTD(ridge=-1.0)
    assert str(told.value) == "ridge must be a finite number of at least 0, got -1.0"


def test_a_closed_set_keeps_its_other_numbers() -> None:
    """The values of a set that never ends are the smallest; the regression on them is regular."""
    batch = Transitions.from_table(np.eye(2), [0, 1], [1.0, -1.0], [1, 0], discount=1.0)
    found = o2td.PluginOptimal().fit(batch).solution
    assert found.condition == pytest.approx(1.0)
    assert found.residual < 1e-15
    assert found.counts == {}


@pytest.mark.parametrize("trace", [0.0, 0.5])
@pytest.mark.parametrize("decay", [None, 0.0, 0.4])
def test_emphasis_ends_where_the_discount_does(trace: float, decay: float | None) -> None:
    """After a row of discount 0 no follow-on weight is left, also where no start is marked."""
    rng = np.random.default_rng(9)
    discount = np.where(np.arange(30) % 5 == 3, 0.0, 0.9)
    batch = Transitions(
        rng.normal(size=(30, 2)), rng.normal(size=30), rng.normal(size=(30, 2)), discount,
        rho=rng.uniform(0.5, 1.5, 30),
    )  # fmt: skip
    found = o2td.LSETD(trace=trace, decay=decay).fit(batch).theta
    expected = reference.lstd(batch, trace, emphatic=True, decay=decay)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("turned", [False, True])
def test_rows_of_a_small_and_a_large_table_are_merged(turned: bool) -> None:
    """The small table begins as the large one does, and has none of its last states."""
    large = np.random.default_rng(2).normal(size=(4, 2))
    parts = [
        Transitions.from_table(large[:2], [0, 1, 0], [1.0, 2.0, 3.0], [1, 0, 1], 0.5),
        Transitions.from_table(large, [0, 1, 3], [1.0, 0.0, 2.0], [3, 0, 1], 0.5),
    ]
    whole = Transitions.from_table(
        large, [0, 1, 0, 0, 1, 3], [1.0, 2.0, 3.0, 1.0, 0.0, 2.0], [1, 0, 1, 3, 0, 1], 0.5
    )
    one, two = (o2td.SOTD().update(part) for part in (parts[::-1] if turned else parts))
    np.testing.assert_allclose(one.merge(two).theta, o2td.SOTD().fit(whole).theta, rtol=1e-9)


def test_a_singular_sparse_system_counts_its_iterations() -> None:
    A = csr_array(np.array([[2.0, 0.0, 2.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]))
    found = solve(A, np.array([4.0, 3.0, 2.0]))
    assert (found.status, found.rank, found.condition) == ("minimum norm", 3, np.inf)
    assert 0 < found.iterations <= 3 * 30
    np.testing.assert_allclose(found.theta, [1.0, 3.0, 1.0], rtol=1e-12)


@pytest.mark.parametrize("solver", [*BY_STATE, *OTHERS], ids=repr)
def test_a_solver_that_has_seen_no_row_can_be_stored(solver: Any, tmp_path: Path) -> None:
    solver.clone().update(rows(n=0)).save(tmp_path / "model.npz")
    nothing(type(solver).load(tmp_path / "model.npz"))


@pytest.mark.parametrize("solver", [*BY_STATE, *OTHERS], ids=repr)
def test_what_is_handed_out_cannot_be_changed(solver: Any) -> None:
    fitted = solver.clone().fit(rows(n=6))
    for one in (fitted, copy.deepcopy(fitted), pickle.loads(pickle.dumps(fitted))):  # noqa: S301
        before = one.theta.copy()
        for array in (one.theta, one.solution.theta, getattr(one, "omega", one.theta)):
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 0.0
        np.testing.assert_array_equal(one.theta, before)
        assert one.solution.message == fitted.solution.message


def test_an_average_reward_is_known_from_the_first_row_on():
    solver, one = o2td.DifferentialLSTD(ridge=0.1), np.ones((1, 1))
    assert np.isnan(solver.average_reward)
    rows = o2td.Transitions(one, [3.0], one, 1.0)
    assert np.isnan(solver.update(rows[:0]).average_reward)
    assert solver.update(rows).average_reward == pytest.approx(3.0)
    assert solver._sums.d == 1

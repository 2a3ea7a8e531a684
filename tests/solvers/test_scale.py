"""The unit of the features changes theta by that unit and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import o2td
from o2td import Transitions

STEPS = {"tolerance": 1e-12, "max_iterations": 200_000}
SOLVERS = [
    o2td.DiagonalSOTD(),
    o2td.DiagonalSOTD(weighting="ordinary"),
    o2td.DiagonalSOTD(nonnegative=True, max_iterations=100_000),
    *(
        o2td.SOTD(solver=solver, start=start, **STEPS)
        for solver in ("direct", "gradient", "nesterov")
        for start in ("zero", "td")
    ),
    o2td.BellmanResidual(sampling="aggregated"),
    o2td.PluginOptimal(),
    o2td.DantzigTD(epsilon=0.0),
]


def rows(unit: float, states: int, form: Any = np.asarray, pay: float = 1.0) -> Transitions:
    rng = np.random.default_rng(2)
    table = unit * rng.normal(size=(states, 4))
    state, later = rng.integers(states, size=300), rng.integers(states, size=300)
    discount = rng.choice([0.0, 0.5, 0.9], size=300)
    return Transitions.from_table(
        form(table), state, pay * rng.normal(size=300), later, discount,
        rho=rng.uniform(0.0, 2.0, 300),
    )  # fmt: skip


@pytest.mark.parametrize("states", [3, 7])
@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_features_in_any_unit(solver: Any, states: int) -> None:
    plain = solver.clone().fit(rows(1.0, states))
    for unit in (1e-150, 1e-60, 1e-8, 1e8, 1e60, 1e120, 1e150):
        for form in (np.asarray, csr_array):
            scaled = solver.clone().fit(rows(unit, states, form))
            assert scaled.solution.status == plain.solution.status
            assert scaled.solution.rank == plain.solution.rank
            assert scaled.solution.residual < 1e-9
            np.testing.assert_allclose(scaled.theta * unit, plain.theta, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS[:3], ids=repr)
def test_weights_of_states_do_not_depend_on_the_unit(solver: Any) -> None:
    plain = solver.clone().fit(rows(1.0, 7))
    for unit in (2.0**-300, 2.0**-27, 2.0**300):
        scaled = solver.clone().fit(rows(unit, 7))
        np.testing.assert_array_equal(scaled.omega, plain.omega)
        np.testing.assert_array_equal(scaled.theta * unit, plain.theta)
        assert scaled.solution.iterations == plain.solution.iterations


@pytest.mark.parametrize("solver", SOLVERS[:9], ids=repr)
def test_rewards_in_any_unit(solver: Any) -> None:
    plain = solver.clone().fit(rows(1.0, 7))
    for unit in (2.0**-900, 2.0**900):
        np.testing.assert_array_equal(
            solver.clone().fit(rows(1.0, 7, pay=unit)).theta, unit * plain.theta
        )


@pytest.mark.parametrize("solver", ["direct", "gradient", "nesterov"])
def test_a_ridge_has_the_unit_of_squared_features(solver: str) -> None:
    made = o2td.SOTD(start="td", solver=solver, **STEPS)
    plain = made.clone(ridge=0.3).fit(rows(1.0, 7))
    for unit in (2.0**-200, 2.0**200):
        scaled = made.clone(ridge=0.3 * unit**2).fit(rows(unit, 7))
        np.testing.assert_allclose(scaled.theta * unit, plain.theta, rtol=1e-9)
    # a ridge that outweighs all else leaves the start, which is LSTD of the aggregated rows
    heavy = made.clone(ridge=1.0).fit(rows(1e-170, 7))
    start = made.clone(ridge=1e100).fit(rows(1.0, 7))
    np.testing.assert_allclose(heavy.theta * 1e-170, start.theta, rtol=1e-9)


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e120])
def test_a_search_cut_short_says_so(unit: float) -> None:
    for solver in (
        o2td.DiagonalSOTD(max_iterations=2),
        o2td.SOTD(solver="nesterov", max_iterations=2),
    ):
        found = solver.fit(rows(unit, 7)).solution
        assert (found.status, found.iterations) == ("not converged", 2)
        assert "max_iterations" in found.message

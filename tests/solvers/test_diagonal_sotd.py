"""The limit of diagonal SO-TD where it would take too long."""

from __future__ import annotations

import numpy as np
import pytest

import o2td
from o2td import domains, exact
from o2td.errors import NoAnswerError
from o2td.solvers import diagonal_sotd


def test_a_limit_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = domains.garnet(states=60, features=8, seed=0)
    monkeypatch.setattr(diagonal_sotd, "_WORK", 0.0)
    monkeypatch.setattr(diagonal_sotd, "_LEAST", 2)
    with pytest.raises(NoAnswerError, match="not found within 2 steps on 60 states with 8"):
        o2td.DiagonalSOTD().limit(exact.model(problem))
    rows = {row.method: row for row in exact.analyze(problem, (0.0,))}
    assert "not found within 2 steps" in rows["DiagonalSOTD"].reason
    assert rows["SOTD"].rmse is not None


@pytest.mark.parametrize("most", [1, 2, 3, 12])
def test_the_projected_search_takes_so_many_accelerated_steps(most: int) -> None:
    """Of two states, whose weights are the unknowns of four equations."""
    table, after = np.array([[1.1, 1.8], [-2.6, -0.1]]), np.array([1, 1, 0, 1])
    state = np.array([0, 1, 1, 1])
    batch = o2td.Transitions.from_table(table, state, np.ones(4), after, 0.8)
    fitted = o2td.DiagonalSOTD(nonnegative=True, max_iterations=most).fit(batch)
    share = np.array([0.25, 0.75])
    delta = table - 0.8 * np.array([table[1], (2.0 * table[1] + table[0]) / 3.0])
    columns = np.einsum("s,si,sj->ijs", share, delta, table).reshape(4, 2)
    target = (table.T @ (share[:, None] * table)).ravel()
    omega, ahead, momentum = np.ones(2), np.ones(2), 1.0
    for _ in range(most):
        slope = columns.T @ (columns @ ahead - target)
        after = np.maximum(ahead - slope / (columns**2).sum(), 0.0)
        momentum = 1.0 if slope @ (after - omega) > 0.0 else momentum
        later = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = after + (momentum - 1.0) / later * (after - omega)
        omega, momentum = after, later
    np.testing.assert_allclose(fitted.omega, omega, rtol=1e-9)
    assert (omega != 1.0).all()
    assert (fitted.solution.status, fitted.solution.iterations) == ("not converged", most)

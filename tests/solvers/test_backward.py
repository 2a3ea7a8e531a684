"""Sums made from the last row to the first, against traces followed row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from o2td import Transitions
from o2td.arrays import Floats
from o2td.solvers.backward import decays, left_behind, totals


def stream(layout: str, n: int, begins: bool, seed: int = 6) -> Transitions:
    """Episodes over 50 features, in a table of 40 states or with three entries per row."""
    rng, d, states = np.random.default_rng(seed), 50, 40
    table = np.zeros((states, d))
    where = np.argsort(rng.random((states, d)))[:, :3]
    np.put_along_axis(table, where, rng.normal(size=where.shape), axis=1)
    state, after = rng.integers(states, size=(2, n))
    ends = rng.random(n) < 0.04
    reward = rng.normal(size=n) * (rng.random(n) < 0.7)
    given: dict[str, Any] = {
        "discount": np.where(ends, 0.0, rng.uniform(0.8, 1.0, n)),
        "rho": rng.choice([0.0, 0.3, 1.0, 1.5], p=[0.05, 0.3, 0.35, 0.3], size=n),
        "start": np.append(begins, ends[:-1]),
    }
    if layout == "table":
        return Transitions.from_table(table, state, reward, after, **given)
    return Transitions(csr_array(table[state]), reward, csr_array(table[after]), **given)


def plain(
    batch: Transitions, trace: float, clip: float, y: Floats, c: Floats
) -> tuple[Floats, Floats]:
    """`sum_t e_t y_t^T` for an incoming trace c, and the trace that goes on."""
    phi = batch.phi if isinstance(batch.phi, np.ndarray) else batch.phi.toarray()
    out, e = np.zeros((batch.d, y.shape[1])), c
    for t in range(batch.n):
        e = (0.0 * e if batch.start[t] else e) + phi[t]
        out += np.outer(e, y[t])
        e = trace * batch.discount[t] * min(batch.rho[t], clip) * e
    return out, e


@pytest.mark.parametrize("begins", [True, False])
@pytest.mark.parametrize(("trace", "clip"), [(0.3, np.inf), (0.9, 1.0), (1.0, np.inf)])
@pytest.mark.parametrize("layout", ["table", "csr"])
def test_sums_are_those_of_a_trace(layout: str, trace: float, clip: float, begins: bool) -> None:
    """1,300 rows are more than two blocks; those before begin in the middle of an episode."""
    batch = stream(layout, 1300, begins)
    few: list[Any] = []
    if layout == "csr":
        few = [batch.rows("phi"), batch.rows("next_phi")]
    keep, rho = decays(batch, trace, clip), batch.rho
    phi, later = (
        x if isinstance(x, np.ndarray) else x.toarray() for x in (batch.phi, batch.next_phi)
    )
    y = np.column_stack([phi - batch.discount[:, None] * later, batch.reward]) * rho[:, None]
    c = np.random.default_rng(0).normal(size=batch.d)
    for given, told in (
        ((rho, rho * batch.discount, rho * batch.reward), y),
        ((rho - 1.0,), (rho - 1.0)[:, None] * phi),
    ):
        want, goes_on = plain(batch, trace, clip, told, c)
        sums = totals(batch, few, keep, *given)
        np.testing.assert_allclose(sums[:-1] + np.outer(c, sums[-1]), want, rtol=1e-10, atol=1e-10)
    carry, through = left_behind(batch, keep)
    np.testing.assert_allclose(carry + through * c, goes_on, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("layout", ["table", "csr"])
def test_what_an_incoming_trace_leaves_behind(layout: str) -> None:
    """Of one row that is no start everything up to its decay, and nothing of a start."""
    batch = stream(layout, 40, begins=False)[:1]
    keep = decays(batch, 0.5)
    assert left_behind(batch, keep)[1] == 0.5 * batch.discount[0] * batch.rho[0] > 0.0
    first = stream(layout, 40, begins=True)[:1]
    assert left_behind(first, decays(first, 0.5))[1] == 0.0


@pytest.mark.parametrize("states", [40, 0])
def test_no_rows_leave_a_trace_as_it_comes(states: int) -> None:
    nothing = Transitions.from_table(np.ones((states, 3)), [], [], [], 0.5)
    carry, through = left_behind(nothing, decays(nothing, 0.5))
    np.testing.assert_array_equal(carry, np.zeros(3))
    assert through == 1.0


def test_a_trace_ends_where_the_next_row_is_a_start() -> None:
    rows = np.eye(3)
    batch = Transitions(
        rows, np.ones(3), rows, np.full(3, 0.8), rho=[2.0, 0.5, 1.0], start=[True, False, True]
    )
    np.testing.assert_allclose(decays(batch, 0.5), [0.8, 0.0, 0.4])
    np.testing.assert_allclose(decays(batch, 0.5, 1.0), [0.4, 0.0, 0.4])

"""Rows and states are handled in blocks: small ones give what one large block gives."""

from __future__ import annotations

import numpy as np
import pytest

import o2td
from o2td import Transitions
from o2td.linear_algebra import least_squares
from o2td.solvers import aggregate, differential_lstd, directions, system
from o2td.solvers.aggregate import collect, estimates

from .reference import garnet, layouts
from .test_merge import SOLVERS, same_sums


def many_states(n=700, states=150):
    problem = garnet(3, states=states, d=5)
    return problem.sample(n, seed=3, double=True)


def in_small_blocks(monkeypatch):
    for module in (system, aggregate, directions, least_squares):
        monkeypatch.setattr(module, "_BLOCK", 1)
    monkeypatch.setattr(system, "_RUN", 8)
    monkeypatch.setattr(differential_lstd, "BLOCK", 50)


@pytest.mark.parametrize("layout", ["dense", "csr", "table", "csr table"])
@pytest.mark.parametrize("name", [*SOLVERS, "DifferentialLSTD"])
def test_blocks_of_any_size_give_the_same(name, layout, monkeypatch):
    made = SOLVERS | {"DifferentialLSTD": lambda: o2td.DifferentialLSTD(trace=0.5)}
    batch = many_states()
    if name == "Averager":
        weights = np.random.default_rng(3).dirichlet(np.ones(4), size=150)
        batch = garnet(3, states=150, features=weights).sample(700, seed=3, double=True)
    batch = layouts(batch)[layout]
    whole = made[name]().fit(batch)
    expected = whole.theta
    in_small_blocks(monkeypatch)
    small = made[name]().fit(batch)
    same_sums(small, whole)
    np.testing.assert_allclose(small.theta, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_sums_over_states_in_blocks(layout, monkeypatch):
    data = estimates(collect(layouts(many_states())[layout]), "normalized")
    phi, delta = (x.toarray() if hasattr(x, "toarray") else x for x in (data.phi, data.delta))
    assert len(phi) > 128
    in_small_blocks(monkeypatch)
    np.testing.assert_allclose(
        data.gram(), phi.T @ (data.xi[:, None] * phi), rtol=1e-12, atol=1e-14
    )
    parts = list(data.blocks())
    assert [part for part, _ in parts] == [slice(k, k + 64) for k in range(0, len(phi), 64)]
    found = np.concatenate([block for _, block in parts])
    np.testing.assert_array_equal(found, np.column_stack([delta, data.reward]))


def test_rows_of_a_table_are_summed_by_pairs_of_states():
    """`A = sum rho z (phi - gamma phi')` by hand, over a table whose states recur."""
    batch = garnet(5, states=6, d=3).sample(400, seed=5)
    found = o2td.LSTD().fit(batch)
    phi, after = batch.phi, batch.next_phi
    A = (batch.rho[:, None] * phi).T @ (phi - batch.discount[:, None] * after)
    b = (batch.rho * batch.reward) @ phi
    np.testing.assert_allclose(found._sums.A, A, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(found._sums.b, b, rtol=1e-11, atol=1e-11)
    plain = Transitions(phi, batch.reward, after, batch.discount, rho=batch.rho, start=batch.start)
    np.testing.assert_allclose(o2td.LSTD().fit(plain)._sums.A, A, rtol=1e-11, atol=1e-11)

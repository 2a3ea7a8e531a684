"""Diagonal weights, in either coordinates and where they cannot fit."""

from __future__ import annotations

import numpy as np
import pytest

import o2td
from o2td import domains
from o2td.solvers import diagonal


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

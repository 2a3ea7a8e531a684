"""Fused sums and additions of a step in plain Python, against the same written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2td import Transitions
from o2td.kernels.fused import lift, measured, move
from o2td.learners import StepLearner

D = 4


class Fused(StepLearner):
    """Measures, moves and lifts with other numbers at each row."""

    vectors = ("theta", "w", "u", "z")
    traces = ("z",)
    found: list[Any] = []  # noqa: RUF012

    @staticmethod
    def step(row: Any, p: Any, s: Any, theta: Any, w: Any, u: Any, z: Any) -> None:
        products = measured(row, theta, w, u, z, row.decay, 0.0)
        k = float(s.steps)
        first, second = (0.3, -0.2 - 0.1 * k, 0.15), (0.5, 0.25 * k)
        move(theta, w, u, row, z, first, second, 0.4 if k % 2 else 0.0)
        lift(theta, w, u, z, 0.35, 0.75, bool(k % 2))
        Fused.found.append([products, *(x.copy() for x in (theta, w, u, z.values))])


@pytest.mark.parametrize("layout", ["dense", "table"])
def test_a_step_measures_moves_and_lifts(layout: str) -> None:
    rng, n = np.random.default_rng(0), 9
    table, state, after = rng.normal(size=(5, D)), *rng.integers(5, size=(2, n))
    discount, reward = np.where(np.arange(n) % 3 == 1, 0.0, 0.8), rng.normal(size=n)
    batch = Transitions.from_table(table, state, reward, after, discount, rho=rng.random(n))
    if layout == "dense":
        given = {"rho": batch.rho}
        batch = Transitions(batch.phi, reward, batch.next_phi, discount, **given)
    Fused.found = []
    Fused(0.1, trace=0.7).partial_fit(batch)
    theta, w, u, z = np.zeros((4, D))
    before = 0.0
    for t, (products, *vectors) in enumerate(Fused.found):
        phi = table[state[t]]
        later = table[after[t]] if discount[t] else np.zeros(D)
        z = before * z + phi
        before = 0.7 * batch.rho[t] * discount[t]
        apart = phi - discount[t] * later
        want = [phi @ theta, later @ theta, phi @ w, z @ w, phi @ u, later @ u]
        want += [z @ z, phi @ phi, apart @ apart]
        np.testing.assert_allclose(products, want, rtol=1e-12, atol=1e-14)
        theta = theta + 0.3 * z - (0.2 + 0.1 * t) * phi + 0.15 * later
        w = 0.75 * (w + 0.5 * z + 0.25 * t * phi)
        u = u + (0.4 * phi if t % 2 else 0.0)
        theta = theta + 0.35 * u
        for vector, own in zip(vectors, (theta, w, u, z), strict=True):
            np.testing.assert_allclose(vector, own, rtol=1e-12, atol=1e-14)
    assert len(Fused.found) == n

"""Sizes that step rules measure, against their formulas in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.kernels import gauges
from tests.learners.conftest import LAYOUTS, random_rows

N, D = 24, 4
TABLE, BATCH = random_rows(N, d=D, states=6, seed=9, double=False)
GAMMA = BATCH["discount"]
PHI, AFTER = TABLE[BATCH["state"]], TABLE[BATCH["next_state"]]
DPHI = PHI - GAMMA[:, None] * AFTER


@pytest.fixture(params=LAYOUTS)
def rows(request):
    batch = LAYOUTS[request.param](TABLE, BATCH)
    return batch.rows("phi"), batch.rows("next_phi")


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("traced", [None, True])
def test_sizes_that_step_rules_measure(rows, traced):
    rng = np.random.default_rng(0)
    weight, decay, out = rng.random(N), rng.random(N), np.empty((3, N))
    z = rng.normal(size=D) if traced else np.zeros(D)
    expected = z.copy()
    if hasattr(rows[0], "matrix"):
        gauges.measure_dense(*rows, GAMMA, weight, decay, traced, z, out)
    else:
        active = np.arange(D, dtype=np.int32)
        gauges.measure_sparse(*rows, GAMMA, weight, decay, traced, z, active, D, out)
    for t in range(N):
        expected = (decay[t] * expected if traced else 0.0) + weight[t] * PHI[t]
        length = np.linalg.norm(expected) * np.linalg.norm(DPHI[t])
        close(out[:, t], [length, expected @ DPHI[t], PHI[t] @ PHI[t]])
    if traced:
        close(z, expected)

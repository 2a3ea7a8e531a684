"""What large systems are solved by agrees with what small ones are."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import o2td
from o2td import chain


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

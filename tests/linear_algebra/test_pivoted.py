"""Ranks by pivots agree with ranks by singular values."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.linear_algebra import pivoted, solve


@pytest.mark.parametrize(
    ("m", "n", "rank"), [(300, 300, 299), (300, 300, 180), (270, 300, 270), (300, 400, 260)]
)
@pytest.mark.parametrize("spread", [0.0, 4.0])
def test_pivots_and_singular_values_agree(
    m: int, n: int, rank: int, spread: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(m + rank)
    A = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    A = A * np.exp(spread * rng.standard_normal(n))
    b = rng.standard_normal(m)
    assert pivoted.pivoted(A / np.abs(A).max(axis=0), 1e-12) is not None
    quick = solve(A, b)
    monkeypatch.setattr(pivoted, "_SMALL", 10**6)
    slow = solve(A, b)
    assert (quick.rank, quick.status) == (slow.rank, slow.status) == (rank, "minimum norm")
    assert quick.condition == pytest.approx(slow.condition, rel=0.3)
    np.testing.assert_allclose(quick.theta, slow.theta, rtol=0, atol=1e-9 * abs(slow.theta).max())


def test_pivots_leave_doubtful_ranks_to_singular_values() -> None:
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((300, 300)))[0]
    falling = (Q * 10.0 ** -np.linspace(0.0, 16.0, 300)) @ Q.T
    assert pivoted.pivoted(falling, 1e-13) is None
    assert solve(falling, rng.standard_normal(300)).rank < 300

"""Compiled sums of sparse rows, against what each row adds."""

from __future__ import annotations

import numpy as np

from o2td.solvers.sparse_loops import directions


def test_what_comes_before_is_multiplied_however_small_its_share_has_become() -> None:
    """The share falls to a tenth with each row; a trace of 1e30 may be behind it."""
    n, d = 40, 3
    at = np.arange(n)
    phi = (np.ones(n), at % d, np.arange(n + 1), at)
    later = (np.ones(n), (at + 1) % d, np.arange(n + 1), at)
    system, noise = np.zeros((n, d + 1, d + 1)), np.zeros((0, d, d + 1))
    carry, share = np.zeros(d), np.ones(1)
    rho, discount, reward = np.ones(n), np.full(n, 0.5), np.full(n, 2.0)
    start = np.zeros(n, dtype=np.bool_)
    directions(*(phi, later, rho, discount, reward, start, 0.2, 1.0, carry, share, system, noise))
    np.testing.assert_allclose(system[at, d, d], 2.0 * 0.1**at, rtol=1e-12)
    np.testing.assert_allclose(system[at, at % d, d], 0.1**at, rtol=1e-12)
    np.testing.assert_allclose(system[at, (at + 1) % d, d], -0.5 * 0.1**at, rtol=1e-12)
    np.testing.assert_allclose(share, 0.1**n, rtol=1e-12)

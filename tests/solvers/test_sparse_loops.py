"""Compiled sums of sparse rows, against what each row adds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from o2td import LSTD, Transitions
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


@pytest.mark.parametrize("trace", [0.4, 1.0])
def test_a_trace_over_rows_with_few_entries_gives_the_answer_of_full_rows(trace: float) -> None:
    rng, n, d = np.random.default_rng(3), 400, 60
    phi = np.zeros((n + 1, d))
    phi[np.arange(n + 1), rng.integers(d, size=n + 1)] = rng.normal(size=n + 1) + 3.0
    ends = rng.random(n) < 0.1
    discount, reward = np.where(ends, 0.0, 0.9), rng.normal(size=n)
    given = {"rho": rng.random(n) * 2, "start": np.concatenate([[True], ends[:-1]])}
    full = Transitions(phi[:-1], reward, phi[1:], discount, **given)
    few = Transitions(csr_array(phi[:-1]), reward, csr_array(phi[1:]), discount, **given)
    want = LSTD(trace=trace, ridge=0.1).fit(full).theta
    np.testing.assert_allclose(LSTD(trace=trace, ridge=0.1).fit(few).theta, want, rtol=1e-8)
    one, two = (LSTD(trace=trace, ridge=0.1).fit(few[a:b]) for a, b in ((0, 170), (170, n)))
    np.testing.assert_allclose(one.merge(two).theta, want, rtol=1e-8)

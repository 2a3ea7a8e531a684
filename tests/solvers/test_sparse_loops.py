"""Compiled sums of sparse rows, against what each row adds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from o2td import LSTD, Transitions
from o2td.solvers import sparse_loops
from o2td.solvers.sparse_loops import directions

Array = np.ndarray[Any, Any]


def plain(name: str) -> Any:
    """The loop as it is written: compiled code would be made for these arrays alone."""
    loop = getattr(sparse_loops, name)
    return getattr(loop, "py_func", loop)


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


def few(rng: np.random.Generator, n: int, d: int, entries: int) -> tuple[Any, Array]:
    """A row for each number, with at most so many entries, as the loops read them and in full."""
    full = np.zeros((n, d))
    for row in full:
        some = rng.choice(d, rng.integers(entries + 1), replace=False)
        row[some] = rng.normal(size=len(some))
    held, rows = csr_array(full), rng.permutation(n)
    return (held.data, held.indices.astype(np.int64), held.indptr.astype(np.int64), rows), full[
        rows
    ]


@pytest.mark.parametrize("block", [1, 40, 1 << 20])
@pytest.mark.parametrize(
    ("trace", "clip", "d"), [(0.0, np.inf, 30), (0.7, 1.0, 30), (1.0, np.inf, 6)]
)
@pytest.mark.parametrize("noisy", [False, True])
def test_all_sums_are_those_of_full_rows(
    trace: float, clip: float, d: int, noisy: bool, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traces of few entries and full ones, many and few at a time, with something behind them."""
    monkeypatch.setattr(sparse_loops, "_BLOCK", block)
    rng, n, groups = np.random.default_rng(d), 50, 4
    (phi, full), (later, after) = few(rng, n, d, 3), few(rng, n, d, 3)
    rho, reward = (
        rng.choice([0.0, 1.0, 0.4, 2.5], size=n),
        rng.normal(size=n) * (rng.random(n) < 0.7),
    )
    discount = np.where(rng.random(n) < 0.2, 0.0, 0.9)
    start = rng.random(n) < 0.1
    start[0], rho[0] = False, 0.4
    carry, through = np.where(np.arange(d) % 5 == 1, rng.normal(size=d), 0.0), np.array([0.6])
    c, slope = carry.copy(), 0.6
    system = np.zeros((groups, d + 1, d + 1))
    noise = np.zeros((groups if noisy else 0, d, d + 1))
    vectors = (rho, discount, reward)
    traced = (start, trace, clip)
    plain("directions")(phi, later, *vectors, *traced, carry, through, system, noise)
    sums, off = np.zeros_like(system), np.zeros((groups, d, d + 1))
    for t in range(n):
        if start[t]:
            c, slope = np.zeros(d), 0.0
        x = np.append(c + full[t], slope)
        right = np.append(full[t] - discount[t] * after[t], reward[t])
        sums[t % groups] += rho[t] * np.outer(right, x)
        off[t % groups] += (rho[t] - 1.0) * np.outer(full[t], x)
        keep = trace * discount[t] * min(rho[t], clip)
        c, slope = keep * x[:d], keep * slope
    close = {"rtol": 1e-10, "atol": 1e-12}
    np.testing.assert_allclose(system, sums, **close)
    np.testing.assert_allclose(np.append(carry, through), np.append(c, slope), **close)
    if noisy:
        np.testing.assert_allclose(noise, off, **close)


@pytest.mark.parametrize("slope", [0.0, 0.6])
def test_pairs_of_entries_give_what_no_trace_needs(slope: float) -> None:
    rng, n, groups, d = np.random.default_rng(8), 30, 4, 7
    (phi, full), (later, after) = few(rng, n, d, 3), few(rng, n, d, 3)
    full[0] = 0.0
    phi[3][0] = len(full)  # the first row is one that was added: all of its numbers count
    first = np.array([0.5, -1.0])
    phi = (
        np.append(phi[0], first),
        np.append(phi[1], [2, 5]),
        np.append(phi[2], phi[2][-1] + 2),
        phi[3],
    )
    full[0, [2, 5]] = first
    rho, discount = (
        rng.choice([0.0, 1.0, 0.4, 2.5], size=n),
        np.where(rng.random(n) < 0.2, 0.0, 0.9),
    )
    rho[0], reward = 0.4, rng.normal(size=n)
    total, gram, spread = np.zeros(d), np.zeros((d, d)), np.zeros((d, 2 * d + 1))
    system, noise = np.zeros((groups, d + 1, d + 1)), np.zeros((groups, d, d + 1))
    given = (rho, discount, reward, slope, total, gram, spread, system, noise)
    plain("pairs")(phi, later, *given)
    right = np.column_stack([full - discount[:, None] * after, reward])
    one = rho - 1.0
    np.testing.assert_allclose(total, full.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(gram, full.T @ full, atol=1e-12)
    np.testing.assert_allclose(spread[:, :d], full.T @ (one[:, None] ** 2 * full), atol=1e-12)
    np.testing.assert_allclose(spread[:, d:], full.T @ ((one * rho)[:, None] * right), atol=1e-12)
    for k in range(groups):
        some = slice(k, n, groups)
        x = np.column_stack([full[some], slope * (np.arange(n)[some] == 0)])
        sums = (rho[some, None] * right[some]).T @ x
        np.testing.assert_allclose(system[k], sums, atol=1e-12)
        np.testing.assert_allclose(noise[k], (one[some, None] * full[some]).T @ x, atol=1e-12)

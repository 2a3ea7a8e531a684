"""Many weighted-TD lanes without traces, in matrix products: exact sequential TD at BLAS-3 speed.

Over a block of B rows theta moves by `sum_k a_k phi_k` only, with scalars `a_k = gain_k M_k delta_k`.
With `E = gamma Phi' - Phi` (B, d), shared by all lanes,

    V = E Theta^T (B, lanes),    D = E Phi^T (B, B),
    delta_t = r_t + V_t + sum_{k<t} D_tk a_k,    Theta += a^T Phi

which is the same recursion, row by row, as the plain kernel's: three matrix products and a small
triangular loop in place of 3 d numbers read for every lane and row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from o2td.kernels.weighted import FASTMATH, HUGE, moments_dense, quotient

BLOCK = 32


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _load(rows: Any, following: Any, discount: Any, lo: int, hi: int, Phi: Any, E: Any) -> None:
    for t in range(lo, hi):
        phi = rows.matrix[rows.at[t]]
        gamma = discount[t]
        b = t - lo
        if gamma == 0.0:
            for j in range(len(phi)):
                Phi[b, j] = phi[j]
                E[b, j] = -phi[j]
        else:
            next_phi = following.matrix[following.at[t]]
            for j in range(len(phi)):
                Phi[b, j] = phi[j]
                E[b, j] = gamma * next_phi[j] - phi[j]


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _recursion(
    D: Any,
    V: Any,
    reward: Any,
    gain: Any,
    weight: Any,
    inner: Any,
    omega: Any,
    lo: int,
    size: int,
    diverged: Any,
    first: int,
    a: Any,
) -> None:
    """Fill `a` (lanes, B) row by row; a lane that would overflow stops, its later rows stay 0."""
    for lane in range(len(diverged)):
        own = a[lane]
        for t in range(size):
            own[t] = 0.0
        if diverged[lane] >= 0:
            continue
        for t in range(size):
            delta = reward[lo + t] + V[t, lane]
            for k in range(t):
                delta += D[t, k] * own[k]
            m = weight[lane, lo + t] * (omega[t] if inner[lane] else 1.0)
            step = gain[lane, lo + t] * delta * m
            if not (abs(delta) < HUGE and abs(step) < HUGE):
                diverged[lane] = first + lo + t
                break
            own[t] = step


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def drive_blocked(
    rows: Any,
    following: Any,
    lanes: Any,
    diverged: Any,
    n: int,
    first: int,
    every: int,
    snapshots: Any,
) -> None:
    """As `lanes.drive`, for dense rows and weighted lanes without traces that share r and gamma."""
    n_lanes, d = lanes.theta.shape
    theta = lanes.theta
    reward, discount = lanes.reward[0], lanes.discount[0]
    Phi, E = np.zeros((BLOCK, d)), np.zeros((BLOCK, d))
    V, D = np.empty((BLOCK, n_lanes)), np.empty((BLOCK, BLOCK))
    a, moved, omega = np.zeros((n_lanes, BLOCK)), np.empty((n_lanes, d)), np.ones(BLOCK)
    weighed = lanes.inner.any()
    at = 0
    lo = 0
    while lo < n:
        hi = min(n, lo + BLOCK)
        if every > 0:
            hi = min(hi, lo + every - (first + lo) % every)
        size = hi - lo
        _load(rows, following, discount, lo, hi, Phi, E)
        if size < BLOCK:
            a[:] = 0.0
            Phi[size:] = 0.0
        if weighed:
            for t in range(size):
                i, k = rows.at[lo + t], following.at[lo + t]
                gamma = discount[lo + t]
                next_phi = following.matrix[k] if gamma != 0.0 else rows.matrix[i]
                omega[t] = quotient(moments_dense(rows.matrix[i], next_phi, gamma))
        np.dot(E, theta.T, V)
        np.dot(E, Phi.T, D)
        _recursion(
            D, V, reward, lanes.gain, lanes.weight, lanes.inner, omega, lo, size, diverged, first, a
        )
        np.dot(a, Phi, moved)
        for lane in range(n_lanes):
            for j in range(d):
                theta[lane, j] += moved[lane, j]
        if every > 0 and (first + hi) % every == 0:
            if at < len(snapshots):
                snapshots[at] = theta
            at += 1
        lo = hi

"""Many weighted-TD lanes without traces, in matrix products: exact sequential TD at BLAS-3 speed.

Over a block of B rows theta moves by `sum_t a_t phi_t` only, with scalars `a_t = gain_t M_t delta_t`.
With `E = gamma Phi' - Phi` (B, d), shared by all lanes, the dot products `V_t = E_t.theta` that steps
need start as one matrix product for all lanes, and step t corrects those of the rows s after it:

    V = E Theta^T (B, lanes),    D = E Phi^T (B, B),    V_s += D_st a_t,    Theta += a^T Phi

which is the same recursion, row by row, as the plain kernel's: three matrix products and a small
triangular loop, over lanes side by side, in place of 3 d numbers read for every lane and row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from o2td.kernels.weighted import FASTMATH, HUGE, quotient

BLOCK = 32


@njit(cache=True, nogil=True)
def block_end(lo: int, n: int, first: int, every: int) -> int:
    """Where the block that begins at row lo ends: blocks of one size up to the next record."""
    left = n - lo
    if every > 0:
        left = min(left, every - (first + lo) % every)
    blocks = (left + BLOCK - 1) // BLOCK
    return lo + (left + blocks - 1) // blocks


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def load_block(
    rows: Any, following: Any, discount: Any, lo: int, hi: int, Phi: Any, E: Any
) -> None:
    """Rows lo:hi of the features into `Phi`, and of `gamma phi' - phi` into `E`."""
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
def _omegas(Phi: Any, E: Any, omega: Any) -> None:
    """`dphi.phi / |dphi|^2` of the block's rows; E is -dphi."""
    for t in range(len(omega)):
        along = square = 0.0
        for j in range(E.shape[1]):
            along -= E[t, j] * Phi[t, j]
            square += E[t, j] * E[t, j]
        omega[t] = quotient((along, square))


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def correct(V: Any, D: Any, a: Any, t: int) -> None:
    """`V_s += D_st a_t`, at once for the rest of t's four, and for four at a time beyond these."""
    end = min(len(V), t + 4 - t % 4)
    for s in range(t + 1, end):
        for k in range(V.shape[1]):
            V[s, k] += D[s, t] * a[t, k]
    if t + 1 == end:
        for s in range(end, len(V)):
            g, h, i, j = D[s, t - 3], D[s, t - 2], D[s, t - 1], D[s, t]
            for k in range(V.shape[1]):
                V[s, k] += g * a[t - 3, k] + h * a[t - 2, k] + i * a[t - 1, k] + j * a[t, k]


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _recursion(D: Any, V: Any, gain: Any, step: int, diverged: Any, a: Any) -> None:
    """Fill `a` (B, lanes) row by row; a lane that would overflow stops, its later rows stay 0.

    A lane that has stopped has V = nan, so that no later row of it passes the test.
    """
    lanes = len(diverged)
    for t in range(len(V)):
        for k in range(lanes):
            a[t, k] = gain[t, k] * V[t, k]
        for k in range(lanes):
            if not (abs(V[t, k]) < HUGE and abs(a[t, k]) < HUGE):
                if diverged[k] < 0:
                    diverged[k] = step + t
                V[t + 1 :, k] = np.nan
                a[t, k] = 0.0
        correct(V, D, a, t)


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
    theta, discount = lanes.theta, lanes.discount[0]
    Phi, E, moved = np.zeros((BLOCK, d)), np.zeros((BLOCK, d)), np.empty((n_lanes, d))
    V, D, gain = np.empty((BLOCK, n_lanes)), np.empty((BLOCK, BLOCK)), np.empty((BLOCK, n_lanes))
    a, omega = np.empty((BLOCK, n_lanes)), np.ones(BLOCK)
    weighed = lanes.inner.any()
    at = 0
    lo = 0
    while lo < n:
        hi = block_end(lo, n, first, every)
        size = hi - lo
        load_block(rows, following, discount, lo, hi, Phi, E)
        if weighed:
            _omegas(Phi, E, omega)
        np.dot(E[:size], theta.T, V[:size])
        np.dot(E[:size], Phi.T, D[:size])
        for k in range(n_lanes):
            for t in range(size):
                V[t, k] = V[t, k] + lanes.reward[0, lo + t] if diverged[k] < 0 else np.nan
                m = lanes.weight[k, lo + t] * (omega[t] if lanes.inner[k] else 1.0)
                gain[t, k] = lanes.gain[k, lo + t] * m
        _recursion(D, V[:size], gain, first + lo, diverged, a)
        np.dot(a[:size].T, Phi[:size], moved)
        for lane in range(n_lanes):
            for j in range(d):
                theta[lane, j] += moved[lane, j]
        if every > 0 and (first + hi) % every == 0:
            if at < len(snapshots):
                snapshots[at] = theta
            at += 1
        lo = hi

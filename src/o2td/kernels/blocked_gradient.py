"""Many gradient-TD lanes without traces, in matrix products, as `blocked` does for weighted TD.

With `E = gamma Phi' - Phi` every member moves theta and w along a row's phi and E alone:

    theta += p_t phi_t + q_t E_t,    w = keep_t w + c_t phi_t + f_t E_t

so over a block of B rows the two dot products that a step needs, `V_t = E_t.theta` and `W_t = phi_t.w`,
start as matrix products for all lanes, and each step t corrects those of the rows s after it by the
block's Gram matrices, shared by all lanes:

    V_s += (E_s.phi_t) p_t + (E_s.E_t) q_t,    W_s = keep_t W_s + (phi_s.phi_t) c_t + (phi_s.E_t) f_t

Arrays are (B, lanes), so that the recursion runs over lanes side by side. GTD2 has no p, no f and
keeps all of w: the lean case.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from o2td.kernels.blocked import BLOCK, block_end, correct, load_block
from o2td.kernels.weighted import FASTMATH, HUGE


@njit(cache=True, nogil=True)
def _turn(rows: Any, lo: int, out: Any) -> None:
    """Rows lo, lo + 1, ... of an array (lanes, n), turned to (B, lanes)."""
    for lane in range(len(rows)):
        for t in range(len(out)):
            out[t, lane] = rows[lane, lo + t]


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _step(
    V: Any,
    wphi: Any,
    reward: float,
    gamma: float,
    alpha: Any,
    second: Any,
    m: Any,
    member: Any,
    p: Any,
    q: Any,
    c: Any,
    f: Any,
    size: Any,
) -> None:
    """One row of every lane: as `gradient.directions`, in the coefficients of phi and E."""
    for k in range(len(V)):
        delta = reward + V[k]
        u = alpha[k] * (m[k] * member[3, k] + member[5, k])
        along = alpha[k] * (member[1, k] + m[k] * member[2, k] + member[4, k])
        q[k] = -u * wphi[k]
        p[k] = (along - u) * wphi[k] + alpha[k] * m[k] * member[0, k] * delta
        f[k] = -second[k] * member[8, k] * wphi[k]
        c[k] = second[k] * (member[7, k] * wphi[k] + m[k] * member[6, k] * delta)
        moved = abs(p[k] - q[k]) + abs(gamma * q[k]) + abs(c[k] - f[k]) + abs(gamma * f[k])
        size[k] = abs(delta) + moved


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _correct_all(
    V: Any, W: Any, grams: Any, keep: Any, p: Any, q: Any, c: Any, f: Any, t: int
) -> None:
    """What step t changes in the dot products of the rows after it."""
    EE, EP, PP = grams
    for s in range(t + 1, len(V)):
        ee, ep, pe, pp = EE[s, t], EP[s, t], EP[t, s], PP[s, t]
        for k in range(V.shape[1]):
            V[s, k] += ep * p[t, k] + ee * q[t, k]
            W[s, k] = keep[t, k] * W[s, k] + pp * c[t, k] + pe * f[t, k]


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _recursion(
    grams: Any,
    V: Any,
    W: Any,
    keep: Any,
    reward: Any,
    discount: Any,
    gains: Any,
    member: Any,
    lean: bool,
    step: int,
    diverged: Any,
    p: Any,
    q: Any,
    c: Any,
    f: Any,
) -> None:
    """Fill the coefficients of every row; a lane that would overflow stops, its later ones stay 0.

    A lane that has stopped has V = nan, so that no later row of it passes the test.
    """
    alpha, second, m = gains
    size = np.empty(V.shape[1])
    for t in range(len(V)):
        _step(
            V[t], W[t], reward[t], discount[t], alpha[t], second[t], m[t], member,
            p[t], q[t], c[t], f[t], size,
        )  # fmt: skip
        for k in range(len(size)):
            if not size[k] < HUGE:
                if diverged[k] < 0:
                    diverged[k] = step + t
                V[t + 1 :, k] = np.nan
                p[t, k] = q[t, k] = c[t, k] = f[t, k] = 0.0
                keep[t, k] = 1.0
        if lean:
            correct(V, grams[0], q, t)
            correct(W, grams[2], c, t)
        else:
            _correct_all(V, W, grams, keep, p, q, c, f, t)


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _shrink(keep: Any, c: Any, f: Any, w: Any) -> None:
    """What later rows of the block keep of each row's part of w, and all rows of w itself."""
    for k in range(len(w)):
        kept = 1.0
        for t in range(len(keep) - 1, -1, -1):
            c[t, k] *= kept
            f[t, k] *= kept
            kept *= keep[t, k]
        if kept != 1.0:
            for j in range(w.shape[1]):
                w[k, j] *= kept


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _add(moved: Any, x: Any) -> None:
    for lane in range(len(x)):
        for j in range(x.shape[1]):
            x[lane, j] += moved[lane, j]


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def drive_blocked_gradient(
    rows: Any,
    following: Any,
    lanes: Any,
    diverged: Any,
    n: int,
    first: int,
    every: int,
    snapshots: Any,
) -> None:
    """As `lanes.drive`, for dense rows and gradient lanes without traces that share r and gamma."""
    theta, w, discount = lanes.theta, lanes.w, lanes.discount[0]
    n_lanes, d = theta.shape
    member = np.ascontiguousarray(lanes.member.T)
    lean = (
        (member[0] == 0.0) & (member[8] == 0.0) & (member[9] == 0.0)
        & (member[1] + member[4] == member[5]) & (member[2] == member[3])
    ).all()  # fmt: skip
    Phi, E, moved = np.zeros((BLOCK, d)), np.zeros((BLOCK, d)), np.empty((n_lanes, d))
    EE, EP, PP = np.empty((BLOCK, BLOCK)), np.empty((BLOCK, BLOCK)), np.empty((BLOCK, BLOCK))
    V, W, keep = np.empty((BLOCK, n_lanes)), np.empty((BLOCK, n_lanes)), np.ones((BLOCK, n_lanes))
    alpha, second, m = np.empty_like(V), np.empty_like(V), np.empty_like(V)
    p, q, c, f = np.empty_like(V), np.empty_like(V), np.empty_like(V), np.empty_like(V)
    at = 0
    lo = 0
    while lo < n:
        hi = block_end(lo, n, first, every)
        size = hi - lo
        load_block(rows, following, discount, lo, hi, Phi, E)
        _turn(lanes.gain, lo, alpha[:size])
        _turn(lanes.second_gain, lo, second[:size])
        _turn(lanes.weight, lo, m[:size])
        np.dot(E[:size], theta.T, V[:size])
        np.dot(Phi[:size], w.T, W[:size])
        np.dot(E[:size], E.T, EE[:size])
        np.dot(Phi[:size], Phi.T, PP[:size])
        if not lean:
            np.dot(E[:size], Phi.T, EP[:size])
            keep[:size] = 1.0 - second[:size] * member[9]
        V[:, diverged >= 0] = np.nan
        _recursion(
            (EE, EP, PP), V[:size], W[:size], keep, lanes.reward[0, lo:hi], discount[lo:hi],
            (alpha, second, m), member, lean, first + lo, diverged, p, q, c, f,
        )  # fmt: skip
        np.dot(q[:size].T, E[:size], moved)
        _add(moved, theta)
        if not lean:
            np.dot(p[:size].T, Phi[:size], moved)
            _add(moved, theta)
            _shrink(keep[:size], c, f, w)
            np.dot(f[:size].T, E[:size], moved)
            _add(moved, w)
        np.dot(c[:size].T, Phi[:size], moved)
        _add(moved, w)
        if every > 0 and (first + hi) % every == 0:
            if at < len(snapshots):
                snapshots[at] = theta
            at += 1
        lo = hi

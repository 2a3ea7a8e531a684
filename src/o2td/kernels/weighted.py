"""The compiled kernel of the weighted-TD family.

    z_t = decay_t z_{t-1} + M_t phi_t,    theta += gain_t delta_t z_t

What tells TD, V-trace, tree backup, ABTD, emphatic TD and O2TD apart is two numbers a row: `decay`
(lambda c_{t-1} gamma_t) and the emphasis `M`. Both are worked out beforehand, vectorised, by the
learner's own few lines; `gain` is alpha_t rho_t. The dense loops merge the update of one row with the
dot products of the next, so each step passes over theta once; and they address rows by number, because
a slice a row costs a reference count a row. A row with gamma = 0 has no successor to read: gamma = 0
then multiplies the last successor that there was.

The file is self-contained because the compiler's cache does not see changes in other files.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable

FASTMATH = {"reassoc", "contract"}  # full fastmath would delete the checks for divergence
HUGE = 1e150  # beyond this a square overflows: the learner has diverged


@register_jitable
def moments_dense(phi, next_phi, gamma):  # type: ignore[no-untyped-def]
    """`dphi . phi` and `|dphi|^2` with `dphi = phi - gamma next_phi`."""
    along = 0.0
    square = 0.0
    for j in range(len(phi)):
        x = phi[j] - gamma * next_phi[j]
        along += x * phi[j]
        square += x * x
    return along, square


@register_jitable
def moments_sparse(rows, i, following, k, gamma):  # type: ignore[no-untyped-def]
    """The same on two CSR rows, walking both sorted index lists at once."""
    along = 0.0
    square = 0.0
    a, a_end = rows.indptr[i], rows.indptr[i + 1]
    b, b_end = following.indptr[k], following.indptr[k + 1]
    if gamma == 0.0:
        b = b_end
    while a < a_end or b < b_end:
        ja = rows.indices[a] if a < a_end else np.int32(2147483647)
        jb = following.indices[b] if b < b_end else np.int32(2147483647)
        p = 0.0
        q = 0.0
        if ja <= jb:
            p = rows.data[a]
            a += 1
        if jb <= ja:
            q = following.data[b]
            b += 1
        x = p - gamma * q
        along += x * p
        square += x * x
    return along, square


@register_jitable
def quotient(moments):  # type: ignore[no-untyped-def]
    """`omega = dphi.phi / |dphi|^2`, 0 where dphi = 0."""
    return moments[0] / moments[1] if moments[1] > 0.0 else 0.0


@register_jitable
def dot_sparse(rows: Any, i: int, x: Any) -> float:  # pragma: no cover
    """The dot product of CSR row i with x."""
    total = 0.0
    for k in range(rows.indptr[i], rows.indptr[i + 1]):
        total += rows.data[k] * x[rows.indices[k]]
    return total


@register_jitable
def decay_active(z: Any, active: Any, count: int, factor: float) -> int:  # pragma: no cover
    """Scale a sparse trace in place; entries that vanish leave the list of active indices."""
    kept = 0
    for k in range(count):
        j = active[k]
        x = z[j] * factor
        if abs(x) < 1e-150:
            z[j] = 0.0
        else:
            z[j] = x
            active[kept] = j
            kept += 1
    return kept


@register_jitable
def add_active(rows: Any, i: int, weight: float, z: Any, active: Any, count: int) -> int:
    """`z += weight * row i`, keeping the list of indices where z is not zero.

    Comes after `decay_active`, which has just dropped every index where z is zero.
    """  # pragma: no cover
    if weight == 0.0:
        return count
    for k in range(rows.indptr[i], rows.indptr[i + 1]):
        j = rows.indices[k]
        if z[j] == 0.0:
            active[count] = j
            count += 1
        z[j] += weight * rows.data[k]
    return count


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def dense_lane(
    rows: Any,
    following: Any,
    lo: int,
    hi: int,
    reward: Any,
    discount: Any,
    gain: Any,
    weight: Any,
    inner: bool,
    decay: Any,
    traced: bool,
    theta: Any,
    z: Any,
) -> int:
    """One lane over dense rows lo:hi; returns the first row that was not applied."""
    first = lo
    while first < hi and discount[first] == 0.0:
        first += 1
    then = following if first < hi else rows
    k = then.at[first if first < hi else lo]
    if traced:
        done: int = _traced(
            rows, then, k, lo, hi, reward, discount, gain, weight, inner, decay, theta, z
        )
    elif inner:
        done = _omega(rows, then, k, lo, hi, reward, discount, gain, weight, theta)
    else:
        done = _plain(rows, then, k, lo, hi, reward, discount, gain, weight, theta)
    return done


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _plain(
    rows: Any,
    following: Any,
    k: int,
    lo: int,
    hi: int,
    reward: Any,
    discount: Any,
    gain: Any,
    weight: Any,
    theta: Any,
) -> int:
    here, there, at, next_at = rows.matrix, following.matrix, rows.at, following.at
    d = len(theta)
    i, step = at[lo], 0.0
    for t in range(lo, hi):
        up, gamma = at[t], discount[t]
        if gamma != 0.0:
            k = next_at[t]
        v = 0.0
        for j in range(d):
            x = theta[j] + step * here[i, j]
            theta[j] = x
            v += x * (here[up, j] - gamma * there[k, j])
        delta = reward[t] - v
        step = gain[t] * weight[t] * delta
        if not (abs(delta) < HUGE and abs(step) < HUGE):
            return t
        i = up
    for j in range(d):
        theta[j] += step * here[i, j]
    return hi


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _omega(
    rows: Any,
    following: Any,
    k: int,
    lo: int,
    hi: int,
    reward: Any,
    discount: Any,
    gain: Any,
    weight: Any,
    theta: Any,
) -> int:
    """As `_plain`, with the row's own `dphi.phi / |dphi|^2` in its weight."""
    here, there, at, next_at = rows.matrix, following.matrix, rows.at, following.at
    d = len(theta)
    i, step = at[lo], 0.0
    for t in range(lo, hi):
        up, gamma = at[t], discount[t]
        if gamma != 0.0:
            k = next_at[t]
        v = along = square = 0.0
        for j in range(d):
            x = theta[j] + step * here[i, j]
            theta[j] = x
            dphi = here[up, j] - gamma * there[k, j]
            v += x * dphi
            along += dphi * here[up, j]
            square += dphi * dphi
        delta = reward[t] - v
        step = gain[t] * weight[t] * quotient((along, square)) * delta
        if not (abs(delta) < HUGE and abs(step) < HUGE):
            return t
        i = up
    for j in range(d):
        theta[j] += step * here[i, j]
    return hi


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _traced(
    rows: Any,
    following: Any,
    k: int,
    lo: int,
    hi: int,
    reward: Any,
    discount: Any,
    gain: Any,
    weight: Any,
    inner: bool,
    decay: Any,
    theta: Any,
    z: Any,
) -> int:
    here, there, at, next_at = rows.matrix, following.matrix, rows.at, following.at
    d = len(theta)
    i, a, e, m = at[lo], 0.0, 1.0, 0.0
    for t in range(lo, hi):
        up, gamma = at[t], discount[t]
        if gamma != 0.0:
            k = next_at[t]
        v = along = square = 0.0
        for j in range(d):
            trace = e * z[j] + m * here[i, j]
            x = theta[j] + a * trace
            z[j] = trace
            theta[j] = x
            dphi = here[up, j] - gamma * there[k, j]
            v += x * dphi
            along += dphi * here[up, j]
            square += dphi * dphi
        delta = reward[t] - v
        a, m = gain[t] * delta, weight[t] * (quotient((along, square)) if inner else 1.0)
        if not (abs(delta) < HUGE and abs(a) < HUGE and abs(a * m) < HUGE):
            return t
        i, e = up, decay[t]
    for j in range(d):
        z[j] = e * z[j] + m * here[i, j]
        theta[j] += a * z[j]
    return hi


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def sparse_lane(
    rows: Any,
    following: Any,
    lo: int,
    hi: int,
    reward: Any,
    discount: Any,
    gain: Any,
    weight: Any,
    inner: bool,
    decay: Any,
    traced: bool,
    theta: Any,
    z: Any,
    active: Any,
    size: Any,
) -> int:
    """One lane over CSR rows lo:hi, in time linear in the entries of the row and of the trace."""
    if not traced:
        done: int = _sparse_plain(
            rows, following, lo, hi, reward, discount, gain, weight, inner, theta, z
        )
        return done
    for t in range(lo, hi):
        i, k = rows.at[t], following.at[t]
        gamma = discount[t]
        delta = reward[t] - dot_sparse(rows, i, theta)
        if gamma != 0.0:
            delta += gamma * dot_sparse(following, k, theta)
        m = (
            weight[t] * quotient(moments_sparse(rows, i, following, k, gamma))
            if inner
            else weight[t]
        )
        a = gain[t] * delta
        if not (abs(delta) < HUGE and abs(a) < HUGE and abs(a * m) < HUGE):
            return t
        count = decay_active(z, active, size[0], decay[t])
        count = add_active(rows, i, m, z, active, count)
        size[0] = count
        for e in range(count):
            theta[active[e]] += a * z[active[e]]
    return hi


@njit(cache=True, nogil=True, fastmath=FASTMATH)
def _sparse_plain(
    rows: Any,
    following: Any,
    lo: int,
    hi: int,
    reward: Any,
    discount: Any,
    gain: Any,
    weight: Any,
    inner: bool,
    theta: Any,
    zeros: Any,
) -> int:
    """Without a trace. Unsigned numbers, because signed ones might count from an array's end.

    `zeros` (d,) holds dphi for a moment: walking two lists of indices at once mispredicts branches.
    """
    value, index, ptr, at = rows.data, rows.indices, rows.indptr, rows.at
    next_value, next_index = following.data, following.indices
    next_ptr, next_at = following.indptr, following.at
    for t in range(lo, hi):
        i, k, gamma = at[t], next_at[t], discount[t]
        low, high = np.uint64(ptr[i]), np.uint64(ptr[i + 1])
        next_low, next_high = np.uint64(next_ptr[k]), np.uint64(next_ptr[k + 1])
        if gamma == 0.0:
            next_low = next_high
        v = next_v = 0.0
        for e in range(low, high):
            v += value[e] * theta[np.uint32(index[e])]
        for e in range(next_low, next_high):
            next_v += next_value[e] * theta[np.uint32(next_index[e])]
        delta = reward[t] + gamma * next_v - v
        step = gain[t] * weight[t] * delta
        if inner:
            along = square = 0.0
            for e in range(low, high):
                zeros[np.uint32(index[e])] = value[e]
            for e in range(next_low, next_high):
                zeros[np.uint32(next_index[e])] -= gamma * next_value[e]
            for e in range(low, high):
                x = zeros[np.uint32(index[e])]
                zeros[np.uint32(index[e])] = 0.0
                along += x * value[e]
                square += x * x
            for e in range(next_low, next_high):
                x = zeros[np.uint32(next_index[e])]
                zeros[np.uint32(next_index[e])] = 0.0
                square += x * x
            step *= quotient((along, square))
        if not (abs(delta) < HUGE and abs(step) < HUGE):
            return t
        if step != 0.0:
            for e in range(low, high):
                theta[np.uint32(index[e])] += step * value[e]
    return hi

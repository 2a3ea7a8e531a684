"""The compiled kernel of the weighted-TD family.

    z_t = decay_t z_{t-1} + M_t phi_t,    theta += gain_t delta_t z_t

What tells TD, V-trace, tree backup, ABTD, emphatic TD and O2TD apart is two numbers a row: `decay`
(lambda c_{t-1} gamma_t) and the emphasis `M`. Both are worked out beforehand, vectorised, by the
learner's own few lines; `gain` is alpha_t rho_t. The dense loops merge the update of one row with the
dot products of the next, so each step passes over theta once; and they address rows by where they begin
in the matrix laid out flat, because a slice a row costs a reference count a row. A row with gamma = 0
has no successor to read: gamma = 0 then multiplies the last successor that there was.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable

from o2td.kernels.memory import get_row, get_theta, get_z, put_theta, put_z, rolled

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
def dot_entries(value, index, low, high, x):  # type: ignore[no-untyped-def]
    """The dot product of entries low:high of CSR rows with x, four at a time."""
    a = b = c = d = 0.0
    e = low
    while e + 4 <= high:
        rolled()
        a += get_row(value, e) * get_theta(x, get_row(index, e))
        b += get_row(value, e + 1) * get_theta(x, get_row(index, e + 1))
        c += get_row(value, e + 2) * get_theta(x, get_row(index, e + 2))
        d += get_row(value, e + 3) * get_theta(x, get_row(index, e + 3))
        e += 4
    while e < high:
        rolled()
        a += get_row(value, e) * get_theta(x, get_row(index, e))
        e += 1
    return (a + b) + (c + d)


@register_jitable
def add_entries(value, index, low, high, weight, x):  # type: ignore[no-untyped-def]
    """`x += weight * entries low:high of CSR rows`."""
    for e in range(low, high):
        rolled()
        j = get_row(index, e)
        put_theta(x, j, get_theta(x, j) + weight * get_row(value, e))


@register_jitable
def dot_sparse(rows, i, x):  # type: ignore[no-untyped-def]
    """The dot product of CSR row i with x."""
    return dot_entries(rows.data, rows.indices, rows.indptr[i], rows.indptr[i + 1], x)


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
    here, there, at, next_at = rows.matrix.ravel(), following.matrix.ravel(), rows.at, following.at
    d = len(theta)
    i, k, step = at[lo] * d, k * d, 0.0
    for t in range(lo, hi):
        up, gamma = at[t] * d, discount[t]
        if gamma != 0.0:
            k = next_at[t] * d
        v = 0.0
        for j in range(d):
            x = get_theta(theta, j) + step * get_row(here, i + j)
            put_theta(theta, j, x)
            v += x * (get_row(here, up + j) - gamma * get_row(there, k + j))
        delta = reward[t] - v
        step = gain[t] * weight[t] * delta
        if not (abs(delta) < HUGE and abs(step) < HUGE):
            return t
        i = up
    for j in range(d):
        theta[j] += step * here[i + j]
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
    here, there, at, next_at = rows.matrix.ravel(), following.matrix.ravel(), rows.at, following.at
    d = len(theta)
    i, k, step = at[lo] * d, k * d, 0.0
    for t in range(lo, hi):
        up, gamma = at[t] * d, discount[t]
        if gamma != 0.0:
            k = next_at[t] * d
        v = along = square = 0.0
        for j in range(d):
            x = get_theta(theta, j) + step * get_row(here, i + j)
            put_theta(theta, j, x)
            dphi = get_row(here, up + j) - gamma * get_row(there, k + j)
            v += x * dphi
            along += dphi * get_row(here, up + j)
            square += dphi * dphi
        delta = reward[t] - v
        step = gain[t] * weight[t] * quotient((along, square)) * delta
        if not (abs(delta) < HUGE and abs(step) < HUGE):
            return t
        i = up
    for j in range(d):
        theta[j] += step * here[i + j]
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
    here, there, at, next_at = rows.matrix.ravel(), following.matrix.ravel(), rows.at, following.at
    d = len(theta)
    i, k, a, e, m = at[lo] * d, k * d, 0.0, 1.0, 0.0
    for t in range(lo, hi):
        up, gamma = at[t] * d, discount[t]
        if gamma != 0.0:
            k = next_at[t] * d
        v = along = square = 0.0
        for j in range(d):
            trace = e * get_z(z, j) + m * get_row(here, i + j)
            x = get_theta(theta, j) + a * trace
            put_z(z, j, trace)
            put_theta(theta, j, x)
            dphi = get_row(here, up + j) - gamma * get_row(there, k + j)
            v += x * dphi
            along += dphi * get_row(here, up + j)
            square += dphi * dphi
        delta = reward[t] - v
        a, m = gain[t] * delta, weight[t] * (quotient((along, square)) if inner else 1.0)
        if not (abs(delta) < HUGE and abs(a) < HUGE and abs(a * m) < HUGE):
            return t
        i, e = up, decay[t]
    for j in range(d):
        z[j] = e * z[j] + m * here[i + j]
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
    """Without a trace.

    `zeros` (d,) holds dphi for a moment: walking two lists of indices at once mispredicts branches.
    """
    value, index, ptr, at = rows.data, rows.indices, rows.indptr, rows.at
    next_value, next_index = following.data, following.indices
    next_ptr, next_at = following.indptr, following.at
    for t in range(lo, hi):
        i, k, gamma = at[t], next_at[t], discount[t]
        low, high = get_row(ptr, i), get_row(ptr, i + 1)
        next_low, next_high = get_row(next_ptr, k), get_row(next_ptr, k + 1)
        if gamma == 0.0:
            next_low = next_high
        v = dot_entries(value, index, low, high, theta)
        next_v = dot_entries(next_value, next_index, next_low, next_high, theta)
        delta = reward[t] + gamma * next_v - v
        step = gain[t] * weight[t] * delta
        if inner:
            along = square = 0.0
            add_entries(value, index, low, high, 1.0, zeros)
            add_entries(next_value, next_index, next_low, next_high, -gamma, zeros)
            for e in range(low, high):
                rolled()
                x = get_theta(zeros, get_row(index, e))
                put_theta(zeros, get_row(index, e), 0.0)
                along += x * get_row(value, e)
                square += x * x
            for e in range(next_low, next_high):
                rolled()
                x = get_theta(zeros, get_row(next_index, e))
                put_theta(zeros, get_row(next_index, e), 0.0)
                square += x * x
            step *= quotient((along, square))
        if not (abs(delta) < HUGE and abs(step) < HUGE):
            return t
        if step != 0.0:
            add_entries(value, index, low, high, step, theta)
    return hi

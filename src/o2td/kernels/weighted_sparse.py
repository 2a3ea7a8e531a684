"""The weighted-TD kernel on CSR rows: time linear in the entries of the row and of the trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td.compiled import jitable
from o2td.kernels.lanes import Flag
from o2td.kernels.weighted import FASTMATH, HUGE, quotient
from o2td.load_store import get_row, get_theta, put_theta, rolled


@jitable
def moments_sparse(rows, i, following, k, gamma):
    """As `weighted.moments_dense`, on two CSR rows, walking both sorted index lists at once."""
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


@jitable
def dot_entries(value, index, low, high, x):
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


@jitable
def add_entries(value, index, low, high, weight, x):
    """`x += weight * entries low:high of CSR rows`."""
    for e in range(low, high):
        rolled()
        j = get_row(index, e)
        put_theta(x, j, get_theta(x, j) + weight * get_row(value, e))


@jitable
def dot_sparse(rows, i, x):
    """The dot product of CSR row i with x."""
    return dot_entries(rows.data, rows.indices, rows.indptr[i], rows.indptr[i + 1], x)


@jitable
def trace_sparse(rows, i, weight, factor, z, active, count):
    """`z = factor z + weight row i` on the list of active indices; returns the list's length."""
    kept = 0
    for k in range(count):
        j = active[k]
        x = z[j] * factor
        z[j] = x if abs(x) >= 1e-150 else 0.0
        if z[j] != 0.0:
            active[kept] = j
            kept += 1
    if weight != 0.0:
        for k in range(rows.indptr[i], rows.indptr[i + 1]):
            j = rows.indices[k]
            if z[j] == 0.0:
                active[kept] = j
                kept += 1
            z[j] += weight * rows.data[k]
    return kept


@jitable(fastmath=FASTMATH)
def sparse_lane(
    rows,
    following,
    lo: int,
    hi: int,
    reward,
    discount,
    gain,
    weight,
    inner,
    lane: int,
    decay,
    traced: Flag,
    theta,
    z,
    active,
    size,
    bound,
) -> Any:
    """Move one lane over CSR rows lo:hi; returns the first row that was not applied."""
    if traced is None:
        if inner is not None:  # noqa: SIM102  (by its type)
            if inner[lane]:
                return _plain(rows, following, lo, hi, reward, discount, gain, weight, theta, z)
        return _plain(rows, following, lo, hi, reward, discount, gain, weight, theta, None)
    most = bound[0]
    for t in range(lo, hi):
        i, k = rows.at[t], following.at[t]
        gamma = discount[t]
        delta = reward[t] - dot_sparse(rows, i, theta)
        if gamma != 0.0:
            delta += gamma * dot_sparse(following, k, theta)
        m = weight[t]
        if inner is not None:  # noqa: SIM102
            if inner[lane]:
                m *= quotient(moments_sparse(rows, i, following, k, gamma))
        a, most = gain[t] * delta, abs(decay[t]) * most + abs(m)
        if not (abs(delta) < HUGE and abs(a) < HUGE and most < HUGE and abs(a) * most < HUGE):
            return t
        size[0] = trace_sparse(rows, i, m, decay[t], z, active, size[0])
        for e in range(size[0]):
            theta[active[e]] += a * z[active[e]]
    bound[0] = most
    return hi


@jitable(fastmath=FASTMATH)
def _plain(
    rows, following, lo: int, hi: int, reward, discount, gain, weight,
    theta, zeros
) -> int:  # fmt: skip
    """Without a trace; if `zeros` is not None, with the row's own `dphi.phi / |dphi|^2` in its weight.

    `zeros` (d,) holds dphi for a moment, because walking two index lists at once mispredicts branches.
    """
    value, index, ptr, at = rows.data, rows.indices, rows.indptr, rows.at
    next_value, next_index = following.data, following.indices
    next_ptr, next_at = following.indptr, following.at
    for t in range(lo, hi):
        i, k, gamma, scale = at[t], next_at[t], discount[t], gain[t] * weight[t]
        low, high = get_row(ptr, i), get_row(ptr, i + 1)
        next_low, next_high = get_row(next_ptr, k), get_row(next_ptr, k + 1)
        if gamma == 0.0:
            next_low = next_high
        v = dot_entries(value, index, low, high, theta)
        next_v = dot_entries(next_value, next_index, next_low, next_high, theta)
        if zeros is not None:
            add_entries(value, index, low, high, 1.0, zeros)
            add_entries(next_value, next_index, next_low, next_high, -gamma, zeros)
            along = square = 0.0
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
            scale *= quotient((along, square))
        delta = reward[t] + gamma * next_v - v
        step = scale * delta
        if not (abs(delta) < HUGE and abs(step) < HUGE):
            return t
        if step != 0.0:
            add_entries(value, index, low, high, step, theta)
    return hi

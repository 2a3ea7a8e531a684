"""Compiled loops over rows from the last to the first, for sums over all rows and traces.

With `e_t = sum_{s <= t} (keep_s ... keep_{t-1}) phi_s` the order of two sums may be changed:

    sum_t e_t y_t^T = sum_s phi_s g_s^T,    g_s = y_s + keep_s g_{s+1}

so g is added where phi has entries, and not a trace where `y = [Delta, r]` has some, which are more.
With numbers in place of y these are residuals of answers, and g is short. The sums of a segment depend
on the incoming trace c through `c g_0^T`.

Rows of a table, or those in CSR form with few entries. Rows of the successor with weight 0 are never
read.
"""

from __future__ import annotations

import numpy as np

from o2td.arrays import Bools, Floats, Ints
from o2td.compiled import njit
from o2td.load_store import get_row, get_theta, put_theta
from o2td.solvers.sparse_loops import Sparse

_NOTHING = 1e-20  # share of what was last added to an entry below which nothing is left of it
_FULL = 2  # sums with at least one entry in so many have all
_BLOCK = 1 << 17  # numbers that are written down at a time: fits in the second-level cache
_FEWEST, _MOST = 64, 512  # rows in a block
_OPTIONS = {"cache": True, "nogil": True, "fastmath": {"reassoc", "contract"}}


@njit(**_OPTIONS)
def by_state(
    table: Floats,
    index: Ints,
    later_index: Ints,
    own: Floats,
    ahead: Floats,
    earned: Floats,
    keep: Floats,
    out: Floats,
) -> None:
    """`out[s_t] += g_t` with `y = [own phi - ahead phi', earned]`, as far as `out` has columns.

    The last row gains g_0; `keep[-1]` is not used.
    """
    d, p = table.shape[1], out.shape[1]
    g, n = np.zeros(p), len(index)
    for t in range(n - 1, -1, -1):
        a, b, k = own[t], ahead[t], keep[t]
        phi, here = table[index[t]], out[index[t]]
        if b != 0.0:
            then = table[later_index[t]]
            for j in range(d):
                g[j] = k * g[j] + a * phi[j] - b * then[j]
                here[j] += g[j]
        else:
            for j in range(d):
                g[j] = k * g[j] + a * phi[j]
                here[j] += g[j]
        for j in range(d, p):
            g[j] = k * g[j] + earned[t]
            here[j] += g[j]
    out[-1] += g


@njit(**_OPTIONS)
def by_feature(
    phi: Sparse,
    later: Sparse,
    own: Floats,
    ahead: Floats,
    earned: Floats,
    keep: Floats,
    out: Floats,
) -> None:
    """As `by_state` with `out[j] += phi_tj g_t`.

    The rows of g are written down for a block of rows, in the places that entries got in this block,
    and added feature by feature. Entries that have decayed to nothing are forgotten after a block.
    """
    n, p, d = len(own), out.shape[1], len(out) - 1
    (data, indices, indptr, rows), (later_data, columns, first, then) = phi, later
    g, size, names, place = np.zeros(p), np.zeros(p), np.empty(p, dtype=np.int64), np.full(p, -1)
    values, ends = np.empty(_BLOCK + p), np.zeros(_MOST + 1, dtype=np.int64)
    begins, order = np.empty(d + 2, dtype=np.int64), np.empty(0, dtype=np.int64)
    count, t = 0, n
    while t > 0:
        count = _tidy(g, size, names, place, count)
        high, most, whole = t, 2 * count, count == p
        while t > 0 and high - t < _MOST and ends[high - t] < _BLOCK:
            if count > most and high - t >= _FEWEST:
                break
            t -= 1
            left = keep[t]
            for i in range(count):
                put_theta(g, i, left * get_theta(g, i))
            if own[t] != 0.0:
                k, end = indptr[rows[t]], indptr[rows[t] + 1]
                count = _put(g, size, names, place, count, data, indices, k, end, own[t])
            if ahead[t] != 0.0:
                k, end = first[then[t]], first[then[t] + 1]
                count = _put(g, size, names, place, count, later_data, columns, k, end, -ahead[t])
            if p > d and earned[t] != 0.0:
                if place[d] < 0:
                    g[count], names[count], place[d] = 0.0, d, count
                    count += 1
                g[place[d]] += earned[t]
                size[d] = abs(earned[t])
            used = ends[high - 1 - t]
            for i in range(count):
                put_theta(values, used + i, get_row(g, i))
            ends[high - t] = used + count
        order = _sort(phi, t, high, begins, order)
        _add(phi, high, begins, order, values, ends, names[:count], whole, out)
    for i in range(count):
        out[d, names[i]] += g[i]


@njit(**_OPTIONS)
def _tidy(g, size, names, place, count):  # type: ignore[no-untyped-def]
    """Forget entries that became nothing; give all columns a place if most have one.

    Entry i of `g` belongs to column `names[i]`, whose place is i, and -1 if it has none; `size` has
    what was last added to it. Returns the number of entries.
    """
    left = 0
    for i in range(count):
        j = names[i]
        if abs(g[i]) > _NOTHING * size[j]:
            g[left], names[left], place[j] = g[i], j, left
            left += 1
        else:
            place[j] = -1
    if left * _FULL < len(g):
        return left
    held = g[:left].copy()
    g[:] = 0.0
    for i in range(left):
        g[names[i]] = held[i]
    for j in range(len(g)):
        names[j] = place[j] = j
    return len(g)


@njit(**_OPTIONS)
def _put(g, size, names, place, count, data, columns, low, high, weight):  # type: ignore[no-untyped-def]
    """Add the entries low:high, times a weight; returns the number of entries of g."""
    for k in range(low, high):
        j, x = columns[k], weight * data[k]
        if place[j] < 0:
            g[count], names[count], place[j] = 0.0, j, count
            count += 1
        g[place[j]] += x
        size[j] = abs(x)
    return count


@njit(**_OPTIONS)
def _sort(phi, low, high, begins, order):  # type: ignore[no-untyped-def]
    """The entries of rows low:high by feature, from the last row to the first.

    Those of feature j, counted through, are in `order[2 * begins[j]:2 * begins[j + 1]]`, each as the
    row and the number of the entry.
    """
    _, indices, indptr, rows = phi
    begins[:], used = 0, 0
    for t in range(low, high):
        for k in range(indptr[rows[t]], indptr[rows[t] + 1]):
            begins[indices[k] + 1] += 1
            used += 1
    if 2 * used > len(order):
        order = np.empty(4 * used, dtype=np.int64)
    for j in range(1, len(begins)):
        begins[j] += begins[j - 1]
    for t in range(high - 1, low - 1, -1):
        for k in range(indptr[rows[t]], indptr[rows[t] + 1]):
            at = begins[indices[k]]
            order[2 * at], order[2 * at + 1] = t, k
            begins[indices[k]] += 1
    for j in range(len(begins) - 1, 0, -1):
        begins[j] = begins[j - 1]
    begins[0] = 0
    return order


@njit(**_OPTIONS)
def _add(phi, high, begins, order, values, ends, names, whole, out):  # type: ignore[no-untyped-def]
    """`out[j] += phi_tj g_t` for the rows of a block, that of t in place `high - 1 - t` of `values`."""
    data, sums, flat = phi[0], np.zeros(len(names)), out.reshape(-1)
    for j in range(len(out) - 1):
        low, end = begins[j], begins[j + 1]
        if whole:
            _combine(flat, j * out.shape[1], data, high, low, end, order, values, ends)
        elif low < end:
            _combine(sums, 0, data, high, low, end, order, values, ends)
            for h in range(len(names)):
                out[j, names[h]] += sums[h]
                sums[h] = 0.0


@njit(**_OPTIONS)
def _combine(there, base, data, high, low, end, order, values, ends):  # type: ignore[no-untyped-def]
    """Add the entries `low:end` times their rows to `there`, from `base` on, four at a time.

    Rows that come later in the block are as long or longer. A call takes as long as the work for many
    entries, so there are few of them.
    """
    while low + 4 <= end:
        i, k = high - 1 - order[2 * low], high - 1 - order[2 * low + 2]
        m, o = high - 1 - order[2 * low + 4], high - 1 - order[2 * low + 6]
        a, b = data[order[2 * low + 1]], data[order[2 * low + 3]]
        c, f = data[order[2 * low + 5]], data[order[2 * low + 7]]
        n, u, v, x, y = ends[i + 1] - ends[i], ends[i], ends[k], ends[m], ends[o]
        for h in range(n):
            one = a * get_row(values, u + h) + b * get_row(values, v + h)
            two = c * get_row(values, x + h) + f * get_row(values, y + h)
            put_theta(there, base + h, get_theta(there, base + h) + (one + two))
        for h in range(n, ends[k + 1] - v):
            put_theta(there, base + h, get_theta(there, base + h) + b * get_row(values, v + h))
        for h in range(n, ends[m + 1] - x):
            put_theta(there, base + h, get_theta(there, base + h) + c * get_row(values, x + h))
        for h in range(n, ends[o + 1] - y):
            put_theta(there, base + h, get_theta(there, base + h) + f * get_row(values, y + h))
        low += 4
    for at in range(low, end):
        i, a = high - 1 - order[2 * at], data[order[2 * at + 1]]
        u = ends[i]
        for h in range(ends[i + 1] - u):
            put_theta(there, base + h, get_theta(there, base + h) + a * get_row(values, u + h))


@njit(**_OPTIONS)
def residuals_by_state(
    index: Ints,
    later_index: Ints,
    vectors: tuple[Floats, Floats, Floats, Bools],
    traces: Floats,
    ends: Ints,
    own: Floats,
    drawn: Floats,
    weight: Floats,
    groups: int,
    out: Floats,
) -> None:
    """`out[s_t]` gains what each answer leaves of the equation of feature phi(s_t), by group.

    Answers `ends[k]:ends[k + 1]` belong to the lambda and clip in `traces[k]`. Row t leaves
    `c = rho (own(s_t) - gamma own(s'_t) + r weight) - (rho - 1) drawn(s_t)` of the equation that is
    weighted by e_t; `own` and `drawn` are (states, answers). Columns of `out` are in the order of
    directions, and of groups before answers.
    """
    rho, discount, reward, start = vectors
    n, many = len(index), own.shape[1]
    g, c = np.zeros(groups * many), np.empty(many)
    for t in range(n - 1, -1, -1):
        s, a = index[t], rho[t]
        for m in range(many):
            c[m] = a * (own[s, m] + reward[t] * weight[m]) - (a - 1.0) * drawn[s, m]
        if a * discount[t] != 0.0:
            then = own[later_index[t]]
            for m in range(many):
                c[m] -= a * discount[t] * then[m]
        goes_on = t + 1 < n and not start[t + 1]
        _follow(g, c, traces, ends, groups, t % groups, goes_on * discount[t], a)
        there = out[s]
        for m in range(len(g)):
            there[m] += g[m]


@njit(**_OPTIONS)
def residuals_by_feature(
    phi: Sparse,
    later: Sparse,
    vectors: tuple[Floats, Floats, Floats, Bools],
    traces: Floats,
    ends: Ints,
    whole: Floats,
    drawn: Floats,
    groups: int,
    out: Floats,
) -> None:
    """As `residuals_by_state` for each feature; `whole` (d + 1, answers) has the weight last."""
    (data, indices, indptr, rows), (ahead, columns, first, then) = phi, later
    rho, discount, reward, start = vectors
    n, d, many = len(rho), len(out), whole.shape[1]
    g, c = np.zeros(groups * many), np.empty(many)
    for t in range(n - 1, -1, -1):
        a = rho[t]
        for m in range(many):
            c[m] = a * reward[t] * whole[d, m]
        for k in range(indptr[rows[t]], indptr[rows[t] + 1]):
            x, b, j = a * data[k], (a - 1.0) * data[k], indices[k]
            for m in range(many):
                c[m] += x * whole[j, m] - b * drawn[j, m]
        if a * discount[t] != 0.0:
            for k in range(first[then[t]], first[then[t] + 1]):
                x, j = a * discount[t] * ahead[k], columns[k]
                for m in range(many):
                    c[m] -= x * whole[j, m]
        goes_on = t + 1 < n and not start[t + 1]
        _follow(g, c, traces, ends, groups, t % groups, goes_on * discount[t], a)
        for k in range(indptr[rows[t]], indptr[rows[t] + 1]):
            there, x = out[indices[k]], data[k]
            for m in range(len(g)):
                there[m] += x * g[m]


@njit(**_OPTIONS)
def _follow(g, c, traces, ends, groups, group, discount, rho):  # type: ignore[no-untyped-def]
    """Carry g from the row after this one to this one, of `group`, which adds c."""
    for k in range(len(traces)):
        keep, many = traces[k, 0] * discount * min(rho, traces[k, 1]), ends[k + 1] - ends[k]
        low = groups * ends[k]
        for m in range(low, groups * ends[k + 1]):
            g[m] *= keep
        low += group * many
        for m in range(many):
            g[low + m] += c[ends[k] + m]

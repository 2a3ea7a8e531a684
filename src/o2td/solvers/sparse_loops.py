"""Compiled row loops of `LSTD(trace="auto")` for sparse rows.

`[Delta, r]` has few entries: each trace is added to the columns of these only. A trace fills up while
ratios and lambda let it: entries that have decayed to nothing are forgotten, and while few are left
only these are added. Rows of the successor with discount 0 are never read.
"""

from __future__ import annotations

import numpy as np

from o2td.arrays import Bools, Floats, Ints
from o2td.compiled import njit
from o2td.load_store import get_row, get_theta, put_theta

Sparse = tuple[Floats, Ints, Ints, Ints]  # data, indices and indptr; row t is number `rows[t]`
_NOTHING = 1e-20  # share of what was added to a trace below which nothing is left of it
_FULL = 4  # traces with at least one entry in so many are added as a whole
_BLOCK = 1 << 20  # numbers in the traces that are written down
_OPTIONS = {"cache": True, "nogil": True, "fastmath": {"reassoc", "contract"}}


@njit(**_OPTIONS)
def _difference(phi, later, t, discount, place, at, value):  # type: ignore[no-untyped-def]
    """Entries of `phi_t - discount phi'_t` in `at` and `value`; returns their number.

    `place` has -1 for every feature, before and afterwards.
    """
    (data, indices, indptr, rows), (ahead, columns, first, then) = phi, later
    count, s = 0, rows[t]
    for k in range(indptr[s], indptr[s + 1]):
        at[count], value[count], place[indices[k]] = indices[k], data[k], count
        count += 1
    if discount != 0.0:
        s = then[t]
        for k in range(first[s], first[s + 1]):
            j = columns[k]
            if place[j] < 0:
                at[count], value[count], place[j] = j, 0.0, count
                count += 1
            value[place[j]] -= discount * ahead[k]
    for k in range(count):
        place[at[k]] = -1
    return count


@njit(**_OPTIONS)
def _decay(e, keep, size, filled, held, count):  # type: ignore[no-untyped-def]
    """Multiply the `count` entries of `e` named in `filled`, forget those that became nothing.

    `size` has what was last added to each entry, `held` whether it is in `filled`.
    """
    left = 0
    for i in range(count):
        j = filled[i]
        e[j] *= keep
        if abs(e[j]) > _NOTHING * size[j]:
            filled[left] = j
            left += 1
        else:
            e[j], held[j] = 0.0, False
    return left


@njit(**_OPTIONS)
def _add(out, columns, data, low, high, weight, names, values, begin, end):  # type: ignore[no-untyped-def]
    """For each of the entries low:high, add its multiple of a trace to the row of `out` that it names.

    The trace is `values[begin:end]`, given by its entries or in full.
    """
    p = out.shape[1]
    for k in range(low, high):
        x, row = weight * data[k], columns[k] * p
        if x == 0.0:
            continue
        if end - begin == p:
            for h in range(p):
                here = get_theta(out, row + h)
                put_theta(out, row + h, here + x * get_row(values, begin + h))
        else:
            for h in range(begin, end):
                at = row + get_row(names, h)
                put_theta(out, at, get_theta(out, at) + x * get_row(values, h))


@njit(**_OPTIONS)
def _sort(phi, low, high, groups, first, order):  # type: ignore[no-untyped-def]
    """Rows by group, and then by their middle entry: those that follow each other share columns."""
    _, indices, indptr, rows = phi
    first[:] = 0
    width = (len(first) - 2) // groups
    for step in (2, 1):
        for t in range(low, high):
            own, end = indptr[rows[t]], indptr[rows[t] + 1]
            key = t % groups * width + (indices[(own + end) // 2] if own < end else 0)
            if step == 1:
                order[first[key + 1]] = t
            first[key + step] += 1
        if step == 2:
            for key in range(2, len(first)):
                first[key] += first[key - 1]


@njit(**_OPTIONS)
def directions(
    phi: Sparse,
    later: Sparse,
    rho: Floats,
    discount: Floats,
    reward: Floats,
    start: Bools,
    trace: float,
    clip: float,
    carry: Floats,
    through: Floats,
    system: Floats,
    noise: Floats,
) -> None:
    """As `row_loops.directions_by_state`, with sums by group and feature instead of state.

    Many traces at a time are written down, and added in an order in which the sums that rows share
    stay in the cache.
    """
    n, groups, p = len(rho), system.shape[0], system.shape[2]
    d, noisy = p - 1, len(noise) > 0
    data, indices, indptr, rows = phi
    place, at, value = np.full(d, -1), np.empty(p, dtype=np.int64), np.empty(p)
    e, keep = np.append(carry, through), 1.0  # slope last
    size = np.abs(e)
    size[d] = 1e-270  # the slope multiplies whatever comes before: it is forgotten last
    filled, held = np.arange(p), np.ones(p, dtype=np.bool_)
    count = _decay(e, 1.0, size, filled, held, p)
    names, values = np.empty(_BLOCK + p, dtype=np.int32), np.empty(_BLOCK + p)
    ends, order = np.empty(n + 1, dtype=np.int64), np.empty(n, dtype=np.int64)
    first = np.empty(groups * d + 2, dtype=np.int64)
    high = 0
    while high < n:
        low, used = high, 0
        while high < n and used < _BLOCK:
            t = high
            if start[t] or keep != 1.0:
                count = _decay(e, 0.0 if start[t] else keep, size, filled, held, count)
            for k in range(indptr[rows[t]], indptr[rows[t] + 1]):
                j = indices[k]
                e[j] += data[k]
                size[j] = abs(data[k])
                if not held[j]:
                    filled[count], held[j] = j, True
                    count += 1
            ends[t] = used
            if count * _FULL < p:
                for i in range(count):
                    names[used + i] = filled[i]
                    values[used + i] = e[filled[i]]
                used += count
            else:
                values[used : used + p] = e
                used += p
            keep = trace * discount[t] * min(rho[t], clip)
            high += 1
        ends[high] = used
        _sort(phi, low, high, groups, first, order)
        for i in range(high - low):
            t = order[i]
            a, group = rho[t], t % groups
            given = (names, values, ends[t], ends[t + 1])
            if a != 0.0:
                m = _difference(phi, later, t, discount[t], place, at, value)
                at[m], value[m] = d, reward[t]
                _add(system[group], at, value, 0, m + 1, a, *given)
            if noisy and a != 1.0:
                k, end = indptr[rows[t]], indptr[rows[t] + 1]
                _add(noise[group], indices, data, k, end, a - 1.0, *given)
    carry[:], through[0] = keep * e[:d], keep * e[d]


@njit(**_OPTIONS)
def pairs(
    phi: Sparse,
    later: Sparse,
    rho: Floats,
    discount: Floats,
    reward: Floats,
    slope: float,
    total: Floats,
    gram: Floats,
    spread: Floats,
    system: Floats,
    noise: Floats,
) -> None:
    """The sums for which pairs of entries suffice: `total`, `gram`, `spread` and those for lambda = 0.

    `slope` is that of the first row in the incoming trace.
    """
    n, groups, d = len(rho), system.shape[0], len(gram)
    data, indices, indptr, rows = phi
    place, at, value = np.full(d, -1), np.empty(d, dtype=np.int64), np.empty(d)
    order, first = np.empty(n, dtype=np.int64), np.empty(groups * d + 2, dtype=np.int64)
    _sort(phi, 0, n, groups, first, order)
    for t in order:
        a, off, s, group = rho[t], rho[t] - 1.0, rows[t], t % groups
        earned = a * reward[t]
        count = _difference(phi, later, t, discount[t], place, at, value)
        for k in range(indptr[s], indptr[s + 1]):
            i, f = indices[k], data[k]
            total[i] += f
            for m in range(indptr[s], indptr[s + 1]):
                j, both = indices[m], f * data[m]
                gram[i, j] += both
                spread[i, j] += off * off * both
                noise[group, j, i] += off * both
            for m in range(count):
                j, both = at[m], a * f * value[m]
                system[group, j, i] += both
                spread[i, d + j] += off * both
            system[group, d, i] += earned * f
            spread[i, 2 * d] += off * earned * f
        if t == 0 and slope != 0.0:
            for m in range(count):
                system[group, at[m], d] += slope * a * value[m]
            system[group, d, d] += slope * earned
            for k in range(indptr[s], indptr[s + 1]):
                noise[group, indices[k], d] += slope * off * data[k]

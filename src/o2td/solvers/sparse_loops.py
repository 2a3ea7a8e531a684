"""Compiled row loops of `LSTD(trace="auto")` for sparse rows.

Traces fill up, but `[Delta, r]` has few entries: each trace is added to the columns of these entries
only. Rows of the successor with discount 0 are never read.
"""

from __future__ import annotations

import numpy as np

from o2td.arrays import Bools, Floats, Ints
from o2td.compiled import njit

Sparse = tuple[Floats, Ints, Ints, Ints]  # data, indices and indptr; row t is number `rows[t]`
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
    """As `row_loops.directions_by_state`, with sums by group and feature instead of state."""
    groups, p, group = system.shape[0], system.shape[2], 0
    d, noisy = p - 1, len(noise) > 0
    data, indices, indptr, rows = phi
    place, at, value = np.full(d, -1), np.empty(d, dtype=np.int64), np.empty(d)
    e, keep = np.append(carry, through), 1.0  # slope last
    for t in range(len(rho)):
        if start[t]:
            e[:] = 0.0
        elif keep != 1.0:
            for j in range(p):
                e[j] *= keep
        s = rows[t]
        for k in range(indptr[s], indptr[s + 1]):
            e[indices[k]] += data[k]
        a, g = rho[t], discount[t]
        if a != 0.0:
            for m in range(_difference(phi, later, t, g, place, at, value)):
                x, there = a * value[m], system[group, at[m]]
                if x != 0.0:
                    for j in range(p):
                        there[j] += x * e[j]
            x = a * reward[t]
            if x != 0.0:
                earned = system[group, d]
                for j in range(p):
                    earned[j] += x * e[j]
        if noisy and a != 1.0:
            for k in range(indptr[s], indptr[s + 1]):
                x, here = (a - 1.0) * data[k], noise[group, indices[k]]
                for j in range(p):
                    here[j] += x * e[j]
        keep = trace * g * min(a, clip)
        if abs(keep * e[d]) < 1e-290:
            e[d] = 0.0
        group = group + 1 if group + 1 < groups else 0
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
    groups, d, group = system.shape[0], len(gram), 0
    data, indices, indptr, rows = phi
    place, at, value = np.full(d, -1), np.empty(d, dtype=np.int64), np.empty(d)
    for t in range(len(rho)):
        a, off, s = rho[t], rho[t] - 1.0, rows[t]
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
        if slope != 0.0:
            for m in range(count):
                system[group, at[m], d] += slope * a * value[m]
            system[group, d, d] += slope * earned
            for k in range(indptr[s], indptr[s + 1]):
                noise[group, indices[k], d] += slope * off * data[k]
            slope = 0.0
        group = group + 1 if group + 1 < groups else 0

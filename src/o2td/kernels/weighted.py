"""The compiled kernel of the weighted-TD family.

    z_t = decay_t z_{t-1} + M_t phi_t,    theta += gain_t delta_t z_t

TD, V-trace, tree backup, ABTD, emphatic TD and O2TD differ only in two numbers per row: `decay` (lambda
c_{t-1} gamma_t) and the emphasis `M`. Both are computed beforehand, vectorised, by the learner's
own few lines; `gain` is alpha_t rho_t. The dense loops merge the update of one row with the dot
products of the next, so each step passes over theta once; and they address rows by their offset in
the matrix, because a slice per row costs a reference count per row. A row with gamma = 0
has no successor to read, so gamma = 0 multiplies the previous successor instead.

Rows that are too many for the processor's cache come from memory in `_far`, with a second pass for
the update: a merged pass reads the previous row as well and waits longer for the next one, which
took 1.05 to 1.3 times as long there, and 0.7 to 0.95 of it where rows are in the cache. How large
that cache is, Linux says; elsewhere 32 MB are assumed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from o2td.compiled import jitable
from o2td.kernels.lanes import Flag
from o2td.load_store import get_row, get_theta, get_z, put_theta, put_z

FASTMATH = {"reassoc", "contract"}  # full fastmath would delete the checks for divergence
HUGE = 1e150  # squares of larger numbers overflow: the learner has diverged
LEAST, MOST = 1 << 21, 1 << 25  # numbers; bounds on how many are taken to fit into a cache
_CACHE = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")


def fitting(said: str) -> int:
    """How many numbers half of a cache of this size holds, such as "32768K", within bounds.

    >>> fitting("32768K") == fitting("") == LEAST, fitting("491520K")
    (True, 31457280)
    """
    size = int(said[:-1]) << 10 if said[-1:] == "K" and said[:-1].isdigit() else 0
    return min(max(size // 16, LEAST), MOST)


def _cache() -> str:
    try:
        return _CACHE.read_text().strip()
    except OSError:  # not Linux, or a machine that does not say
        return ""


FITS = fitting(_cache())  # numbers of the features of all rows beyond which they come from memory


@jitable
def moments_dense(phi, next_phi, gamma):
    """`dphi . phi` and `|dphi|^2` with `dphi = phi - gamma next_phi`."""
    along = 0.0
    square = 0.0
    for j in range(len(phi)):
        x = phi[j] - gamma * next_phi[j]
        along += x * phi[j]
        square += x * x
    return along, square


@jitable
def quotient(moments):
    """`omega = dphi.phi / |dphi|^2`, 0 where dphi = 0."""
    return moments[0] / moments[1] if moments[1] > 0.0 else 0.0


@jitable
def from_memory(rows, following):
    """Whether dense rows, or their table, are too large for the processor's cache."""
    size = rows.matrix.size
    if following.matrix is not rows.matrix:  # compiled: if they are at different places
        size += following.matrix.size
    return size > FITS


@jitable(fastmath=FASTMATH)
def dense_lane(
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
    bound,
) -> Any:
    """Move one lane over dense rows lo:hi; returns the first row that was not applied.

    `inner` is None if the weight of no lane includes omega.
    """
    first = lo
    while first < hi and discount[first] == 0.0:
        first += 1
    then = following if first < hi else rows
    k = then.at[first if first < hi else lo]
    if traced is not None:
        return _traced(
            rows, then, k, lo, hi, reward, discount, gain, weight, inner, lane, decay, theta, z,
            bound,
        )  # fmt: skip
    if inner is not None:  # noqa: SIM102  (by its type: without it what follows is not compiled)
        if inner[lane]:
            return _plain(rows, then, k, lo, hi, reward, discount, gain, weight, True, theta)
    if from_memory(rows, then):
        return _far(rows, then, k, lo, hi, reward, discount, gain, weight, theta)
    return _plain(rows, then, k, lo, hi, reward, discount, gain, weight, None, theta)


@jitable(fastmath=FASTMATH)
def _plain(
    rows, following, k: int, lo: int, hi: int, reward, discount, gain,
    weight, omega: Flag, theta
) -> int:  # fmt: skip
    """Without a trace; `omega`: with the row's own `dphi.phi / |dphi|^2` in its weight."""
    here, there, at, next_at = rows.matrix, following.matrix, rows.at, following.at
    d = len(theta)
    i, k, step = at[lo] * d, k * d, 0.0
    for t in range(lo, hi):
        up, gamma, scale = at[t] * d, discount[t], gain[t] * weight[t]
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
        if omega is not None:
            scale *= quotient((along, square))
        delta = reward[t] - v
        step = scale * delta
        if not (abs(delta) < HUGE and abs(step) < HUGE):
            return t
        i = up
    for j in range(d):
        theta[j] += step * get_row(here, i + j)
    return hi


@jitable(fastmath=FASTMATH)
def _far(
    rows, following, k: int, lo: int, hi: int, reward, discount, gain,
    weight, theta
) -> int:  # fmt: skip
    """Without a trace, on rows that come from memory."""
    here, there, at, next_at = rows.matrix, following.matrix, rows.at, following.at
    d = len(theta)
    k = k * d
    for t in range(lo, hi):
        i, gamma = at[t] * d, discount[t]
        if gamma != 0.0:
            k = next_at[t] * d
        v = next_v = 0.0
        for j in range(d):
            v += get_theta(theta, j) * get_row(here, i + j)
            next_v += get_theta(theta, j) * get_row(there, k + j)
        delta = reward[t] - v
        if gamma != 0.0:
            delta += gamma * next_v
        step = gain[t] * weight[t] * delta
        if not (abs(delta) < HUGE and abs(step) < HUGE):
            return t
        for j in range(d):
            put_theta(theta, j, get_theta(theta, j) + step * get_row(here, i + j))
    return hi


@jitable(fastmath=FASTMATH)
def _traced(
    rows,
    following,
    k: int,
    lo: int,
    hi: int,
    reward,
    discount,
    gain,
    weight,
    inner,
    lane: int,
    decay,
    theta,
    z,
    bound,
) -> int:
    """Along a trace; `bound` bounds it for features of size one and is carried from call to call."""
    here, there, at, next_at = rows.matrix, following.matrix, rows.at, following.at
    d = len(theta)
    i, k, a, e, m = at[lo] * d, k * d, 0.0, 1.0, 0.0
    most = bound[0]
    for t in range(lo, hi):
        up, gamma = at[t] * d, discount[t]
        if gamma != 0.0:
            k = next_at[t] * d
        v = along = square = 0.0
        for j in range(d):
            entry = e * get_z(z, j) + m * get_row(here, i + j)
            x = get_theta(theta, j) + a * entry
            put_z(z, j, entry)
            put_theta(theta, j, x)
            dphi = get_row(here, up + j) - gamma * get_row(there, k + j)
            v += x * dphi
            along += dphi * get_row(here, up + j)
            square += dphi * dphi
        delta = reward[t] - v
        a, m = gain[t] * delta, weight[t]
        if inner is not None:  # noqa: SIM102
            if inner[lane]:
                m *= quotient((along, square))
        i, e, most = up, decay[t], abs(decay[t]) * most + abs(m)
        if not (abs(delta) < HUGE and abs(a) < HUGE and most < HUGE and abs(a) * most < HUGE):
            return t
    bound[0] = most
    for j in range(d):
        z[j] = e * z[j] + m * get_row(here, i + j)
        theta[j] += a * z[j]
    return hi

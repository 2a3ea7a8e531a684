"""One row at a time, for systems that learn online: a call costs well under a microsecond.

Most of the cost of a compiled call is its arguments, so a learner's whole state is one packed array: the
scalars of `kernels.packing`, then its vectors, d numbers each. Signatures are fixed: an argument of
another type is refused (and converted by the caller) instead of causing another compilation.
`start` is 0 or 1, because the dispatcher recognises an integer faster than a bool.

These steps keep Python's lock, so no thread can begin to learn between their look at BUSY and their
end; a lock of the learner's own took another quarter of a call.
"""

from __future__ import annotations

from numba import float64, int64

from o2td.compiled import jitable, njit
from o2td.kernels.emphatic import decay_of, emphasis
from o2td.kernels.gradient import directions, mirrored, scaled, size_of
from o2td.kernels.packing import (
    ALPHA,
    BETA,
    BOUND,
    BUSY,
    DECAY,
    DISCOUNT,
    FOLLOWED,
    FOLLOWS,
    HEAD,
    INNER,
    LAMBDA,
    MEMBER,
    MIRROR,
    SECOND,
    STEPS,
)
from o2td.kernels.weighted import FASTMATH, HUGE, moments_dense, quotient

_ROW = (float64[::1], float64[::1], float64[::1], float64, float64, float64, int64)


@njit(int64(*_ROW), cache=True, fastmath=FASTMATH)
def one_weighted(
    packed, phi, next_phi, reward: float, discount: float, rho: float, start: int
) -> int:
    """Weighted TD with vectors theta, z. Returns 1 if the row was applied; otherwise nothing changed."""
    d = len(phi)
    if len(next_phi) != d or len(packed) != HEAD + 2 * d or packed[BUSY] != 0.0:
        return 0
    if not (0.0 <= rho < HUGE and 0.0 <= discount <= 1.0):
        return 0
    theta, z = packed[HEAD : HEAD + d], packed[HEAD + d :]
    after = next_phi if discount != 0.0 else phi
    v = 0.0
    next_v = 0.0
    square = 0.0
    for j in range(d):
        v += theta[j] * phi[j]
        next_v += theta[j] * after[j]
        square += phi[j] * phi[j] + after[j] * after[j]
    m = quotient(moments_dense(phi, after, discount)) if packed[INNER] != 0.0 else 1.0
    follows = packed[FOLLOWS] != 0.0
    followed = 1.0
    if follows:
        gamma, arrived = packed[FOLLOWED + 1], 0.0
        if not start and gamma != 0.0:
            arrived = decay_of(gamma, packed[BETA]) * packed[FOLLOWED]
        followed, m = emphasis(1.0, packed[LAMBDA], arrived)
    delta = reward + discount * next_v - v
    a = packed[ALPHA] * rho * delta
    traced, decay, bound = packed[LAMBDA] != 0.0, 0.0 if start else packed[DECAY], abs(m)
    if traced:
        bound += abs(decay) * packed[BOUND]
    if not (abs(delta) < HUGE and abs(a) < HUGE and abs(a) * bound < HUGE and square < HUGE):
        return 0
    if not traced:
        for j in range(d):
            theta[j] += a * m * phi[j]
    elif not bound < HUGE:
        return 0
    else:
        for j in range(d):
            entry = decay * z[j] + m * phi[j]
            z[j] = entry
            theta[j] += a * entry
        packed[DECAY], packed[BOUND] = packed[LAMBDA] * rho * discount, bound
    if follows:
        packed[FOLLOWED], packed[FOLLOWED + 1] = rho * followed, discount
    packed[STEPS] += 1.0
    return 1


@jitable
def _gram_ahead(phi, after, z, into, rho):
    """As `gradient.gram_dense`, with the trace as it will be after this row."""
    pp = pn = nn = zp = zn = zz = 0.0
    for j in range(len(phi)):
        entry = rho * (into * z[j] + phi[j])
        pp += phi[j] * phi[j]
        pn += phi[j] * after[j]
        nn += after[j] * after[j]
        zp += entry * phi[j]
        zn += entry * after[j]
        zz += entry * entry
    return pp, pn, nn, zp, zn, zz


@njit(int64(*_ROW), cache=True, fastmath=FASTMATH)
def one_gradient(
    packed, phi, next_phi, reward: float, discount: float, rho: float, start: int
) -> int:
    """Gradient TD with vectors theta, w, z, zb. Returns 1 if the row was applied, as `one_weighted`."""
    d = len(phi)
    if len(next_phi) != d or len(packed) != HEAD + 4 * d or packed[BUSY] != 0.0:
        return 0
    if not (0.0 <= rho < HUGE and 0.0 <= discount <= 1.0):
        return 0
    member = packed[MEMBER:BOUND]
    theta, w = packed[HEAD : HEAD + d], packed[HEAD + d : HEAD + 2 * d]
    z, zb = packed[HEAD + 2 * d : HEAD + 3 * d], packed[HEAD + 3 * d :]
    after = next_phi if discount != 0.0 else phi
    traced = packed[LAMBDA] != 0.0
    into = 0.0 if start or not traced else packed[LAMBDA] * packed[DISCOUNT]
    v = 0.0
    next_v = 0.0
    wphi = 0.0
    wz = 0.0
    wb = 0.0
    square = 0.0
    for j in range(d):
        square += phi[j] * phi[j] + after[j] * after[j]
        v += theta[j] * phi[j]
        next_v += theta[j] * after[j]
        wphi += w[j] * phi[j]
        wz += w[j] * (rho * (into * z[j] + phi[j]))
        wb += w[j] * (into * zb[j] + phi[j])
    alpha, second = packed[ALPHA], packed[SECOND]
    delta = reward + discount * next_v - v
    if not (abs(delta) < HUGE and abs(wz) < HUGE and abs(wb) < HUGE and square < HUGE):
        return 0
    step = scaled(member, directions(member, delta, discount, wphi, wz, wb), alpha, second)
    if packed[MIRROR] != 0.0:
        gram = _gram_ahead(phi, after, z, into, rho)
        step = mirrored(member, step, gram, alpha, second, delta, discount, wphi, wz)
    bound = rho * (into * packed[BOUND] + 1.0)
    if not size_of(step, delta, bound) < HUGE or (traced and not bound < HUGE):
        return 0
    a1, a2, a3, c1, c2, c3, keep = step
    for j in range(d):
        entry = rho * (into * z[j] + phi[j])
        z[j] = entry
        zb[j] = into * zb[j] + phi[j]
        theta[j] += a1 * entry + a2 * phi[j] + a3 * after[j]
        w[j] = keep * w[j] + c1 * entry + c2 * phi[j] + c3 * after[j]
    packed[DISCOUNT] = discount
    if traced:
        packed[BOUND] = bound
    packed[STEPS] += 1.0
    return 1

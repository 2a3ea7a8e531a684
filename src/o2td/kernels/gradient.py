"""The compiled kernel of the gradient-TD family.

    z_t = decay_t z_{t-1} + weight_t phi_t         (weight = rho M, decay = rho gamma_t lambda)
    theta += alpha   [ direction in span(z, phi, phi') ]
    w     += alpha_w [ direction in span(z, phi, phi') - kappa w ]

Every member is linear in delta, phi.w, z.w and z^b.w, so a member is the ten numbers of `Member`:
the same numbers drive this kernel and the exact mean dynamics. Mirror-prox members take the step
twice; the midpoint is never formed, only its dot products are. Rows are addressed as in `weighted`,
and in two passes each if they come from memory, or are long and mirror-prox needs their squares.

Rows in CSR form are in `gradient_sparse`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from o2td.compiled import jitable
from o2td.kernels.lanes import Flag
from o2td.kernels.weighted import FASTMATH, HUGE, from_memory
from o2td.load_store import get_row, get_theta, get_w, get_z, put_theta, put_w, put_z

SHORT = 12  # features, up to which mirror-prox takes less time in a merged pass


class Member(NamedTuple):
    """What a gradient-TD method adds to theta and to w; each number multiplies one term."""

    theta_delta_z: float = 0.0
    """theta += . delta z"""
    theta_w_phi: float = 0.0
    """theta += . (phi.w) phi"""
    theta_z_phi: float = 0.0
    """theta += . (z.w) phi"""
    theta_z_next: float = 0.0
    """theta -= . (z.w) gamma phi'"""
    theta_b_phi: float = 0.0
    """theta += . (z^b.w) phi"""
    theta_b_next: float = 0.0
    """theta -= . (z^b.w) gamma phi'"""
    w_delta_z: float = 1.0
    """w += . delta z"""
    w_w_phi: float = 0.0
    """w += . (phi.w) phi"""
    w_b_dphi: float = 0.0
    """w += . (z^b.w) (phi - gamma phi')"""
    kappa: float = 0.0
    """w -= . w"""


@jitable
def directions(member, delta, gamma, wphi, wz, wb):
    """Coefficients of (z, phi, phi') in theta's direction, then in w's (without -kappa w)."""
    return (
        member[0] * delta,
        member[1] * wphi + member[2] * wz + member[4] * wb,
        -gamma * (member[3] * wz + member[5] * wb),
        member[6] * delta,
        member[7] * wphi + member[8] * wb,
        -gamma * member[8] * wb,
    )


@jitable
def scaled(member, step, alpha, second):
    """The directions times their step sizes, and the factor that w keeps."""
    return (
        alpha * step[0],
        alpha * step[1],
        alpha * step[2],
        second * step[3],
        second * step[4],
        second * step[5],
        1.0 - second * member[9],
    )


@jitable
def moves(member, delta, gamma, wphi, m, alpha, second):
    """Without a trace: theta's moves along phi and phi', w's, and the factor that w keeps.

    `scaled` directions with z = m phi, ordered so that little has to wait for delta and wphi.
    """
    return (
        alpha * (member[1] + m * member[2] + member[4]) * wphi + alpha * m * member[0] * delta,
        -alpha * gamma * (m * member[3] + member[5]) * wphi,
        second * (member[7] + member[8]) * wphi + second * m * member[6] * delta,
        -second * gamma * member[8] * wphi,
        1.0 - second * member[9],
    )


@jitable
def mirrored(member, first, gram, alpha, second, delta, gamma, wphi, wz):
    """Mirror-prox: a step from (theta, w) with the directions at the point that `first` leads to.

    `gram`: phi.phi, phi.phi', phi'.phi', z.phi, z.phi', z.z.
    """
    a1, a2, a3, c1, c2, c3, keep = first
    pp, pn, nn, zp, zn, zz = gram
    delta += gamma * (a1 * zn + a2 * pn + a3 * nn) - (a1 * zp + a2 * pp + a3 * pn)
    wphi = keep * wphi + c1 * zp + c2 * pp + c3 * pn
    wz = keep * wz + c1 * zz + c2 * zp + c3 * zn
    again = scaled(member, directions(member, delta, gamma, wphi, wz, 0.0), alpha, second)
    shrink = second * member[9]
    return (
        again[0],
        again[1],
        again[2],
        again[3] - shrink * c1,
        again[4] - shrink * c2,
        again[5] - shrink * c3,
        1.0 - shrink * keep,
    )


@jitable
def twice(member, delta, gamma, wphi, m, alpha, second, pp, pn, nn):
    """As `moves`, for mirror-prox; phi.phi, phi.phi' and phi'.phi' follow."""
    first = scaled(member, directions(member, delta, gamma, wphi, m * wphi, wphi), alpha, second)
    gram = pp, pn, nn, m * pp, m * pn, m * m * pp
    step = mirrored(member, first, gram, alpha, second, delta, gamma, wphi, m * wphi)
    return step[1] + m * step[0], step[2], step[4] + m * step[3], step[5], step[6]


@jitable
def size_of(step, delta, bound):
    """A bound on the step for features of size one; not finite if any part of the step is not.

    `bound` bounds the trace.
    """
    total = abs(delta) + (abs(step[0]) + abs(step[3])) * bound
    for k in range(6):
        total += abs(step[k])
    return total


@jitable(fastmath=FASTMATH)
def gram_dense(here, i, there, k, z):
    """The Gram entries of (z, phi, phi') in the order of `mirrored`.

    phi begins at index i of `here`, phi' at index k of `there`.
    """
    pp = pn = nn = zp = zn = zz = 0.0
    for j in range(len(z)):
        phi, following = get_row(here, i + j), get_row(there, k + j)
        pp += phi * phi
        pn += phi * following
        nn += following * following
    for j in range(len(z)):
        zp += z[j] * get_row(here, i + j)
        zn += z[j] * get_row(there, k + j)
        zz += z[j] * z[j]
    return pp, pn, nn, zp, zn, zz


@jitable(fastmath=FASTMATH)
def dense_lane(
    rows,
    following,
    lo: int,
    hi: int,
    reward,
    discount,
    gain,
    second_gain,
    weight,
    decay,
    decay_b,
    member,
    traced: Flag,
    mirror: Flag,
    theta,
    w,
    z,
    zb,
    bound,
) -> Any:
    """One lane over dense rows lo:hi; returns the first row that was not applied."""
    first = lo
    while first < hi and discount[first] == 0.0:
        first += 1
    then = following if first < hi else rows
    k = then.at[first if first < hi else lo]
    numbers = (
        member[0], member[1], member[2], member[3], member[4],
        member[5], member[6], member[7], member[8], member[9],
    )  # fmt: skip
    gains = (gain, second_gain, weight)
    if traced is not None:
        return _traced(
            rows, then, k, lo, hi, reward, discount, gains, decay, decay_b, numbers, mirror,
            theta, w, z, zb, bound,
        )  # fmt: skip
    far = from_memory(rows, then) or (mirror is not None and len(theta) > SHORT)
    if far:
        return _far(rows, then, k, lo, hi, reward, discount, gains, numbers, mirror, theta, w)
    return _plain(rows, then, k, lo, hi, reward, discount, gains, numbers, mirror, theta, w)


@jitable(fastmath=FASTMATH)
def _plain(
    rows,
    following,
    k: int,
    lo: int,
    hi: int,
    reward,
    discount,
    gains,
    member,
    mirror: Flag,
    theta,
    w,
) -> int:
    """Without a trace `z = weight phi`, so the step along z is added to the step along phi."""
    here, there, at, next_at = rows.matrix, following.matrix, rows.at, following.at
    gain, second_gain, weight = gains
    lean = member[8] == 0.0 and member[9] == 0.0  # w neither shrinks nor moves along phi'
    d = len(theta)
    i, k = at[lo] * d, k * d
    last = k
    a2 = a3 = c2 = c3 = 0.0
    keep = 1.0
    for t in range(lo, hi):
        up, gamma = at[t] * d, discount[t]
        if gamma != 0.0:
            k = next_at[t] * d
        v = wphi = 0.0
        if lean:
            for j in range(d):
                phi, old = get_row(here, up + j), get_row(here, i + j)
                x = get_theta(theta, j) + a2 * old + a3 * get_row(there, last + j)
                y = get_w(w, j) + c2 * old
                put_theta(theta, j, x)
                put_w(w, j, y)
                v += x * (phi - gamma * get_row(there, k + j))
                wphi += y * phi
        else:
            for j in range(d):
                phi, old, then = (
                    get_row(here, up + j),
                    get_row(here, i + j),
                    get_row(there, last + j),
                )
                x = get_theta(theta, j) + a2 * old + a3 * then
                y = keep * get_w(w, j) + c2 * old + c3 * then
                put_theta(theta, j, x)
                put_w(w, j, y)
                v += x * (phi - gamma * get_row(there, k + j))
                wphi += y * phi
        delta, alpha, second, m = reward[t] - v, gain[t], second_gain[t], weight[t]
        if mirror is not None:
            pp = pn = nn = 0.0
            for j in range(d):
                phi, then = get_row(here, up + j), get_row(there, k + j)
                pp += phi * phi
                pn += phi * then
                nn += then * then
            a2, a3, c2, c3, keep = twice(member, delta, gamma, wphi, m, alpha, second, pp, pn, nn)
        else:
            a2, a3, c2, c3, keep = moves(member, delta, gamma, wphi, m, alpha, second)
        if not abs(delta) + abs(a2) + abs(a3) + abs(c2) + abs(c3) < HUGE:
            return t
        i, last = up, k
    for j in range(d):
        x, y = get_row(here, i + j), get_row(there, last + j)
        theta[j] += a2 * x + a3 * y
        w[j] = keep * w[j] + c2 * x + c3 * y
    return hi


@jitable(fastmath=FASTMATH)
def _far(
    rows, following, k: int, lo: int, hi: int, reward, discount, gains,
    member, mirror: Flag, theta, w
) -> int:  # fmt: skip
    """The same in two passes per row."""
    here, there, at, next_at = rows.matrix, following.matrix, rows.at, following.at
    gain, second_gain, weight = gains
    lean = member[8] == 0.0  # w does not move along phi'
    d = len(theta)
    k = k * d
    for t in range(lo, hi):
        i, gamma, m = at[t] * d, discount[t], weight[t]
        if gamma != 0.0:
            k = next_at[t] * d
        v = wphi = pp = pn = nn = 0.0
        for j in range(d):
            phi, then = get_row(here, i + j), get_row(there, k + j)
            v += get_theta(theta, j) * (phi - gamma * then)
            wphi += get_w(w, j) * phi
            pp += phi * phi
            pn += phi * then
            nn += then * then
        delta, alpha, second = reward[t] - v, gain[t], second_gain[t]
        if mirror is not None:
            a2, a3, c2, c3, keep = twice(member, delta, gamma, wphi, m, alpha, second, pp, pn, nn)
        else:
            a2, a3, c2, c3, keep = moves(member, delta, gamma, wphi, m, alpha, second)
        if not abs(delta) + abs(a2) + abs(a3) + abs(c2) + abs(c3) < HUGE:
            return t
        if lean:
            for j in range(d):
                phi = get_row(here, i + j)
                put_theta(theta, j, get_theta(theta, j) + a2 * phi + a3 * get_row(there, k + j))
                put_w(w, j, keep * get_w(w, j) + c2 * phi)
        else:
            for j in range(d):
                phi, then = get_row(here, i + j), get_row(there, k + j)
                put_theta(theta, j, get_theta(theta, j) + a2 * phi + a3 * then)
                put_w(w, j, keep * get_w(w, j) + c2 * phi + c3 * then)
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
    gains,
    decay,
    decay_b,
    member,
    mirror: Flag,
    theta,
    w,
    z,
    zb,
    bound,
) -> int:
    here, there, at, next_at = rows.matrix, following.matrix, rows.at, following.at
    gain, second_gain, weight = gains
    hybrid = member[4] != 0.0 or member[5] != 0.0 or member[8] != 0.0
    d = len(theta)
    i, k = at[lo] * d, k * d
    last = k
    a1 = a2 = a3 = c1 = c2 = c3 = 0.0
    keep = 1.0
    most = bound[0]  # bounds the trace, for features of size one
    for t in range(lo, hi):
        up, gamma, e, m = at[t] * d, discount[t], decay[t], weight[t]
        if gamma != 0.0:
            k = next_at[t] * d
        v = wphi = wz = 0.0
        for j in range(d):
            phi, old, then = get_row(here, up + j), get_row(here, i + j), get_row(there, last + j)
            entry = get_z(z, j)
            x = get_theta(theta, j) + a1 * entry + a2 * old + a3 * then
            y = keep * get_w(w, j) + c1 * entry + c2 * old + c3 * then
            entry = e * entry + m * phi
            put_theta(theta, j, x)
            put_w(w, j, y)
            put_z(z, j, entry)
            v += x * (phi - gamma * get_row(there, k + j))
            wphi += y * phi
            wz += y * entry
        wb = wphi
        if hybrid:
            wb = 0.0
            for j in range(d):
                entry = decay_b[t] * get_z(zb, j) + get_row(here, up + j)
                put_z(zb, j, entry)
                wb += get_w(w, j) * entry
        alpha, second, delta = gain[t], second_gain[t], reward[t] - v
        step = scaled(member, directions(member, delta, gamma, wphi, wz, wb), alpha, second)
        if mirror is not None:
            gram = gram_dense(here, up, there, k, z)
            step = mirrored(member, step, gram, alpha, second, delta, gamma, wphi, wz)
        most = abs(e) * most + abs(m)
        if not (most < HUGE and size_of(step, delta, most) < HUGE):
            return t
        a1, a2, a3, c1, c2, c3, keep = step
        i, last = up, k
    bound[0] = most
    for j in range(d):
        x, y = get_row(here, i + j), get_row(there, last + j)
        theta[j] += a1 * z[j] + a2 * x + a3 * y
        w[j] = keep * w[j] + c1 * z[j] + c2 * x + c3 * y
    return hi

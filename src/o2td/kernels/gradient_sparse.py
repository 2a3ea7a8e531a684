"""The gradient-TD kernel on CSR rows: time linear in the entries of the row and of the trace."""

from __future__ import annotations

from o2td.compiled import jitable
from o2td.kernels.gradient import directions, mirrored, scaled, size_of
from o2td.kernels.lanes import Flag
from o2td.kernels.weighted import FASTMATH, HUGE
from o2td.kernels.weighted_sparse import add_entries, dot_entries, dot_sparse, trace_sparse
from o2td.load_store import get_row, get_theta, get_w, get_z, put_theta, put_w


@jitable
def add_sparse(rows, i, weight, x):
    """`x += weight * row i`."""
    if weight != 0.0:
        add_entries(rows.data, rows.indices, rows.indptr[i], rows.indptr[i + 1], weight, x)


@jitable
def dot_rows(rows, i, following, k):
    """The dot product of two CSR rows with sorted indices."""
    total = 0.0
    a, a_end = rows.indptr[i], rows.indptr[i + 1]
    b, b_end = following.indptr[k], following.indptr[k + 1]
    while a < a_end and b < b_end:
        if rows.indices[a] == following.indices[b]:
            total += rows.data[a] * following.data[b]
            a += 1
            b += 1
        elif rows.indices[a] < following.indices[b]:
            a += 1
        else:
            b += 1
    return total


@jitable
def dot_active(z, active, count, x):
    """The dot product of a sparse trace with x."""
    total = 0.0
    for k in range(count):
        j = get_row(active, k)
        total += get_z(z, j) * get_w(x, j)
    return total


@jitable
def gram_sparse(rows, i, following, k, gamma, z, m, traced, active, count):
    """As `gradient.gram_dense`, on CSR rows."""
    pp = dot_rows(rows, i, rows, i)
    pn = nn = zn = 0.0
    if gamma != 0.0:
        pn = dot_rows(rows, i, following, k)
        nn = dot_rows(following, k, following, k)
    if not traced:
        return pp, pn, nn, m * pp, m * pn, m * m * pp
    if gamma != 0.0:
        zn = dot_sparse(following, k, z)
    return pp, pn, nn, dot_sparse(rows, i, z), zn, dot_active(z, active, count, z)


@jitable(fastmath=FASTMATH)
def sparse_lane(
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
    active,
    active_b,
    size,
    bound,
) -> int:
    """As the dense lane; w is held as scale * w inside, so that -kappa w costs O(1)."""
    if traced is None:  # noqa: SIM102  (one by one they are known when this is compiled)
        if mirror is None:
            gains = (gain, second_gain, weight)
            numbers = (
                member[0], member[1], member[2], member[3], member[4],
                member[5], member[6], member[7], member[8], member[9],
            )  # fmt: skip
            done: int = _plain(rows, following, lo, hi, reward, discount, gains, numbers, theta, w)
            return done
    traces, twice = traced is not None, mirror is not None
    hybrid = traces and (member[4] != 0.0 or member[5] != 0.0 or member[8] != 0.0)
    scale = 1.0
    done = hi
    most = bound[0]
    for t in range(lo, hi):
        i, k = rows.at[t], following.at[t]
        gamma, alpha, second, m = discount[t], gain[t], second_gain[t], weight[t]
        delta = reward[t] - dot_sparse(rows, i, theta)
        if gamma != 0.0:
            delta += gamma * dot_sparse(following, k, theta)
        wphi = scale * dot_sparse(rows, i, w)
        wz, wb = m * wphi, wphi
        if traces:
            size[0] = trace_sparse(rows, i, m, decay[t], z, active, size[0])
            wz = scale * dot_active(z, active, size[0], w)
        if hybrid:
            size[1] = trace_sparse(rows, i, 1.0, decay_b[t], zb, active_b, size[1])
            wb = scale * dot_active(zb, active_b, size[1], w)
        step = scaled(member, directions(member, delta, gamma, wphi, wz, wb), alpha, second)
        if twice:
            gram = gram_sparse(rows, i, following, k, gamma, z, m, traces, active, size[0])
            step = mirrored(member, step, gram, alpha, second, delta, gamma, wphi, wz)
        most = abs(decay[t]) * most + abs(m) if traces else abs(m)
        if not size_of(step, delta, most) < HUGE or (traces and not most < HUGE):
            done = t
            break
        a1, a2, a3, c1, c2, c3, keep = step
        scale *= keep
        if abs(scale) < 1e-100 or abs(scale) > 1e100:
            for j in range(len(w)):
                w[j] *= scale
            scale = 1.0
        if traces:
            along = c1 / scale
            for e in range(size[0]):
                j = get_row(active, e)
                entry = get_z(z, j)
                put_theta(theta, j, get_theta(theta, j) + a1 * entry)
                put_w(w, j, get_w(w, j) + along * entry)
        else:
            a2 += a1 * m
            c2 += c1 * m
        add_sparse(rows, i, a2, theta)
        add_sparse(rows, i, c2 / scale, w)
        if gamma != 0.0:
            add_sparse(following, k, a3, theta)
            add_sparse(following, k, c3 / scale, w)
    if traces and done == hi:
        bound[0] = most
    if scale != 1.0:
        for j in range(len(w)):
            w[j] *= scale
    return done


@jitable(fastmath=FASTMATH)
def _plain(rows, following, lo: int, hi: int, reward, discount, gains, member, theta, w) -> int:
    """Without a trace `z = weight phi`."""
    value, index, ptr, at = rows.data, rows.indices, rows.indptr, rows.at
    next_value, next_index = following.data, following.indices
    next_ptr, next_at = following.indptr, following.at
    gain, second_gain, weight = gains
    scale = 1.0
    done = hi
    for t in range(lo, hi):
        i, k, gamma = at[t], next_at[t], discount[t]
        low, high = get_row(ptr, i), get_row(ptr, i + 1)
        next_low, next_high = get_row(next_ptr, k), get_row(next_ptr, k + 1)
        if gamma == 0.0:
            next_low = next_high
        v = dot_entries(value, index, low, high, theta)
        next_v = dot_entries(next_value, next_index, next_low, next_high, theta)
        wphi = scale * dot_entries(value, index, low, high, w)
        delta, m = reward[t] + gamma * next_v - v, weight[t]
        alpha, second = gain[t], second_gain[t]
        # As `directions` and `scaled`, ordered so that little has to wait for delta and wphi.
        a2 = alpha * (member[1] + m * member[2] + member[4]) * wphi + alpha * m * member[0] * delta
        a3 = -alpha * gamma * (m * member[3] + member[5]) * wphi
        c2 = second * (member[7] + member[8]) * wphi + second * m * member[6] * delta
        c3 = -second * gamma * member[8] * wphi
        if not abs(delta) + abs(a2) + abs(a3) + abs(c2) + abs(c3) < HUGE:
            done = t
            break
        if member[9] != 0.0:
            scale *= 1.0 - second * member[9]
            if abs(scale) < 1e-100 or abs(scale) > 1e100:
                for j in range(len(w)):
                    w[j] *= scale
                scale = 1.0
            c2 /= scale
            c3 /= scale
        add_entries(value, index, low, high, a2, theta)
        add_entries(value, index, low, high, c2, w)
        if a3 != 0.0:
            add_entries(next_value, next_index, next_low, next_high, a3, theta)
        if c3 != 0.0:
            add_entries(next_value, next_index, next_low, next_high, c3, w)
    if scale != 1.0:
        for j in range(len(w)):
            w[j] *= scale
    return done

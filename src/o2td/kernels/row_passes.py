"""Compiled passes over a block of rows that compute what learners need of each row beforehand."""

from __future__ import annotations

from o2td.compiled import by_kind, jitable, kind, njit
from o2td.kernels.access import add, dot, features_at, square, values_of
from o2td.kernels.emphatic import decay_of, emphasis
from o2td.kernels.weighted import FASTMATH, moments_dense, quotient
from o2td.kernels.weighted_sparse import moments_sparse


@jitable
def norm_of(rows, t):
    """`|phi_t|^2`, whatever the layout."""
    return square(features_at(rows, values_of(rows)[0], t, True))


@jitable
def dot_row(rows, t, x):
    """`phi_t . x`."""
    return dot(features_at(rows, values_of(rows)[0], t, True), x)


@jitable
def add_row(rows, t, weight, x):
    """`x += weight phi_t`."""
    add(x, weight, features_at(rows, values_of(rows)[0], t, True))


@by_kind
def dphi_moments(rows, following, t, gamma):
    """`dphi . phi` and `|dphi|^2` of row t."""
    if "matrix" in kind(rows)._fields:
        return _dense_moments
    return lambda rows, following, t, gamma: moments_sparse(
        rows, rows.at[t], following, following.at[t], gamma
    )


def _dense_moments(rows, following, t, gamma):
    phi = rows.matrix[rows.at[t]]
    next_phi = following.matrix[following.at[t]] if gamma != 0.0 else phi
    return moments_dense(phi, next_phi, gamma)


@njit(cache=True, nogil=True, allocates=False, fastmath=FASTMATH)
def row_norms(rows, out) -> None:
    """`out[t] = |phi_t|^2`."""
    for t in range(len(out)):
        out[t] = norm_of(rows, t)


@njit(cache=True, nogil=True, allocates=False, fastmath=FASTMATH)
def omegas(rows, following, discount, out) -> None:
    """`out[t] *= dphi . phi / |dphi|^2` of each row (0 where dphi = 0)."""
    for t in range(len(out)):
        out[t] *= quotient(dphi_moments(rows, following, t, discount[t]))


@njit(cache=True, nogil=True, allocates=False)
def follow_on(rho, discount, start, interest, beta: float, trace: float, memory, out) -> None:
    """`F_t = i_t + gamma_t rho_{t-1} F_{t-1}`, `out = M_t = trace i_t + (1 - trace) F_t`.

    `memory` holds (rho F, gamma) of the row before; beta replaces gamma_t where it is not negative.
    """
    carried, gamma = memory[0], memory[1]
    for t in range(len(rho)):
        arrived = 0.0 if start[t] or gamma == 0.0 else decay_of(gamma, beta) * carried
        followed, out[t] = emphasis(interest[t], trace, arrived)
        carried = rho[t] * followed
        gamma = discount[t]
    memory[0], memory[1] = carried, gamma


@njit(cache=True, nogil=True, allocates=False, fastmath=FASTMATH)
def omega_by_state(rows, following, state, discount, rho, total, count, out) -> None:
    """`omega_s = D.phi / |D|^2` with D the running mean of `rho dphi` over visits to s.

    `total` (S, d) sums rho dphi, `count` (S,) the visits.
    """
    for t in range(len(out)):
        s = state[t]
        if dphi_moments(rows, following, t, discount[t])[1] > 0.0:  # the rest is rounding
            add_row(rows, t, rho[t], total[s])
            if discount[t] != 0.0:
                add_row(following, t, -rho[t] * discount[t], total[s])
        count[s] += 1.0
        square = 0.0
        for j in range(total.shape[1]):
            square += total[s, j] * total[s, j]
        along = dot_row(rows, t, total[s])
        out[t] = count[s] * along / square if square > 0.0 else 0.0


@njit(cache=True, nogil=True, allocates=False, fastmath=FASTMATH)
def moments_by_state(rows, following, state, discount, rho, along, square, out) -> None:
    """`E[rho dphi.phi | s] / E[rho |dphi|^2 | s]` from running sums over visits to s."""
    for t in range(len(out)):
        s = state[t]
        first, second = dphi_moments(rows, following, t, discount[t])
        along[s] += rho[t] * first
        square[s] += rho[t] * second
        out[t] = along[s] / square[s] if square[s] > 0.0 else 0.0


@njit(cache=True, nogil=True, allocates=False, fastmath=FASTMATH)
def moments_by_regression(
    rows, following, discount, rho, step_size: float, floor: float, memory, along, square, out
) -> None:
    """The same two moments, each regressed on phi by least mean squares in O(d).

    `memory` holds the largest |phi|^2 and the running mean and count of rho |dphi|^2: the predicted
    denominator is floored at `floor` times that mean.
    """
    for t in range(len(out)):
        first, second = dphi_moments(rows, following, t, discount[t])
        memory[0] = max(memory[0], norm_of(rows, t))
        memory[2] += 1.0
        memory[1] += (rho[t] * second - memory[1]) / memory[2]
        if memory[0] > 0.0:
            rate = step_size / memory[0]
            add_row(rows, t, rate * (rho[t] * first - dot_row(rows, t, along)), along)
            add_row(rows, t, rate * (rho[t] * second - dot_row(rows, t, square)), square)
        lowest = floor * memory[1]
        below = max(dot_row(rows, t, square), lowest)
        out[t] = dot_row(rows, t, along) / below if below > 0.0 else 0.0


@njit(cache=True, nogil=True, allocates=False, fastmath=FASTMATH)
def moments_of_rows(rows, following, discount, along, square) -> None:
    """`dphi . phi` and `|dphi|^2` of each row."""
    for t in range(len(along)):
        along[t], square[t] = dphi_moments(rows, following, t, discount[t])

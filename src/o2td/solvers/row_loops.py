"""Compiled row loops of the batch solvers. They are linear in d; BLAS does the cubic work.

Features arrive as a matrix and an index (row t is `matrix[index[t]]`), so dense batches and tables
share each loop. Rows of the successor with discount 0 are never read: they may hold anything.
"""

from __future__ import annotations

import numpy as np

from o2td.arrays import Bools, Floats, Ints
from o2td.compiled import njit
from o2td.kernels.emphatic import decay_of, emphasis

_OPTIONS = {"cache": True, "nogil": True, "fastmath": {"reassoc", "contract"}}


@njit(**_OPTIONS)
def combine(
    matrix: Floats,
    index: Ints,
    later: Floats,
    later_index: Ints,
    weight: Floats,
    own: Floats,
    step: Floats,
    out: Floats,
) -> None:
    """`out_t = weight_t (own_t phi_t - step_t phi'_t)` into the first d columns."""
    d = matrix.shape[1]
    for t in range(len(index)):
        a, g = weight[t] * own[t], weight[t] * step[t]
        row = out[t]
        if a == 0.0:
            row[:d] = 0.0
        else:
            phi = matrix[index[t]]
            for j in range(d):
                row[j] = a * phi[j]
        if g != 0.0:
            ahead = later[later_index[t]]
            for j in range(d):
                row[j] -= g * ahead[j]


@njit(**_OPTIONS)
def aggregate(
    matrix: Floats,
    index: Ints,
    later: Floats,
    later_index: Ints,
    where: Ints,
    weight: Floats,
    step: Floats,
    out: Floats,
) -> None:
    """`out[where_t] += weight_t (phi_t - step_t phi'_t)`."""
    d = matrix.shape[1]
    for t in range(len(index)):
        a, g = weight[t], weight[t] * step[t]
        if a == 0.0:
            continue
        row, phi = out[where[t]], matrix[index[t]]
        for j in range(d):
            row[j] += a * phi[j]
        if g != 0.0:
            ahead = later[later_index[t]]
            for j in range(d):
                row[j] -= g * ahead[j]


@njit(**_OPTIONS)
def traces(
    matrix: Floats,
    index: Ints,
    rho: Floats,
    discount: Floats,
    start: Bools,
    interest: Floats,
    trace: float,
    decay: float,
    emphatic: bool,
    carry: Floats,
    slope: Floats,
    scalars: Floats,
    out: Floats,
) -> None:
    """Rows `z_t`, `dz_t/dc` (scalar) and, if emphatic, `dz_t/df` of the traces, side by side.

    `z_t = rho_t (c_t + M_t phi_t)` with the carried `c_{t+1} = lambda gamma_{t+1} z_t`, and
    `F_t = i_t + f_t`, `f_{t+1} = rho_t gamma_{t+1} F_t` (`decay` for gamma where it is not
    negative). `carry`, `slope`, `scalars = [dc/dc_0, f, df/df_0]` go in and out.
    """
    d = matrix.shape[1]
    through, follow, grow = scalars[0], scalars[1], scalars[2]
    for t in range(len(index)):
        if start[t]:
            carry[:] = 0.0
            slope[:] = 0.0
            through = follow = grow = 0.0
        phi, row = matrix[index[t]], out[t]
        followed = weight = 1.0
        if emphatic:
            followed, weight = emphasis(interest[t], trace, follow)
        keep = trace * discount[t]
        for j in range(d):
            z = rho[t] * (carry[j] + weight * phi[j])
            row[j] = z
            carry[j] = keep * z
        row[d] = rho[t] * through
        through = keep * row[d]
        if emphatic:
            gain = (1.0 - trace) * grow
            for j in range(d):
                z = rho[t] * (slope[j] + gain * phi[j])
                row[d + 1 + j] = z
                slope[j] = keep * z
            factor = rho[t] * decay_of(discount[t], decay)
            follow, grow = factor * followed, factor * grow
        # Far below the last digit of anything it is added to; subnormal numbers are slow.
        if abs(through) < 1e-290:
            through = 0.0
        if abs(grow) < 1e-290:
            grow = 0.0
    scalars[0], scalars[1], scalars[2] = through, follow, grow


@njit(**_OPTIONS)
def directions(
    matrix: Floats,
    index: Ints,
    rho: Floats,
    discount: Floats,
    start: Bools,
    trace: float,
    clip: float,
    carry: Floats,
    through: Floats,
    out: Floats,
    noise: Floats,
) -> None:
    """`rho_t e_t` and `(rho_t - 1) e_t`, each followed by its slope in the incoming trace.

    `e_{t+1} = lambda gamma_{t+1} min(rho_t, clip) e_t + phi_{t+1}`. The carried `c = e_t - phi_t` and
    its slope `through[0]` go in and out. If `noise` has no rows, it is not computed.
    """
    d = matrix.shape[1]
    slope, noisy = through[0], len(noise) > 0
    for t in range(len(index)):
        if start[t]:
            carry[:] = 0.0
            slope = 0.0
        phi, row, a = matrix[index[t]], out[t], rho[t]
        keep = trace * discount[t] * min(a, clip)
        if noisy:
            other = noise[t]
            for j in range(d):
                e = carry[j] + phi[j]
                row[j] = a * e
                other[j] = (a - 1.0) * e
                carry[j] = keep * e
            other[d] = (a - 1.0) * slope
        else:
            for j in range(d):
                e = carry[j] + phi[j]
                row[j] = a * e
                carry[j] = keep * e
        row[d] = a * slope
        slope = keep * slope
        if abs(slope) < 1e-290:
            slope = 0.0
    through[0] = slope


@njit(**_OPTIONS)
def directions_by_state(
    table: Floats,
    index: Ints,
    later_index: Ints,
    rho: Floats,
    discount: Floats,
    start: Bools,
    reward: Floats,
    trace: float,
    clip: float,
    carry: Floats,
    through: Floats,
    system: Floats,
    noise: Floats,
) -> None:
    """The sums of one direction by group and state, rows cycling through the groups.

    With `x = (e_t, slope)` as in `directions`, `system[group]` gains `rho x` at s_t, `-rho gamma x` at
    s'_t and `rho r x` in its last row; `noise[group]`, if it has any groups, `(rho - 1) x` at s_t.
    """
    groups, p, group = system.shape[0], system.shape[2], 0
    d, noisy = p - 1, len(noise) > 0
    x, keep = np.empty(p), 1.0
    x[:d], x[d] = carry, through[0]
    for t in range(len(index)):
        if start[t]:
            keep = 0.0
        phi, a = table[index[t]], rho[t]
        for j in range(d):
            x[j] = keep * x[j] + phi[j]
        x[d] *= keep
        if abs(x[d]) < 1e-290:
            x[d] = 0.0
        keep = trace * discount[t] * min(a, clip)
        if a != 0.0:
            here, earned, b = system[group, index[t]], system[group, -1], a * reward[t]
            for j in range(p):
                here[j] += a * x[j]
                earned[j] += b * x[j]
            b = a * discount[t]
            if b != 0.0:
                there = system[group, later_index[t]]
                for j in range(p):
                    there[j] -= b * x[j]
        if noisy and a != 1.0:
            off, here = a - 1.0, noise[group, index[t]]
            for j in range(p):
                here[j] += off * x[j]
        group = group + 1 if group + 1 < groups else 0
    carry[:], through[0] = keep * x[:d], keep * x[d]


@njit(**_OPTIONS)
def scatter(rows: Floats, index: Ints, later_index: Ints, discount: Floats, out: Floats) -> None:
    """`out[s_t] += z_t` and `out[s'_t] -= gamma_t z_t`: then `Z^T (Phi - gamma Phi') = out^T table`."""
    p = rows.shape[1]
    for t in range(len(index)):
        row, here, g = rows[t], out[index[t]], discount[t]
        for j in range(p):
            here[j] += row[j]
        if g != 0.0:
            there = out[later_index[t]]
            for j in range(p):
                there[j] -= g * row[j]


@njit(**_OPTIONS)
def returns(
    reward: Floats,
    discount: Floats,
    rho: Floats,
    start: Bools,
    whole: bool,
    y: Floats,
    w: Floats,
    kind: Ints,
) -> None:
    """Importance-weighted returns backwards: `y[t] = (1, Y, W)` coefficients, and so `w[t]`.

    `(Y, W)` belong to the first row after the batch. Per decision: `y = rho (r + gamma y')`,
    `w = rho ((1 - gamma) + gamma w')`; whole trajectories: `w = rho w'`, `y = rho (r w' + gamma y')`.
    `kind[t]`: 0 the trajectory terminates, 1 it is cut by a start, 2 it leaves the batch unfinished.
    """
    n = len(reward)
    y1, yy, yw = 0.0, 1.0, 0.0
    w1, ww = 0.0, 1.0
    state = 2
    for t in range(n - 1, -1, -1):
        if discount[t] == 0.0:
            y1, yy, yw, w1, ww, state = 0.0, 0.0, 0.0, 1.0, 0.0, 0
        elif t + 1 < n and start[t + 1]:
            y1, yy, yw, w1, ww, state = 0.0, 0.0, 0.0, 1.0, 0.0, 1
        r, g, p = reward[t], discount[t], rho[t]
        if whole:
            y1, yy, yw = p * (r * w1 + g * y1), p * g * yy, p * (r * ww + g * yw)
            w1, ww = p * w1, p * ww
        else:
            y1, yy, yw = p * (r + g * y1), p * g * yy, p * g * yw
            w1, ww = p * ((1.0 - g) + g * w1), p * g * ww
        y[t, 0], y[t, 1], y[t, 2] = y1, yy, yw
        w[t, 0], w[t, 1] = w1, ww
        kind[t] = state


@njit(**_OPTIONS)
def gather_csr(data: Floats, indices: Ints, indptr: Ints, index: Ints, out: Floats) -> None:
    """Rows `index` of a CSR triple into a dense block."""
    out[:] = 0.0
    for t in range(len(index)):
        for k in range(indptr[index[t]], indptr[index[t] + 1]):
            out[t, indices[k]] = data[k]

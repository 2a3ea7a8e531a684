"""Row loops of the batch solvers, as plain functions, against their formulas with whole vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from o2td.solvers import row_loops

Array = np.ndarray[Any, Any]
N, D, S = 23, 3, 5


def plain(name: str) -> Any:
    """The loop as it is written: compiled code would be made for these arrays alone."""
    loop = getattr(row_loops, name)
    return getattr(loop, "py_func", loop)


class Rows:
    """Rows of a table: some end, some are cut, some have ratio 0 or 1; what is not read is NaN."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.table = np.vstack([rng.normal(size=(S, D)), np.full(D, np.nan)])
        self.state, self.after = rng.integers(S, size=(2, N))
        self.discount = np.where(np.arange(N) % 6 == 4, 0.0, 0.5 + 0.5 * rng.random(N))
        self.after[self.discount == 0.0] = S
        self.rho = rng.choice([0.0, 1.0, 0.4, 2.5], size=N)
        self.start = np.isin(np.arange(N), (9, 11))
        self.reward, self.interest = rng.normal(size=N), rng.random(N) + 0.5
        self.phi, self.later = self.table[self.state], np.nan_to_num(self.table[self.after])
        self.rng = rng


def close(found: Array, expected: Array) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def test_rows_are_combined() -> None:
    rows = Rows()
    weight, own, step = rows.rng.choice([0.0, 0.7, -2.0], size=(3, N))
    state = np.where(weight * own == 0.0, S, rows.state)  # not read
    after = np.where(weight * step == 0.0, S, np.minimum(rows.after, S - 1))
    out = np.full((N, D + 1), 9.0)
    plain("combine")(rows.table, state, rows.table, after, weight, own, step, out)
    phi, later = (np.nan_to_num(rows.table[x]) for x in (state, after))
    close(out[:, :D], weight[:, None] * (own[:, None] * phi - step[:, None] * later))
    close(out[:, D], np.full(N, 9.0))
    where, sums = rows.rng.integers(4, size=N), np.ones((4, D))
    state = np.where(weight == 0.0, S, rows.state)
    given = (rows.table, state, rows.table, after, where, weight, step)
    plain("aggregate")(*given, sums)
    expected = np.ones((4, D))
    for t in range(N):
        gain = np.nan_to_num(rows.table[state[t]]) - step[t] * later[t]
        expected[where[t]] += weight[t] * gain
    close(sums, expected)


@pytest.mark.parametrize("decay", [-1.0, 0.0, 0.4])
@pytest.mark.parametrize("emphatic", [False, True])
@pytest.mark.parametrize("trace", [0.0, 0.3, 1.0])
def test_traces_and_how_they_depend_on_what_came_before(
    trace: float, emphatic: bool, decay: float
) -> None:
    rows = Rows(1)
    rows.rho[:4] = 1.3
    c, slope, scalars = rows.rng.normal(size=D), rows.rng.normal(size=D), np.array([0.7, 0.3, 0.2])
    own = c.copy(), slope.copy(), scalars.copy()
    out = np.zeros((N, 2 * D + 1 if emphatic else D + 1))
    given = (rows.table, rows.state, rows.rho, rows.discount, rows.start, rows.interest)
    plain("traces")(*given, trace, decay, emphatic, *own, out)
    through, f, grow = scalars
    for t in range(N):
        phi, rho, g, i = rows.phi[t], rows.rho[t], rows.discount[t], rows.interest[t]
        if rows.start[t]:
            c, slope, through, f, grow = np.zeros(D), np.zeros(D), 0.0, 0.0, 0.0
        M = trace * i + (1.0 - trace) * (i + f) if emphatic else 1.0
        z, dz = rho * (c + M * phi), rho * through
        close(out[t, : D + 1], np.append(z, dz))
        c, through = trace * g * z, trace * g * dz
        if emphatic:
            df = rho * (slope + (1.0 - trace) * grow * phi)
            close(out[t, D + 1 :], df)
            factor = rho * (decay if decay >= 0.0 and g > 0.0 else g)
            slope, f, grow = trace * g * df, factor * (i + f), factor * grow
    close(own[0], c)
    close(own[2], np.array([through, f, grow]))
    if emphatic:
        close(own[1], slope)


@pytest.mark.parametrize("clip", [np.inf, 1.0])
@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("trace", [0.0, 0.8])
def test_directions_by_row_and_by_state(trace: float, noisy: bool, clip: float) -> None:
    rows, groups = Rows(2), 4
    rows.rho[:3] = 1.5
    first, slope = rows.rng.normal(size=D), 0.6
    out, noise = np.zeros((N, D + 1)), np.zeros((N if noisy else 0, D + 1))
    carry, through = first.copy(), np.array([slope])
    vectors = (rows.rho, rows.discount, rows.start)
    given = (rows.table, rows.state, *vectors, trace, clip, carry, through)
    plain("directions")(*given, out, noise)
    system, drawn = np.zeros((groups, S + 1, D + 1)), np.zeros((groups if noisy else 0, S, D + 1))
    carried, share = first.copy(), np.array([slope])
    ends = (rows.table, rows.state, rows.after)
    plain("directions_by_state")(
        *ends, *vectors, rows.reward, trace, clip, carried, share, system, drawn
    )
    c, sums, off = first, np.zeros_like(system), np.zeros((groups, S, D + 1))
    for t in range(N):
        phi, rho, g, s, k = rows.phi[t], rows.rho[t], rows.discount[t], rows.state[t], t % groups
        if rows.start[t]:
            c, slope = np.zeros(D), 0.0
        x = np.append(c + phi, slope)
        close(out[t], rho * x)
        if noisy:
            close(noise[t], (rho - 1.0) * x)
        sums[k, s] += rho * x
        sums[k, S] += rho * rows.reward[t] * x
        off[k, s] += (rho - 1.0) * x
        if g:
            sums[k, rows.after[t]] -= rho * g * x
        keep = trace * g * min(rho, clip)
        c, slope = keep * x[:D], keep * slope
    for vector, share_of in ((carry, through), (carried, share)):
        close(np.append(vector, share_of), np.append(c, slope))
    close(system, sums)
    if noisy:
        close(drawn, off)


def test_rows_are_scattered_to_their_states_and_successors() -> None:
    rows = Rows(3)
    z, out = rows.rng.normal(size=(N, 2)), np.ones((S, 2))
    plain("scatter")(z, rows.state, rows.after, rows.discount, out)
    expected = np.ones((S, 2))
    np.add.at(expected, rows.state, z)
    some = rows.discount > 0.0
    np.subtract.at(expected, rows.after[some], (rows.discount[:, None] * z)[some])
    close(out, expected)


@pytest.mark.parametrize("whole", [False, True])
def test_returns_are_worked_out_backwards(whole: bool) -> None:
    rows = Rows(4)
    rows.start[0] = True
    y, w, kind = np.zeros((N, 3)), np.zeros((N, 2)), np.full(N, -1)
    given = (rows.reward, rows.discount, rows.rho, rows.start)
    plain("returns")(*given, whole, y, w, kind)
    unknown = np.array([0.7, -1.3])
    for t in range(N):
        ends = [k for k in range(t, N) if rows.discount[k] == 0.0]
        cuts = [k for k in range(t, N - 1) if rows.start[k + 1]]
        end, cut = min(ends, default=N), min(cuts, default=N)
        assert kind[t] == (0 if end < N and end <= cut else 1 if cut < N else 2)
        Y, W = unknown if min(end, cut) == N else (0.0, 1.0)
        for k in range(min(end, cut, N - 1), t - 1, -1):
            r, g, p = rows.reward[k], rows.discount[k], rows.rho[k]
            if whole:
                Y, W = p * (r * W + g * Y), p * W
            else:
                Y, W = p * (r + g * Y), p * (1.0 - g + g * W)
        assert y[t] @ [1.0, *unknown] == pytest.approx(Y, rel=1e-10, abs=1e-12)
        assert w[t] @ [1.0, unknown[1]] == pytest.approx(W, rel=1e-10, abs=1e-12)


def test_sparse_rows_are_gathered() -> None:
    rng = np.random.default_rng(5)
    table = np.where(rng.random((6, 4)) < 0.4, rng.normal(size=(6, 4)), 0.0)
    held, index, out = csr_array(table), rng.integers(6, size=9), np.full((9, 4), np.nan)
    plain("gather_csr")(held.data, held.indices, held.indptr, index, out)
    np.testing.assert_array_equal(out, table[index])

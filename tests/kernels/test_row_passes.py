"""Passes over rows, each against its formula in NumPy, on dense and CSR rows and on tables."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.kernels import row_passes
from tests.learners.conftest import LAYOUTS, random_rows

N, D, STATES = 24, 4, 6
TABLE, BATCH = random_rows(N, d=D, states=STATES, seed=9, double=False)
GAMMA, RHO = BATCH["discount"], BATCH["target_prob"] / BATCH["behavior_prob"]
PHI, AFTER = TABLE[BATCH["state"]], TABLE[BATCH["next_state"]]
DPHI = PHI - GAMMA[:, None] * AFTER
ALONG, SQUARE = (DPHI * PHI).sum(axis=1), (DPHI * DPHI).sum(axis=1)


@pytest.fixture(params=LAYOUTS)
def rows(request):
    batch = LAYOUTS[request.param](TABLE, BATCH)
    return batch.rows("phi"), batch.rows("next_phi")


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_norms_and_moments(rows):
    out, along, square = np.empty(N), np.empty(N), np.empty(N)
    row_passes.row_norms(rows[0], out)
    close(out, (PHI * PHI).sum(axis=1))
    row_passes.moments_of_rows(*rows, GAMMA, along, square)
    close(along, ALONG)
    close(square, SQUARE)


def test_omegas(rows):
    out = np.arange(1.0, N + 1.0)
    row_passes.omegas(*rows, GAMMA, out)
    ratio = np.divide(ALONG, SQUARE, out=np.zeros(N), where=SQUARE > 0.0)
    close(out, np.arange(1.0, N + 1.0) * ratio)


@pytest.mark.parametrize("beta", [-1.0, 0.0, 0.3])
def test_follow_on(beta):
    interest, start, trace = BATCH["interest"], BATCH["start"], 0.4
    out, memory = np.empty(N), np.zeros(2)
    for low, high in ((0, 10), (10, N)):  # what is carried goes on
        part = slice(low, high)
        given = (RHO[part], GAMMA[part], start[part], interest[part])
        row_passes.follow_on(*given, beta, trace, memory, out[part])
    followed = 0.0
    for t in range(N):
        arrives = t > 0 and not start[t] and GAMMA[t - 1] != 0.0
        decay = (GAMMA[t - 1] if beta < 0.0 else beta) * RHO[t - 1] if arrives else 0.0
        followed = interest[t] + decay * followed
        assert out[t] == pytest.approx(trace * interest[t] + (1.0 - trace) * followed, rel=1e-12)
    close(memory, [RHO[-1] * followed, GAMMA[-1]])


def test_omega_and_moments_by_state(rows):
    state = BATCH["state"]
    total, count, out = np.zeros((STATES, D)), np.zeros(STATES), np.empty(N)
    row_passes.omega_by_state(*rows, state, GAMMA, RHO, total, count, out)
    first, second, ratio = np.zeros(STATES), np.zeros(STATES), np.empty(N)
    row_passes.moments_by_state(*rows, state, GAMMA, RHO, first, second, ratio)
    for t in range(N):
        seen = [k for k in range(t + 1) if state[k] == state[t]]
        mean = np.mean([RHO[k] * DPHI[k] for k in seen], axis=0)
        size = mean @ mean
        assert out[t] == pytest.approx(mean @ PHI[t] / size if size else 0.0, rel=1e-10)
        a, b = (sum(RHO[k] * x[k] for k in seen) for x in (ALONG, SQUARE))
        assert ratio[t] == pytest.approx(a / b if b else 0.0, rel=1e-10)
    close(count, np.bincount(state, minlength=STATES))
    close(total, [(RHO[:, None] * DPHI)[state == s].sum(axis=0) for s in range(STATES)])


def test_moments_by_regression(rows):
    memory, along, square, out = np.zeros(3), np.zeros(D), np.zeros(D), np.empty(N)
    row_passes.moments_by_regression(*rows, GAMMA, RHO, 0.1, 0.2, memory, along, square, out)
    x, y, largest, seen = np.zeros(D), np.zeros(D), 0.0, []
    for t in range(N):
        phi = PHI[t]
        largest = max(largest, phi @ phi)
        seen.append(RHO[t] * SQUARE[t])
        if largest:
            x = x + 0.1 / largest * (RHO[t] * ALONG[t] - phi @ x) * phi
            y = y + 0.1 / largest * (RHO[t] * SQUARE[t] - phi @ y) * phi
        below = max(phi @ y, 0.2 * np.mean(seen))
        assert out[t] == pytest.approx(phi @ x / below if below else 0.0, rel=1e-9, abs=1e-12)
    close(memory, [largest, np.mean(seen), N])

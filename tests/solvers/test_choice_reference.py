"""All figures of `LSTD(trace="auto")` against its equations, in plain loops over rows and groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from o2td import LSTD, Transitions

Array = np.ndarray[Any, Any]
UNCLIPPED = np.inf
KINDS = [  # trace, clip, adjusted, shrinkage
    *((trace, clip, False, 0.0) for trace, clip in ((0.0, UNCLIPPED), (0.5, UNCLIPPED), (0.9, 1.0))),
    *((trace, UNCLIPPED, False, 0.0) for trace in (0.9, 1.0)),
    *((trace, clip, True, 0.0) for trace, clip in ((0.0, UNCLIPPED), (0.5, UNCLIPPED), (0.9, 1.0))),
    *((0.9, clip, False, share) for clip in (1.0, UNCLIPPED) for share in (0.03, 0.3)),
]  # fmt: skip


def sums(batch: Transitions, trace: float, clip: float) -> tuple[Array, Array]:
    """`rho e [Delta, r]^T` and `(rho - 1) e phi^T` of each of 17 groups."""
    d = batch.d
    phi, later = np.asarray(batch.phi), np.asarray(batch.next_phi)
    system, noise, e = np.zeros((17, d, d + 1)), np.zeros((17, d, d)), np.zeros(d)
    for t in range(batch.n):
        e = phi[t] if batch.start[t] else e + phi[t]
        g, rho = batch.discount[t], batch.rho[t]
        after = g * later[t] if g else np.zeros(d)
        system[t % 17] += rho * np.outer(e, np.append(phi[t] - after, batch.reward[t]))
        noise[t % 17] += (rho - 1.0) * np.outer(e, phi[t])
        e = trace * g * min(rho, clip) * e
    return system, noise


def regression(batch: Transitions, rank: int) -> tuple[Array, float]:
    """Of `rho [Delta, r]` on `(rho - 1) phi`, shrunk, and the effective rows that it rests on."""
    n, d = batch.n, batch.d
    phi, later = np.asarray(batch.phi), np.asarray(batch.next_phi)
    off = batch.rho - 1.0
    effective = np.sum(off**2) ** 2 / np.sum(off**4) if off.any() else np.inf
    gram, right = np.zeros((d, d)), np.zeros((d, d + 1))
    size = np.sqrt(np.mean(phi**2, axis=0))
    for t in range(n):
        g = batch.discount[t]
        after = g * later[t] if g else np.zeros(d)
        row = batch.rho[t] * np.append(phi[t] - after, batch.reward[t])
        gram += off[t] ** 2 * np.outer(phi[t], phi[t]) / n
        right += off[t] * np.outer(phi[t], row) / n
    C = phi.T @ phi / n + 1e-9 * np.diag(size**2)
    gram += (3.0 * rank / effective * np.sum(off**2) / n + 1e-12) * C
    return np.linalg.solve(gram, right), effective


def bias(place: int, apart: Array, explained: Array) -> float:
    """The largest distance from an answer that reveals an error, beyond what sampling explains."""
    trace, clip, adjusted, shrinkage = KINDS[place]
    worst = 0.0
    for other, (longer, bound, also, share) in enumerate(KINDS):
        if other == place or share > shrinkage:
            continue
        same = (longer, bound, also) == (trace, clip, adjusted)
        longer_one = longer > trace or (clip < UNCLIPPED and longer >= trace)
        if not ((shrinkage and not share) or same or (bound == UNCLIPPED and longer_one)):
            continue
        part = max(apart[place, other] - explained[place, other], 0.0)
        if not shrinkage and other in (3, 4):  # up to what the next shorter trace shows
            before = 1 if other == 3 else 3
            part = min(part, (4.0 if trace == 0.0 else 1.0) * apart[0, before])
        worst = max(worst, part)
    return float(np.sqrt(worst))


def figures(batch: Transitions, ridge: float = 0.0) -> tuple[Array, Array, Array, float]:
    """Each direction's answer, bias and deviation, and the effective rows per feature."""
    n, d = batch.n, batch.d
    phi = np.asarray(batch.phi)
    C = phi.T @ phi / n
    rank = int(np.linalg.matrix_rank(C))
    known, effective = regression(batch, rank)
    u = np.linalg.solve(C + 1e-9 * np.diag(np.diag(C)), phi.mean(axis=0))
    answers, parts = np.zeros((len(KINDS), d)), np.zeros((len(KINDS), 17, d))
    for k, (trace, clip, adjusted, share) in enumerate(KINDS):
        system, noise = sums(batch, trace, clip)
        if adjusted:
            weighted = system.sum(axis=0).any(axis=1)[:, None]
            system = system - weighted * (noise @ known)
        A = (system.sum(axis=0)[:, :-1] + ridge * np.eye(d)) / n
        size = np.diag(C)
        A += 1e-9 * (np.abs(np.sum(np.diag(A) / size)) / d + 1e-9) * np.diag(size)
        b = system.sum(axis=0)[:, -1] / n
        level, slope = u * (u @ b) / (u @ A @ u), u @ A @ u
        inverse = np.linalg.inv(A + share * C)
        answers[k] = inverse @ (b + share * C @ level)
        for g in range(17):
            own = system[g] / n
            left, moved = (
                own[:, -1] - own[:, :-1] @ theta - ridge / n / 17 * theta
                for theta in (answers[k], level)
            )
            left = left - share * C @ (answers[k] - level) / 17
            parts[k, g] = inverse @ (left + share * C @ u * (moved @ u) / slope)
    covariance = np.zeros((len(KINDS), len(KINDS)))
    for lag, weight in ((0, 1.0), (1, 2 / 3), (2, 1 / 3), (-1, 2 / 3), (-2, 1 / 3)):
        other = np.roll(parts, lag, axis=1)
        covariance += weight * np.einsum("igd,de,jge->ij", parts, C, other) * 17 / 16
    variance = np.maximum(np.diag(covariance), 0.0)
    doubt = np.array([3.0 if k in (3, 4, 10, 11) else 1.0 for k in range(len(KINDS))])
    apart, explained = np.zeros_like(covariance), np.zeros_like(covariance)
    for i in range(len(KINDS)):
        for j in range(len(KINDS)):
            step = answers[i] - answers[j]
            apart[i, j] = step @ C @ step
            noise_of = max(variance[i] + variance[j] - 2.0 * covariance[i, j], 0.0)
            share = 0.25 if KINDS[i][3] else 1.0
            explained[i, j] = noise_of * max(doubt[i], doubt[j]) * share
    found = [bias(k, apart, explained) for k in range(len(KINDS))]
    return answers, np.array(found), np.sqrt(doubt * variance), effective / rank


def stream(seed: int, n: int, d: int = 3, spread: float = 0.6, states: int = 12) -> Transitions:
    """Off-policy episodes over a few states, some cut off, some ended."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(states, d)) + 0.5
    state = np.cumsum(rng.choice([-1, 1, 2], size=n + 1)) % states
    ends = rng.random(n) < 0.08
    return Transitions.from_table(
        table,
        state[:-1],
        table[state[:-1], 0] + rng.normal(size=n),
        state[1:],
        np.where(ends, 0.0, 0.9),
        rho=np.maximum(1.0 + spread * rng.normal(size=n), 0.0),
        start=np.append(True, ends[:-1] | (rng.random(n - 1) < 0.02)),
    )


def dense(batch: Transitions) -> Transitions:
    given = {"rho": batch.rho, "start": batch.start}
    return Transitions(batch.phi, batch.reward, batch.next_phi, batch.discount, **given)


def check(batch: Transitions, ridge: float, given: Transitions | None = None) -> Any:
    answers, biases, deviations, enough = figures(batch, ridge)
    solver = LSTD(trace="auto", ridge=ridge).fit(batch if given is None else given)
    told: Any = solver.solution
    assert [tuple(one.direction) for one in told.candidates] == KINDS
    close = {"rtol": 1e-5, "atol": 1e-7 * deviations.max()}
    np.testing.assert_allclose([one.bias for one in told.candidates], biases, **close)
    np.testing.assert_allclose([one.deviation for one in told.candidates], deviations, **close)
    errors = np.sqrt(biases**2 + deviations**2)
    some = [k for k, kind in enumerate(KINDS) if enough >= 4.0 or not kind[2]]
    best = min(some, key=lambda k: float(errors[k]))
    assert tuple(told.direction) == KINDS[best]
    np.testing.assert_allclose(solver.theta, answers[best], rtol=1e-6)
    assert told.message == f"solved; {told.direction}, estimated error {errors[best]:.3g}"
    assert (told.status, told.rank, told.iterations, told.counts) == ("ok", batch.d, 0, {})
    assert told.residual < 1e-14
    return told


@pytest.mark.parametrize("ridge", [0.0, 2.0])
@pytest.mark.parametrize(
    ("seed", "n", "d", "spread"),
    [
        (1, 60, 3, 0.6),
        (7, 40, 5, 1.5),
        (14, 45, 6, 0.9),
        (3, 25, 5, 0.2),
        (4, 300, 3, 1.5),
        (5, 60, 3, 0.0),
    ],
)
def test_estimates_by_hand(seed: int, n: int, d: int, spread: float, ridge: float) -> None:
    """Directions of all kinds are chosen; table rows are kept, dense ones summed by group."""
    batch = stream(seed, n, d, spread)
    one, two = check(batch, ridge), check(batch, ridge, dense(batch))
    assert one.condition == pytest.approx(two.condition)


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_estimates_of_rows_with_few_entries(ridge: float) -> None:
    batch = stream(5, 260, 18, 0.4, states=18)
    table = np.diag(np.linspace(1.0, 2.0, 18))
    given = {"rho": batch.rho, "start": batch.start}
    ends = (batch.state, batch.next_state)
    phi, later = (table[np.asarray(x)] for x in ends)
    full = Transitions(phi, batch.reward, later, batch.discount, **given)
    few = Transitions(csr_array(phi), batch.reward, csr_array(later), batch.discount, **given)
    check(full, ridge, few)


@pytest.mark.parametrize("ratio", [0.0, 1e-9])
def test_estimates_where_a_feature_has_no_ratio_to_speak_of(ratio: float) -> None:
    """Without a trace it has no equation, and adjusting must not make one of rounding errors."""
    batch = stream(1, 90)
    table = np.column_stack([batch.table, np.arange(12) == 4])
    state = np.asarray(batch.state)
    given = {"rho": np.where(state == 4, ratio, batch.rho), "start": batch.start}
    ends = (batch.state, batch.next_state)
    rows = Transitions.from_table(table, ends[0], batch.reward, ends[1], batch.discount, **given)
    answers, biases, deviations, _ = figures(rows)
    assert (answers[0, 3] == 0.0) == (ratio == 0.0)
    for one in (rows, dense(rows)):
        told: Any = LSTD(trace="auto").fit(one).solution
        found = np.array([x[1:] for x in told.candidates]).T
        np.testing.assert_allclose(found, [biases, deviations], rtol=1e-5)


def test_a_feature_that_is_never_seen_changes_no_estimate() -> None:
    batch = stream(1, 60, 3, 0.6)
    wide = np.insert(batch.table, 1, 0.0, axis=1)
    ends = (batch.state, batch.next_state)
    given = {"rho": batch.rho, "start": batch.start}
    more = Transitions.from_table(wide, ends[0], batch.reward, ends[1], batch.discount, **given)
    one, two = (LSTD(trace="auto", ridge=0.3).fit(x) for x in (batch, more))
    np.testing.assert_allclose(two.theta, np.insert(one.theta, 1, 0.0), rtol=1e-9)
    told, other = one.solution, two.solution
    assert other.direction == told.direction
    estimates = [[x[1:] for x in y.candidates] for y in (told, other)]
    np.testing.assert_allclose(*estimates, rtol=1e-6, atol=1e-9)

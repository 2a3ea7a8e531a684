"""The paper's lemmas and remarks, measured: claims 1-7 and 16.

Closed forms are checked against an independent computation on random problems; expectations against
sampling, in standard errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from o2td import exact
from o2td.arrays import Floats
from o2td.domains import garnet
from o2td.experiments.studies import Measurement
from o2td.problem import Problem
from o2td.solvers import SOTD


def theory(first: int, last: int, seed: int) -> Iterator[Measurement]:
    """All measurements on garnets `first` to `last`, each with its own seed."""
    for k in range(first, last):
        problem = garnet(seed=(seed, k))
        yield from _lemmas(problem, k)
        yield from _norms(problem, k)
        yield from _stages(problem, k)
        yield from _bound(garnet(seed=(seed, k), on_policy=True), k)
        if k % 10 == 0:
            yield from _by_sampling(garnet(seed=(seed, k), discount=0.5, peak=0), k)


def _record(k: int, quantity: str, value: float, x: float = 0.0) -> Measurement:
    return Measurement("garnet", "", quantity, float(value), k, x)


def _off(one: Floats, other: Floats) -> float:
    return float(np.linalg.norm(one - other) / np.linalg.norm(other))


def _lemmas(problem: Problem, k: int) -> Iterator[Measurement]:
    """Lemma 1 for a random X, Lemma 2, and `Delta^T X* = C`."""
    rng = np.random.default_rng(k)
    Phi, V = np.asarray(problem.features), exact.value(problem)
    L = np.eye(problem.n_states) - problem.discounted_matrix(problem.target)
    X = rng.normal(size=Phi.shape)
    fixed = Phi @ exact.oblique_fixed_point(problem, X)
    yield _record(k, "lemma 1", _off(fixed, exact.oblique_projection(Phi, L.T @ X) @ V))
    best = exact.optimal_direction(problem)
    optimal = Phi @ exact.oblique_fixed_point(problem, best)
    root = np.sqrt(problem.visits)
    weighted = np.linalg.lstsq(root[:, None] * Phi, root * V, rcond=None)[0]
    yield _record(k, "lemma 2", _off(optimal, Phi @ weighted))
    C = Phi.T @ (problem.visits[:, None] * Phi)
    yield _record(k, "optimal direction", _off((L @ Phi).T @ best, C))


def _norms(problem: Problem, k: int) -> Iterator[Measurement]:
    """The minimisers of the Frobenius and of the trace norm, found numerically, against eq. sto4."""
    rng = np.random.default_rng(k)
    pair = int(rng.integers(len(problem.pairs.state)))
    phi = np.asarray(problem.features[problem.pairs.state[pair]])
    next_phi = np.asarray(problem.features[problem.pairs.next_state[pair]])
    dphi, rho = phi - problem.pairs.discount[pair] * next_phi, 0.5 + rng.random()
    printed = dphi @ phi / (rho * dphi @ dphi)

    def norm(omega: float, kind: Literal["fro", "nuc"]) -> float:
        return float(np.linalg.norm(np.outer(phi, omega * rho * dphi - phi), ord=kind))

    span = 10.0 * (1.0 + abs(printed))
    for kind in ("fro", "nuc"):
        found = minimize_scalar(
            norm, bounds=(-span, span), args=(kind,), method="bounded", options={"xatol": 1e-10}
        )
        yield _record(k, f"omega {kind}", abs(found.x - printed) / (1.0 + abs(printed)))


def _stages(problem: Problem, k: int) -> Iterator[Measurement]:
    """How many dimensions of SOTD's first stage are free, and how much another start changes."""
    batch = problem.sample(20 * problem.n_states, seed=(1, k))
    Phi = np.asarray(problem.features)
    L = np.eye(problem.n_states) - problem.discounted_matrix(problem.target)
    rank = int(np.linalg.matrix_rank(L @ Phi))
    yield _record(k, "states", problem.n_states)
    yield _record(k, "stage 1 free dimensions", problem.n_states - rank)
    zero = SOTD(start="zero").fit(batch).theta
    td = SOTD(start="td").fit(batch).theta
    yield _record(k, "stage 1 change of answer", _off(td, zero))
    solution = SOTD(start="td").fit(batch).solution
    yield _record(k, "stage 2 rank short of d", problem.d - solution.rank)
    few = SOTD(start="td").fit(problem.sample(max(1, problem.d // 2), seed=(1, k))).solution
    yield _record(k, "stage 2 rank short of d, few rows", problem.d - few.rank)


def _bound(problem: Problem, k: int) -> Iterator[Measurement]:
    """On-policy TD's error over that of the best, as a share of the bound 1 / sqrt(1 - gamma^2)."""
    gamma = float(problem.pairs.discount.max())
    X = problem.visits[:, None] * np.asarray(problem.features)
    theta = exact.oblique_fixed_point(problem, X)
    share = exact.suboptimality(problem, theta) * np.sqrt(1.0 - gamma**2)
    yield _record(k, "share of the bound", share)


def _by_sampling(problem: Problem, k: int) -> Iterator[Measurement]:
    """Proposition 1 and the follow-on trace by sampling, in standard errors."""
    n = 200_000
    batch = problem.sample(n, seed=(2, k))
    Phi = np.asarray(problem.features)
    L = np.eye(problem.n_states) - problem.discounted_matrix(problem.target)
    for power, quantity in ((1, "proposition 1"), (2, "proposition 1, ratio inside")):
        sample = batch.rho[:, None] ** power * (
            batch.phi - batch.discount[:, None] * batch.next_phi
        )
        scores = _scores(sample, np.asarray(batch.state), (L @ Phi))
        yield _record(k, quantity, float(np.sqrt(np.mean(scores**2))))
    from o2td.kernels.row_passes import follow_on

    followed = np.empty(n)
    ones, never = np.ones(n), np.zeros(n, dtype=np.bool_)
    follow_on(batch.rho, batch.discount, never, ones, -1.0, 0.0, np.zeros(2), followed)
    P = problem.discounted_matrix(problem.target)
    f = np.linalg.solve(np.eye(problem.n_states) - P.T, problem.visits)
    expected = (f / problem.visits)[:, None]
    scores = _scores(followed[1000:, None], np.asarray(batch.state)[1000:], expected, 20)
    yield _record(k, "follow-on", float(np.sqrt(np.mean(scores**2))))


def _scores(
    sample: Floats, state: npt.NDArray[np.int64], expected: Floats, stretches: int = 20
) -> Floats:
    """(mean by state - expected) / standard error, from the means of consecutive blocks."""
    sums, counts = [], []
    for part, where in zip(
        np.array_split(sample, stretches), np.array_split(state, stretches), strict=True
    ):
        total = np.zeros_like(expected)
        np.add.at(total, where, part)
        sums.append(total)
        counts.append(np.bincount(where, minlength=len(expected)))
    seen = np.min(counts, axis=0) > 0
    means = np.array([s[seen] / c[seen, None] for s, c in zip(sums, counts, strict=True)])
    error = means.std(axis=0, ddof=1) / np.sqrt(stretches)
    good = error > 0.0
    off = means.mean(axis=0) - expected[seen]
    return np.asarray(off[good] / error[good])

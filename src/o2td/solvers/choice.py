"""Which direction: the one with the least estimated error, bias and variance together.

Predictions are compared in the norm of `C = mean phi phi^T`, in coordinates in which C is one. The
groups' parts of `A^-1 (b - A theta)` tell how far sampling moves an answer: their squares are its
variance, and those of neighbouring groups, which hold neighbouring rows, what correlation from row to
row adds to it. The bias of a direction is how much further it lies from one with longer, unclipped
traces than sampling explains:

    bias^2_j = max_r (||theta_j - theta_r||^2 - variance of (theta_j - theta_r))_+

With infinitely many rows the longest trace is chosen, whose limit is the best approximation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from o2td.arrays import Floats
from o2td.linear_algebra import Solution, conclude, solve
from o2td.solvers.directions import ADJUSTED, DIRECTIONS, GROUPS, Direction, Directions

_BAND = 2  # neighbouring rows whose correlation counts
_SHRINK = 3.0  # of the regression on (rho - 1) phi, in features per effective row
_RANK = 1e-10  # eigenvalues of the scaled C below this share of the largest count as none
_FAINT = 1e-9  # added to A where a group or a feature says nothing


class Candidate(NamedTuple):
    """A direction with what it was estimated to do: root mean squares over the rows' predictions."""

    direction: Direction
    bias: float
    deviation: float

    @property
    def error(self) -> float:
        """Estimated root mean squared error."""
        return float(np.hypot(self.bias, self.deviation))


@dataclass(frozen=True, eq=False)
class ChosenSolution(Solution):
    """A solution of several that could have been: `direction` is the one chosen of `candidates`."""

    direction: Direction = DIRECTIONS[0]
    candidates: tuple[Candidate, ...] = ()


def choose(sums: Directions, ridge: float) -> ChosenSolution:
    """The answer of least estimated error, and what was estimated of all."""
    coordinates, basis = _whitened(sums.gram / sums.rows)
    if not coordinates.shape[1]:
        nothing = conclude(np.zeros(sums.d), "no data", 0, np.inf, 0.0)
        return ChosenSolution(**vars(nothing))
    totals, candidates = _estimates(sums, coordinates, ridge)
    best = min(range(len(candidates)), key=lambda k: candidates[k].error)
    total = totals[best] * sums.rows
    answer = solve(total[:, :-1], total[:, -1], rows=sums.rows)
    theta = coordinates @ answer.theta
    lost = sums.d - coordinates.shape[1]
    if lost:
        theta = basis @ (basis.T @ theta)
    status = (
        "minimum norm" if lost and answer.status in ("ok", "ill-conditioned") else answer.status
    )
    condition = np.inf if lost else answer.condition
    told = conclude(theta, status, answer.rank, condition, answer.residual)
    chosen = candidates[best]
    message = f"{told.message}; {chosen.direction}, estimated error {chosen.error:.3g}"
    fields = {**vars(told), "message": message, "direction": chosen.direction}
    return ChosenSolution(**fields, candidates=tuple(candidates))


def _whitened(C: Floats) -> tuple[Floats, Floats]:
    """`W` with `W^T C W = I` and orthonormal columns that span what C spans."""
    size = np.sqrt(np.diag(C))
    unit = np.where(size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)
    s, U = np.linalg.eigh(C * unit[:, None] * unit)
    kept = s > _RANK * max(s[-1], 0.0) if len(s) else s > 0.0
    span = np.linalg.qr(size[:, None] * U[:, kept])[0] if kept.any() else U[:, kept]
    return unit[:, None] * U[:, kept] / np.sqrt(s[kept]), span


def _estimates(sums: Directions, W: Floats, ridge: float) -> tuple[Floats, list[Candidate]]:
    """`[A, b]` of each direction in the coordinates W, and estimated bias and variance.

    All as means over rows.
    """
    n, d = sums.rows, sums.d

    def moved(part: Floats) -> Floats:
        return np.concatenate([W.T @ part[..., :d] @ W, W.T @ part[..., d:]], axis=-1) / n

    known = _regression(sums, W, moved)
    plain = sums.system[:, :, :-1]
    totals = moved(plain.sum(axis=0))
    totals[..., :-1] += ridge / n * (W.T @ W)
    noise = W.T @ sums.noise[:, :, :-1].sum(axis=0) @ W / n
    totals = np.concatenate([totals, totals[list(ADJUSTED)] - noise @ known])
    A, theta = _solved(totals)
    # What each group says against the answer: [A, b] (-theta, 1).
    back = np.column_stack([-theta @ W.T, np.ones(len(theta))])
    left = np.einsum("gkab,kb->kga", plain, back[: plain.shape[1]], optimize=True)
    again = np.einsum("gkab,kb->kga", plain[:, ADJUSTED], back[plain.shape[1] :], optimize=True)
    drawn = np.column_stack([-theta, np.ones(len(theta))])[plain.shape[1] :] @ known.T @ W.T
    again -= np.einsum("gkab,kb->kga", sums.noise[:, :, :-1], drawn, optimize=True)
    left = np.concatenate([left, again]) @ W / n
    left -= ridge / n / GROUPS * (theta @ (W.T @ W))[:, None]
    parts = np.asarray(np.linalg.solve(A, np.swapaxes(left, 1, 2)).swapaxes(1, 2))
    return totals, _candidates(theta, _covariance(parts))


def _regression(sums: Directions, W: Floats, moved: Callable[[Floats], Floats]) -> Floats:
    """Of `rho [Delta, r]` on `(rho - 1) phi`, shrunk where few rows have other ratios than one."""
    n, d, size = sums.rows, sums.d, W.shape[1]
    second, fourth = sums.moments
    effective = max(second**2 / fourth, 1.0) if fourth > 0.0 else 1.0
    shrink = _SHRINK * size / effective * second / n + 1e-12
    spread = W.T @ sums.spread[:, :d] @ W / n + shrink * np.eye(size)
    return np.linalg.solve(spread, moved(sums.spread[:, d:]))


def _solved(totals: Floats) -> tuple[Floats, Floats]:
    """Each A, made regular where features say nothing, and its theta."""
    A, size = totals[..., :-1], totals.shape[1]
    level = np.abs(np.trace(A, axis1=-2, axis2=-1)) / size + _FAINT
    A = A + _FAINT * level[:, None, None] * np.eye(size)
    return A, np.linalg.solve(A, totals[..., -1:])[..., 0]


def _candidates(theta: Floats, covariance: Floats) -> list[Candidate]:
    variance = np.maximum(np.diag(covariance), 0.0)
    apart = np.sum((theta[:, None] - theta) ** 2, axis=-1)
    explained = np.maximum(variance[:, None] + variance - 2.0 * covariance, 0.0)
    bias = np.where(_LONGER, np.maximum(apart - explained, 0.0), 0.0).max(axis=1)
    return [
        Candidate(direction, float(np.sqrt(b)), float(np.sqrt(v)))
        for direction, b, v in zip(DIRECTIONS, bias, variance, strict=True)
    ]


def _covariance(parts: Floats) -> Floats:
    """Inner products over groups, those of neighbouring groups with falling weights (Bartlett)."""
    flat = parts.reshape(len(parts), -1)
    total = flat @ flat.T
    for lag in range(1, _BAND + 1):
        later = np.roll(parts, -lag, axis=1).reshape(len(parts), -1)
        product = (1.0 - lag / (_BAND + 1)) * (flat @ later.T)
        total += product + product.T
    return np.asarray(total * GROUPS / (GROUPS - 1))


def _longer(one: Direction, other: Direction) -> bool:
    """Whether `other` can tell the bias of `one`."""
    if other.clip < np.inf:
        return False
    return other.trace > one.trace or (one.clip < np.inf and other.trace >= one.trace)


_LONGER = np.array([[_longer(one, other) for other in DIRECTIONS] for one in DIRECTIONS])

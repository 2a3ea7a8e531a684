"""Choose the direction with the smallest estimated error, combining bias and variance.

Predictions are compared in the norm of `C = mean phi phi^T`, in coordinates in which C is the
identity. The groups' parts of `A^-1 (b - A theta)` show how much sampling changes an answer: their
squares give its variance, and products of neighbouring groups, which hold neighbouring rows, add
the effect of correlation between rows. The bias of a direction is its distance from one with
longer, unclipped traces, beyond what sampling explains:

    bias^2_j = max_r (||theta_j - theta_r||^2 - variance of (theta_j - theta_r))_+

With infinitely many rows the longest trace is chosen, whose limit is the best approximation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from o2td.arrays import Floats
from o2td.linear_algebra import Solution, conclude, solve
from o2td.solvers.directions import ADJUSTED, DIRECTIONS, Direction, Directions

_BAND = 2  # neighbouring rows whose correlation counts
_SHRINK = 3.0  # shrinkage of the regression on (rho - 1) phi, in features per effective row
_ENOUGH = 4.0  # effective rows per feature from which that regression is trusted
_RANK = 1e-10  # eigenvalues of the scaled C below this fraction of the largest count as zero
_FAINT = 1e-9  # added to A where a group or a feature carries no information


class Candidate(NamedTuple):
    """A direction with its estimated errors: root mean squares over the rows' predictions."""

    direction: Direction
    bias: float
    deviation: float

    @property
    def error(self) -> float:
        """Estimated root mean squared error."""
        return float(np.hypot(self.bias, self.deviation))


@dataclass(frozen=True, eq=False)
class ChosenSolution(Solution):
    """A solution chosen from several: `direction` is the one picked from `candidates`."""

    direction: Direction = DIRECTIONS[0]
    candidates: tuple[Candidate, ...] = ()


def choose(sums: Directions, ridge: float) -> ChosenSolution:
    """The answer with the smallest estimated error, and the estimates for all candidates."""
    W = _whitened(sums.gram / sums.rows)
    if not W.shape[1]:
        nothing = conclude(np.zeros(sums.d), "no data", 0, np.inf, 0.0)
        return ChosenSolution(**vars(nothing))
    systems = _systems(sums, W)
    candidates = _estimates(sums, systems, W, ridge)
    enough = _effective(sums) >= _ENOUGH * W.shape[1]
    some = [k for k, x in enumerate(candidates) if enough or not x.direction.adjusted]
    best = min(some, key=lambda k: candidates[k].error)
    told = solve(systems.totals[best, :, :-1], systems.totals[best, :, -1], ridge, rows=sums.rows)
    chosen = candidates[best]
    message = f"{told.message}; {chosen.direction}, estimated error {chosen.error:.3g}"
    fields = {**vars(told), "message": message, "direction": chosen.direction}
    return ChosenSolution(**fields, candidates=tuple(candidates))


def _whitened(C: Floats) -> Floats:
    """`W` with `W^T C W = I`."""
    size = np.sqrt(np.diag(C))
    unit = np.where(size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)
    s, U = np.linalg.eigh(C * unit[:, None] * unit)
    kept = s > _RANK * max(s[-1], 0.0) if len(s) else s > 0.0
    return np.asarray(unit[:, None] * U[:, kept] / np.sqrt(s[kept]))


class _Systems(NamedTuple):
    """`[A, b]` of each direction (sums over rows), and the regression that adjusts the last few."""

    totals: Floats
    known: Floats


def _systems(sums: Directions, W: Floats) -> _Systems:
    """The regression is of `rho [Delta, r]` on `(rho - 1) phi`, shrunk if it rests on few rows."""
    n, d, size = sums.rows, sums.d, W.shape[1]
    shrink = _SHRINK * size / _effective(sums) * sums.moments[0] / n + 1e-12
    spread = W.T @ sums.spread[:, :d] @ W / n + shrink * np.eye(size)
    known = W @ np.linalg.solve(spread, W.T @ sums.spread[:, d:] / n)
    plain, drawn = sums.totals()
    return _Systems(np.concatenate([plain, plain[list(ADJUSTED)] - drawn @ known]), known)


def _estimates(sums: Directions, systems: _Systems, W: Floats, ridge: float) -> list[Candidate]:
    """Estimated bias and variance of each direction, in the coordinates W and as means over rows."""
    n, d, whole = sums.rows, sums.d, systems.totals
    moved = W.T @ np.concatenate([whole[..., :d] @ W, whole[..., d:]], axis=-1) / n
    moved[..., :-1] += ridge / n * (W.T @ W)
    solving = [lu_factor(A, check_finite=False) for A in _regular(moved)]
    theta = np.array([lu_solve(x, y[:, -1]) for x, y in zip(solving, moved, strict=True)])
    # Residual of each group at the answer: [A, b] (-theta, 1).
    back, first = np.column_stack([-theta @ W.T, np.ones(len(theta))]), len(whole) - len(ADJUSTED)
    left, again = sums.against(range(first), back[:first]), sums.against(ADJUSTED, back[first:])
    again -= sums.noise_against(back[first:] @ systems.known.T)
    left = np.concatenate([left, again]) @ W / n
    left -= ridge / n / left.shape[1] * (theta @ (W.T @ W))[:, None]
    parts = np.array([lu_solve(x, group.T).T for x, group in zip(solving, left, strict=True)])
    return _candidates(theta, _covariance(parts))


def _effective(sums: Directions) -> float:
    """Effective number of rows whose ratio differs from one."""
    second, fourth = sums.moments
    return max(float(second**2 / fourth), 1.0) if fourth > 0.0 else 1.0


def _regular(totals: Floats) -> Floats:
    """Each A, regularised where features carry no information."""
    A, size = totals[..., :-1], totals.shape[1]
    level = np.abs(np.trace(A, axis1=-2, axis2=-1)) / size + _FAINT
    return np.asarray(A + _FAINT * level[:, None, None] * np.eye(size))


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
    """Inner products over groups, with decreasing (Bartlett) weights for neighbouring groups."""
    flat = parts.reshape(len(parts), -1)
    total = flat @ flat.T
    for lag in range(1, _BAND + 1):
        later = np.roll(parts, -lag, axis=1).reshape(len(parts), -1)
        product = (1.0 - lag / (_BAND + 1)) * (flat @ later.T)
        total += product + product.T
    return np.asarray(total * parts.shape[1] / (parts.shape[1] - 1))


def _longer(one: Direction, other: Direction) -> bool:
    """Whether `other` can reveal the bias of `one`."""
    if other.clip < np.inf:
        return False
    return other.trace > one.trace or (one.clip < np.inf and other.trace >= one.trace)


_LONGER = np.array([[_longer(one, other) for other in DIRECTIONS] for one in DIRECTIONS])

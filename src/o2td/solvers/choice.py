"""Choose the direction with the smallest estimated error, combining bias and variance.

Predictions are compared in the norm of `C = mean phi phi^T`. The groups' parts of `A^-1 (b - A theta)`
show how much sampling changes an answer: their squares give its variance, and products of
neighbouring groups, which hold neighbouring rows, add the effect of correlation between rows. The
bias of a direction is its distance from one with longer, unclipped traces, beyond what sampling
explains:

    bias^2_j = max_r (||theta_j - theta_r||^2 - variance of (theta_j - theta_r))_+

Groups say too little about products of many ratios, which are rarely large: variances of long traces
without a bound on the ratios count three times. Bounds on the bias fall as traces grow, to half at
lambda = 1/2: then the distance between lambda = 0 and a longer trace bounds the bias of that trace
and, doubled, that of lambda = 0. What a trace r reveals counts up to these bounds, taken from the
next shorter unclipped trace: if that agrees with lambda = 0, r is what is off. With infinitely many
rows the longest trace is chosen, whose limit is the best approximation, or one that agrees with it.

With few rows answers are noisy in most directions, so some candidates are shrunk towards a constant:

    theta = (A + k C)^-1 (b + k C theta_0),    theta_0 = u (u.b) / (u.A u),    u = C^-1 mean phi

`theta_0` is the level of all values. Without it, `k C` would amount to a shorter horizon, and the
level would suffer most. The bias of a shrunk answer is its distance from every one that is not, too,
of which sampling explains a quarter here: a shrunk answer varies so little that doubt would always
speak for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import lu_solve
from scipy.linalg.lapack import dgetrf, dpstrf

from o2td.arrays import Floats, Ints
from o2td.linear_algebra import Solution, conclude, solve, top
from o2td.solvers.directions import ADJUSTED, DIRECTIONS, TRACES, Direction, Directions

_KNOWN = 2  # rows per feature from which what rows leave over says something about errors
_BAND = 2  # neighbouring rows whose correlation counts
_SHRINK = 3.0  # shrinkage of the regression on (rho - 1) phi, in features per effective row
_ENOUGH = 4.0  # effective rows per feature from which that regression is trusted
_LONG, _DOUBT = 0.9, 3.0  # traces whose variance is doubted if nothing bounds ratios, and how much
_HALF = 2.0  # bounds on the bias at lambda = 0 over those at lambda = 1/2
_EXCUSED = 0.25  # share of the explained distance that excuses a shrunk answer
_RANK = 1e-10  # pivots of the scaled C below this count as zero
_LARGE = 1e150  # its square is finite
_FAINT = 1e-9  # added to matrices where a group or a feature carries no information


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
    frame = _frame(sums)
    systems = _systems(sums, frame) if frame.rank else None
    if systems is None or not systems.totals.any():  # no features, or all ratios are 0
        nothing = conclude(np.zeros(sums.d), "no data", 0, np.inf, 0.0)
        return ChosenSolution(**vars(nothing))
    theta, parts = _answers(sums, systems, frame, ridge)
    candidates = _candidates(theta, parts, frame.C)
    enough = _effective(sums) >= _ENOUGH * frame.rank
    some = [k for k, x in enumerate(candidates) if enough or not x.direction.adjusted]
    best = min(some, key=lambda k: candidates[k].error)
    chosen, whole = candidates[best], systems.totals[_PLAIN[best]]
    A, b = whole[:, :-1], whole[:, -1]
    if chosen.direction.shrinkage:
        extra = chosen.direction.shrinkage * sums.gram
        level = frame.scale * _level(*_moved(whole, frame, ridge), frame)[0]
        A, b = A + extra, b + extra[:, frame.seen] @ level
    told = solve(A, b, ridge, rows=sums.rows)
    message = f"{told.message}; {chosen.direction}, estimated error {chosen.error:.3g}"
    if sums.rows < _KNOWN * frame.rank:
        message += f", which {sums.rows} rows for {frame.rank} features make far too small"
    fields = {**vars(told), "message": message, "direction": chosen.direction}
    return ChosenSolution(**fields, candidates=tuple(candidates))


class _Frame(NamedTuple):
    """Coordinates of the features that were seen, in which each has mean square one: `C` and `u`."""

    seen: Ints
    scale: Floats
    C: Floats
    rank: int
    constant: Floats
    rows: int


def _frame(sums: Directions) -> _Frame:
    n, size = sums.rows, np.sqrt(np.diag(sums.gram) / sums.rows)
    seen = np.flatnonzero(size > 0.0)
    scale = 1.0 / size[seen]
    C = sums.gram[np.ix_(seen, seen)] / n * scale[:, None] * scale
    rank = dpstrf(C, tol=_RANK)[2] if len(seen) else 0
    constant = np.linalg.solve(C + _FAINT * np.eye(len(C)), scale * sums.total[seen] / n)
    return _Frame(seen, scale, C, int(rank), np.asarray(constant, dtype=np.float64), n)


class _Systems(NamedTuple):
    """`[A, b]` of plain and adjusted directions (sums over rows), and the adjusting regression."""

    totals: Floats
    known: Floats


def _systems(sums: Directions, frame: _Frame) -> _Systems:
    """The regression is of `rho [Delta, r]` on `(rho - 1) phi`, shrunk if it rests on few rows."""
    n, d, seen, scale = sums.rows, sums.d, frame.seen, frame.scale
    shrink = _SHRINK * frame.rank / _effective(sums) * sums.moments[0] / n + 1e-12
    spread = sums.spread[np.ix_(seen, seen)] * scale[:, None] * scale / n
    spread += shrink * (frame.C + _FAINT * np.eye(len(seen)))
    right = scale[:, None] * sums.spread[seen, d:] / n
    known = scale[:, None] * np.linalg.solve(spread, right)
    plain, drawn = sums.totals()
    adjusted = plain[list(ADJUSTED)]
    for own, noise in zip(adjusted, drawn, strict=True):
        some = own.any(axis=1, keepdims=True)  # not where all ratios are 0: nothing to adjust
        own[seen] -= some[seen] * (noise[np.ix_(seen, seen)] @ known)
    return _Systems(np.concatenate([plain, adjusted]), known)


def _moved(whole: Floats, frame: _Frame, ridge: float) -> tuple[Floats, Floats]:
    """A and b in the frame, as means over rows, regularised where features carry no information."""
    seen, scale, d = frame.seen, frame.scale, len(frame.scale)
    A = whole[np.ix_(seen, seen)] * scale[:, None] * scale / frame.rows
    A += np.diag(np.minimum(np.sqrt(ridge / frame.rows) * scale, _LARGE) ** 2)
    level = np.abs(np.trace(A)) / len(whole) + _FAINT
    return A + _FAINT * level * np.eye(d), scale * whole[seen, -1] / frame.rows


def _level(A: Floats, b: Floats, frame: _Frame) -> tuple[Floats, float]:
    """`theta_0`, and `u.A u` (infinite if it is nothing but rounding)."""
    u = frame.constant
    slope = float(u @ A @ u)
    if not abs(slope) > _FAINT * float(u @ u):
        return np.zeros_like(u), np.inf
    return u * float(u @ b) / slope, slope


class _Answers(NamedTuple):
    """The answers from one system, `k` counting candidates: the plain one, then those shrunk."""

    k: list[int]
    shares: list[float]
    factors: list[tuple[Floats, Ints]]
    origin: Floats
    slope: float
    points: Floats  # (answers, d), and the origin at the end if some are shrunk


def _solved(systems: _Systems, frame: _Frame, ridge: float) -> list[_Answers]:
    """All answers, by system."""
    found = []
    for place, whole in enumerate(systems.totals):
        own = [k for k, plain in enumerate(_PLAIN) if plain == place]
        A, b = _moved(whole, frame, ridge)
        origin, slope = _level(A, b, frame)
        shares = [DIRECTIONS[k].shrinkage for k in own]
        factors = [_factors(A + x * frame.C) for x in shares]
        towards = frame.C @ origin
        points = [lu_solve(lu, b + x * towards) for lu, x in zip(factors, shares, strict=True)]
        points += [origin] if any(shares) else []
        found.append(_Answers(own, shares, factors, origin, slope, np.array(points)))
    return found


def _answers(
    sums: Directions, systems: _Systems, frame: _Frame, ridge: float
) -> tuple[Floats, Floats]:
    """Each candidate's theta, and what each group of rows contributes to it (groups, d)."""
    theta, parts = dict[int, Floats](), dict[int, Floats]()
    found = _solved(systems, frame, ridge)
    for one, left in zip(found, _residuals(sums, systems, frame, found, ridge), strict=True):
        moves = np.outer(left[:, -1] @ frame.constant / one.slope, frame.constant)
        for i, (k, share) in enumerate(zip(one.k, one.shares, strict=True)):
            right = left[:, i]
            if share:
                pull = moves - (one.points[i] - one.origin) / len(left)
                right = right + share * (pull @ frame.C)
            theta[k] = one.points[i]
            parts[k] = lu_solve(one.factors[i], right.T).T
    return np.array([theta[k] for k in sorted(theta)]), np.array([parts[k] for k in sorted(parts)])


def _factors(A: Floats) -> tuple[Floats, Ints]:
    """LU factors; a matrix that rounding leaves singular gains a little more."""
    lu, pivots, zero = dgetrf(A)
    if zero:
        lu, pivots, _ = dgetrf(A + _FAINT * np.eye(len(A)))
    return lu, pivots


def _residuals(
    sums: Directions, systems: _Systems, frame: _Frame, found: list[_Answers], ridge: float
) -> list[Floats]:
    """`b - A theta` of each group at each point of each system: (groups, points, d)."""
    back, drawn = [], []
    for place, one in enumerate(found):
        whole, noise = (np.zeros((len(one.points), sums.d + more)) for more in (1, 0))
        whole[:, frame.seen], whole[:, -1] = -one.points * frame.scale, 1.0
        if place >= len(TRACES):
            noise[:, frame.seen] = whole @ systems.known.T
        back.append(whole)
        drawn.append(noise)
    asked = (
        [np.concatenate([x[place] for place in own]) for own in _BY_TRACE] for x in (back, drawn)
    )
    left = dict[int, Floats]()
    for own, rows in zip(_BY_TRACE, sums.against(*asked), strict=True):
        ends = np.cumsum([len(back[place]) for place in own])[:-1]
        for place, part in zip(own, np.split(rows[..., frame.seen], ends, axis=1), strict=True):
            if place >= len(TRACES):
                part *= systems.totals[place, frame.seen].any(axis=1)
            pull = ridge / len(part) * (found[place].points * frame.scale)
            left[place] = (part - pull) * frame.scale / frame.rows
    return [left[place] for place in sorted(left)]


def _effective(sums: Directions) -> float:
    """Effective number of rows whose ratio differs from one."""
    second, fourth = sums.moments
    return float(second**2 / fourth) if fourth > 0.0 else np.inf


def _candidates(theta: Floats, parts: Floats, C: Floats) -> list[Candidate]:
    unit = max(
        top(theta), top(parts)
    )  # a power of two, so that squares neither over- nor underflow
    theta, parts = np.ldexp(theta, -unit), np.ldexp(parts, -unit)
    covariance = _covariance(parts, C)
    variance = np.maximum(np.diag(covariance), 0.0)
    between = theta[:, None] - theta
    apart = np.sum((between @ C) * between, axis=-1)
    explained = np.maximum(variance[:, None] + variance - 2.0 * covariance, 0.0)
    explained *= np.maximum(_DOUBTED[:, None], _DOUBTED) * np.where(_FREE, 1.0, _EXCUSED)[:, None]
    seen = np.where(_REVEALS, np.maximum(apart - explained, 0.0), 0.0)
    for longer, before in _BEFORE:
        most = _BEYOND**2 * apart[0, before]
        seen[:, longer] = np.where(_FREE, np.minimum(seen[:, longer], most), seen[:, longer])
    bias = seen.max(axis=1)
    return [
        Candidate(direction, *np.ldexp(np.sqrt([b, v]), unit).tolist())
        for direction, b, v in zip(DIRECTIONS, bias, _DOUBTED * variance, strict=True)
    ]


def _covariance(parts: Floats, C: Floats) -> Floats:
    """Inner products over groups, with decreasing (Bartlett) weights for neighbouring groups."""
    flat = parts.reshape(len(parts), -1)
    total = (parts @ C).reshape(flat.shape) @ flat.T
    for lag in range(1, _BAND + 1):
        later = np.roll(parts, -lag, axis=1) @ C
        product = (1.0 - lag / (_BAND + 1)) * (flat @ later.reshape(flat.shape).T)
        total += product + product.T
    return np.asarray(total * parts.shape[1] / (parts.shape[1] - 1))


def _reveals(other: Direction, one: Direction) -> bool:
    """Whether `other` can reveal the bias of `one`."""
    if other.shrinkage > one.shrinkage or other == one:
        return False
    if (one.shrinkage and not other.shrinkage) or other._replace(shrinkage=one.shrinkage) == one:
        return True
    if other.clip < np.inf:
        return False
    return other.trace > one.trace or (one.clip < np.inf and other.trace >= one.trace)


_BY_TRACE = tuple(
    [place for place, own in enumerate((*range(len(TRACES)), *ADJUSTED)) if own == k]
    for k in range(len(TRACES))
)
_PLAIN = tuple(DIRECTIONS.index(x._replace(shrinkage=0.0)) for x in DIRECTIONS)
_REVEALS = np.array([[_reveals(other, one) for other in DIRECTIONS] for one in DIRECTIONS])
_FREE = np.array([not x.shrinkage for x in DIRECTIONS])
_BEYOND = np.array([1.0 if x.trace else _HALF for x in DIRECTIONS])
_BEFORE = ((4, 3), (3, 1))  # places of unclipped traces, and of the next shorter ones
_DOUBTED = np.array([_DOUBT if x.trace >= _LONG and x.clip == np.inf else 1.0 for x in DIRECTIONS])

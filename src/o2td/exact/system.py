"""What every exact quantity is made of: `P_gamma`, `R`, `V`, `xi` and the features, computed once.

A problem never changes, so its system is kept as long as the problem lives. Least-squares problems
over states are compressed to d rows by QR, block by block, which costs one pass over the states and
works for dense and CSR features alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from o2td import chain
from o2td.arrays import Floats
from o2td.errors import InputError, NoAnswerError
from o2td.problem import Problem

MOST_FEATURES = 1 << 14
_BLOCK = 1 << 21  # entries of a block of rows that QR sees at a time
_known: WeakKeyDictionary[Problem, System] = WeakKeyDictionary()


class System:
    """The target's Bellman operator and the weights of the metrics."""

    def __init__(self, problem: Problem) -> None:
        _check_active(problem)
        self.phi = problem.features
        self.active = problem.active
        self.P_gamma = problem.discounted_matrix(problem.target)
        self.reward = problem.expected_reward(problem.target)
        self._problem = ref(problem)  # systems are kept by problem, and must not keep it alive

    @cached_property
    def visits(self) -> Floats:
        """`xi`; the value of the target is known without it, and may be where it is not."""
        problem = self._problem()
        if problem is None:
            raise RuntimeError("the problem of this system is gone")
        return problem.visits

    @cached_property
    def weight(self) -> Floats:
        """`xi` in the states in which the target is followed, normalised."""
        weight = np.where(self.active, self.visits, 0.0)
        if weight.sum() <= 0.0:
            raise NoAnswerError(
                "the behaviour visits no state in which the target is followed, so nothing weights"
                " an error; follow the target in a state that the behaviour visits"
            )
        return np.asarray(weight / weight.sum())

    @cached_property
    def value(self) -> Floats:
        """`V = L^-1 R`."""
        value = chain.solve(self.P_gamma, self.reward)
        if not np.isfinite(value).all():
            s = int(np.argmax(~np.isfinite(value)))
            raise NoAnswerError(
                f"the value of state {s} is beyond the largest number; divide the rewards by some"
            )
        return value

    @cached_property
    def delta(self) -> Any:
        """`L Phi`, CSR where both are."""
        return self.phi - self.P_gamma @ self.phi

    @cached_property
    def scale(self) -> Floats:
        """The root mean square of each feature over the visited states: its size."""
        return column_sizes(self.phi, self.visits)

    @cached_property
    def best(self) -> Compressed:
        """The weighted regression of V on the features."""
        return compress(self.phi, self.value, self.weight, self.scale)

    @cached_property
    def basis(self) -> Floats:
        """`B` (d, r) such that the columns of `Phi B` are orthonormal in the weighted norm."""
        return orthonormalizer(self.phi, self.weight)

    @cached_property
    def unweighted(self) -> Floats:
        """As `basis`, with every state that counts weighted by one."""
        return orthonormalizer(self.phi, (self.weight > 0.0).astype(np.float64))


def finite(problem: Problem) -> Problem:
    """Refuse whatever is not a finite problem."""
    if not isinstance(problem, Problem):
        raise InputError(
            f"exact quantities need a finite Problem, got {type(problem).__name__};"
            " for a simulated one use metrics from held-out rows"
        )
    return problem


def system(problem: Problem) -> System:
    """The system of a finite problem, computed on first use."""
    finite(problem)
    if problem not in _known:
        _known[problem] = System(problem)
    return _known[problem]


@dataclass(frozen=True, eq=False)
class Compressed:
    """`sum_s weight(s) (rows(s).theta - value(s))^2 = |R (theta - center)|^2 + constant`."""

    R: Floats
    center: Floats
    constant: float


def compress(
    rows: Any, value: Floats, weight: Floats | None = None, scale: Floats | None = None
) -> Compressed:
    """A least-squares problem in d rows: `R` upper triangular, `center` of minimum norm.

    `scale` holds the sizes of the columns, where these are known to differ in their units.
    """
    d = rows.shape[1]
    triangle = _triangle(rows, weight, value)
    R, target = np.ascontiguousarray(triangle[:d, :d]), triangle[:d, d]
    unit = np.ones(d) if scale is None else np.where(scale > 0.0, scale, 1.0)
    U, size, vectors, null = _decomposed(R, unit, max(R.shape))
    center = _shortest(vectors @ ((U.T @ target) / size), null)
    # Where R is singular, part of the target stays out of its reach.
    with np.errstate(over="ignore"):  # `center` holds where the square overflows; users refuse it
        rest = float(np.sum((target - R @ center) ** 2) + np.square(triangle[d, d]))
    return Compressed(R, center, rest)


def orthonormalizer(rows: Any, weight: Floats | None = None, scale: Floats | None = None) -> Floats:
    """`B` (d, r), r the rank, such that `rows B` has orthonormal columns in the weighted norm.

    Columns may have any units. Where they are differences of features of size `scale`, one that is
    smaller by 1e12 is rounding, and no column.
    """
    R = _triangle(rows, weight)[: rows.shape[1]]
    unit = column_sizes(R)
    if scale is not None and len(scale) == len(unit):
        unit = np.where(unit > 1e-12 * scale, unit, scale)
    unit = np.where(unit > 0.0, unit, 1.0)
    _, size, vectors, null = _decomposed(R, unit, max(rows.shape))
    if not len(size):
        raise NoAnswerError("the features are zero in every state that counts; give others")
    return _shortest(vectors / size, null)


def _decomposed(R: Floats, unit: Floats, longest: int) -> tuple[Floats, Floats, Floats, Floats]:
    """`U`, sizes and `vectors` with `R vectors = U sizes`, and a basis of what R sends to 0.

    The rank is that of R with its columns divided by `unit`.
    """
    U, size, Vt = np.linalg.svd(R / unit)
    kept = size > size[0] * longest * np.finfo(np.float64).eps
    vectors = Vt.T / unit[:, None]
    return U[:, kept], size[kept], vectors[:, kept], vectors[:, ~kept]


def _shortest(x: Floats, null: Floats) -> Floats:
    """`x`, or its columns, without what lies in the span of `null`."""
    if not null.shape[1]:
        return x
    return np.asarray(x - null @ np.linalg.lstsq(null, x, rcond=None)[0])


def column_sizes(rows: Any, weight: Floats | None = None) -> Floats:
    """`sqrt(sum_s weight(s) rows(s)^2)` of each column, without overflow."""
    largest = dense(abs(rows).max(axis=0)).ravel()
    unit = np.where(largest > 0.0, largest, 1.0)
    weight = np.ones(rows.shape[0]) if weight is None else weight
    if isinstance(rows, np.ndarray):
        return np.asarray(unit * np.sqrt(weight @ (rows / unit) ** 2))
    from scipy.sparse import diags_array

    share = rows @ diags_array(1.0 / unit)
    return np.asarray(unit * np.sqrt(weight @ share.power(2)))


def dense(rows: Any) -> Floats:
    """A matrix as a float64 array, whatever it was."""
    array: Floats = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, np.float64)
    return array


def check_width(d: int) -> None:
    """Refuse features that are too many for a dense (d, d) matrix, before memory does."""
    if d > MOST_FEATURES:
        raise NoAnswerError(
            f"{d} features need dense matrices of {8e-9 * d * d:.0f} GB here; up to {MOST_FEATURES}"
            " are taken: aggregate or hash them, or learn from samples"
        )


def _triangle(rows: Any, weight: Floats | None, value: Floats | None = None) -> Floats:
    """Upper triangular R of `sqrt(weight) [rows, value] = Q R`, padded with zero rows to square."""
    n, d = rows.shape
    check_width(d)
    width = d + (value is not None)
    root = np.ones(n) if weight is None else np.sqrt(weight)
    used = np.flatnonzero(root)
    R = np.zeros((0, width))
    step = max(width, _BLOCK // width)
    for low in range(0, len(used), step):
        part = used[low : low + step]
        block = dense(rows[part])
        if value is not None:
            block = np.column_stack([block, value[part]])
        R = np.asarray(np.linalg.qr(np.vstack([R, block * root[part, None]]), mode="r"))
    return np.vstack([R, np.zeros((width - len(R), width))])


def _check_active(problem: Problem) -> None:
    """An active state may lead to an inactive one only by a transition of discount 0."""
    p = problem.pairs
    followed = problem.target[p.state, p.action] > 0.0
    bad = followed & ~problem.active[p.next_state] & (p.discount > 0.0)
    if bad.any():
        k = int(np.argmax(bad))
        raise InputError(
            f"the target is followed in state {p.state[k]} but not in its successor"
            f" {p.next_state[k]}, whose value then has no meaning; give that transition discount 0"
        )

"""ATD(lambda), accelerated TD: TD whose step is preconditioned by a low-rank estimate of A^-1.

    theta += (A_k^+ + alpha I) rho delta z,    A_k ~ sum_i rho_i z_i dphi_i^T, of rank k

Between TD (rank 0) and LSTD (full rank), at O(k d) per row: rows are collected k at a time, then
the sum is truncated to its k largest singular values. Small ones are damped, `1 / (S + 1 / alpha)`,
so the first rows move theta no farther than TD does. The limit is TD(lambda)'s; along the leading
directions it is reached as fast as by LSTD.

Pan, White & White (2017), "Accelerated gradient temporal difference learning"; Gehring, Pan & White
(2016).
"""

from __future__ import annotations

from typing import ClassVar, Unpack

import numpy as np

from o2td.arguments import whole
from o2td.compiled import njit
from o2td.kernels.weighted import HUGE
from o2td.learners.step_learner import StepLearner, add
from o2td.learners.step_sizes import StepSize
from o2td.learners.traced import TraceAxes

__all__ = ["ATD"]

MOST = 8  # the largest rank
LEAST = 1e-9  # singular values below this fraction of the largest count as zero


@njit(cache=True, fastmath={"reassoc", "contract"})
def sum_of_products(x, y):  # type: ignore[no-untyped-def]
    """`x.y`."""
    total = 0.0
    for j in range(len(x)):
        total += x[j] * y[j]
    return total


@njit(cache=True)
def cut(left, right, rank):  # type: ignore[no-untyped-def]
    """Truncate `left right^T`, (d, 2 k) each, to `L V^T` in the first k columns, with L = U S."""
    one, R = np.linalg.qr(left)
    two, T = np.linalg.qr(right)
    U, S, V = np.linalg.svd(np.dot(np.ascontiguousarray(R), np.ascontiguousarray(T.T)))
    some = min(rank, len(S))
    for j in range(len(left)):
        for k in range(rank):
            left[j, k] = right[j, k] = 0.0
        for k in range(some):
            size = S[k] if S[k] > LEAST * S[0] else 0.0
            for m in range(len(S)):
                left[j, k] += one[j, m] * U[m, k] * size
                right[j, k] += two[j, m] * V[k, m]


@njit(cache=True)
def step(row, p, s, theta, z, left, right, gains, changes):  # type: ignore[no-untyped-def]
    """One row; L, V and the rows since the last truncation are (rank, d), stored flat."""
    rank, d = int(p.rank), len(theta)
    place = int(s.steps) % rank
    gain, change = gains[place * d : (place + 1) * d], changes[place * d : (place + 1) * d]
    for j in range(d):
        z[j] *= row.decay
        change[j] = 0.0
    add(z, row.emphasis, row.phi)
    add(change, 1.0, row.phi)
    add(change, -row.discount, row.next_phi)
    delta = row.reward - sum_of_products(change, theta)
    for j in range(d):
        gain[j] = row.rho * z[j]
        theta[j] += delta * row.alpha * gain[j]
    for k in range(rank):
        u, v = left[k * d : (k + 1) * d], right[k * d : (k + 1) * d]
        size = np.sqrt(sum_of_products(u, u))
        if size > 0.0 and row.alpha > 0.0:
            share = delta * sum_of_products(u, gain) / (size * (size + 1.0 / row.alpha))
            for j in range(d):
                theta[j] += share * v[j]
    if place < rank - 1:
        return
    one, two, total = np.empty((d, 2 * rank)), np.empty((d, 2 * rank)), 0.0
    for k in range(rank):
        for j in range(d):
            one[j, k], one[j, rank + k] = left[k * d + j], gains[k * d + j]
            two[j, k], two[j, rank + k] = right[k * d + j], changes[k * d + j]
            total += abs(one[j, k]) + abs(one[j, rank + k]) + abs(two[j, k]) + abs(two[j, rank + k])
    if not total < HUGE:
        theta[0] = np.nan  # the products would overflow: diverged, at the row that was too large
        return
    cut(one, two, rank)
    for k in range(rank):
        for j in range(d):
            left[k * d + j], right[k * d + j] = one[j, k], two[j, k]


class ATD(StepLearner):
    """Accelerated TD, preconditioned by a low-rank estimate of A^-1.

    Parameters
    ----------
    rank : int
        Rank k of the estimate, from 1 to 8.

    Examples
    --------
    >>> import o2td
    >>> problem = o2td.domains.random_walk()
    >>> learner = o2td.ATD(0.1, rank=3).partial_fit(problem.sample(200, seed=0))
    >>> learner.status.kind
    'ok'
    """

    vectors: ClassVar[tuple[str, ...]] = ("theta", "z", "left", "right", "gains", "changes")
    undefined: ClassVar[tuple[str, ...]] = ("second_step_size", "replicates")
    moves_all: ClassVar[bool] = True
    counts_rows: ClassVar[bool] = True
    step = staticmethod(step)
    no_dynamics: ClassVar[str] = "its preconditioner grows with the rows and depends on them"

    def __init__(
        self, step_size: StepSize = "auto", *, rank: int = 4, **axes: Unpack[TraceAxes]
    ) -> None:
        self.rank = whole("rank", rank, 1, MOST)
        super().__init__(step_size, **axes)

    def _allocate(self, d: int) -> None:
        super()._allocate(d)
        for name in self.vectors[2:]:
            self._arrays[name] = np.zeros((self._width, MOST * d))

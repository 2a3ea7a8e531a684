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
from o2td.compiled import jitable, njit
from o2td.kernels.load_store import get_z, rolled
from o2td.kernels.weighted import FASTMATH, HUGE
from o2td.learners.step_learner import StepLearner, add
from o2td.learners.step_sizes import StepSize
from o2td.learners.traced import TraceAxes

__all__ = ["ATD"]

MOST = 8  # the largest rank
LEAST = 1e-9  # singular values below this fraction of the largest count as zero
ROUNDING = 1e-15  # of a sum of products
SWEEPS = 30  # far more than it takes


@jitable(fastmath=FASTMATH)
def sum_of_products(x, i, y, k, d):  # type: ignore[no-untyped-def]
    """The product of d numbers of x, from i on, with those of y from k on."""
    total = 0.0
    for j in range(d):
        total += get_z(x, i + j) * get_z(y, k + j)
    return total


@jitable
def orthogonal(rows, triangle):  # type: ignore[no-untyped-def]
    """Replace rows X (m, d) by orthonormal ones Q, with X = triangle Q; dependent ones become 0."""
    m, d = rows.shape
    for i in range(m):
        before = np.sqrt(sum_of_products(rows, i * d, rows, i * d, d))
        for k in range(m):
            rolled()
            triangle[i, k] = 0.0
        for n in range(2 * i):  # all of them twice: once leaves rounding along the first ones
            k = n % i
            along = sum_of_products(rows, i * d, rows, k * d, d)
            triangle[i, k] += along
            for j in range(d):
                rows[i, j] -= along * rows[k, j]
        size = np.sqrt(sum_of_products(rows, i * d, rows, i * d, d))
        triangle[i, i] = size if size > ROUNDING * before else 0.0
        scale = 1.0 / size if triangle[i, i] > 0.0 else 0.0
        for j in range(d):
            rows[i, j] *= scale


@jitable
def rotated(left, right):  # type: ignore[no-untyped-def]
    """One-sided Jacobi: turn rows of `left` (m, m) until they are orthogonal, `right` with them.

    Rows of `left` then are singular values times left vectors, rows of `right` right vectors.
    """
    m = len(left)
    for _ in range(SWEEPS):
        worst = 0.0
        for i in range(m):
            for k in range(i):
                a = sum_of_products(left, i * m, left, i * m, m)
                b = sum_of_products(left, k * m, left, k * m, m)
                c = sum_of_products(left, i * m, left, k * m, m)
                if not abs(c) > ROUNDING * np.sqrt(a) * np.sqrt(b):
                    continue
                worst = max(worst, abs(c))
                slope = (b - a) / (2.0 * c)
                t = 1.0 / (abs(slope) + np.sqrt(1.0 + slope * slope))
                t = t if slope >= 0.0 else -t
                cosine = 1.0 / np.sqrt(1.0 + t * t)
                for j in range(m):
                    rolled()
                    x, y = left[i, j], left[k, j]
                    left[i, j], left[k, j] = cosine * (x - t * y), cosine * (t * x + y)
                    x, y = right[i, j], right[k, j]
                    right[i, j], right[k, j] = cosine * (x - t * y), cosine * (t * x + y)
        if worst == 0.0:
            break


@jitable
def cut(one, two, rank, left, right):  # type: ignore[no-untyped-def]
    """Truncate `one^T two`, (2 k, d) each, to rank k: `left^T right`, stored flat, left = S U^T."""
    m, d = one.shape
    room = np.empty((4, m, m))
    first, second, inner, turned = room[0], room[1], room[2], room[3]
    orthogonal(one, first)
    orthogonal(two, second)
    top = 0.0
    for i in range(m):
        for k in range(m):
            turned[i, k] = 1.0 if i == k else 0.0
            inner[i, k] = 0.0
            for j in range(m):
                rolled()
                inner[i, k] += second[j, i] * first[j, k]
            top = max(top, abs(inner[i, k]))
    for i in range(m):
        for k in range(m):
            rolled()
            inner[i, k] = inner[i, k] / top if top > 0.0 else 0.0  # or squares may overflow
    rotated(inner, turned)
    largest = 0.0
    for i in range(m):
        first[0, i] = sum_of_products(inner, i * m, inner, i * m, m)
        largest = max(largest, first[0, i])
    for k in range(rank):
        i = 0
        for j in range(m):
            rolled()
            if first[0, j] > first[0, i]:
                i = j
        scale = top if first[0, i] > LEAST * LEAST * largest else 0.0
        first[0, i] = -1.0  # taken
        for j in range(d):
            x = y = 0.0
            for n in range(m):
                rolled()
                x += inner[i, n] * one[n, j]
                y += turned[i, n] * two[n, j]
            left[k * d + j], right[k * d + j] = scale * x, y


@njit(cache=True)
def step(row, p, s, theta, z, left, right, gains, changes):  # type: ignore[no-untyped-def]
    """One row; L, V and the rows since the last truncation are (rank, d), stored flat."""
    rank, d = int(p.rank), len(theta)
    place = int(s.steps) % rank
    here = place * d
    change = changes[here : here + d]
    for j in range(d):
        z[j] *= row.decay
        change[j] = 0.0
    add(z, row.emphasis, row.phi)
    add(change, 1.0, row.phi)
    add(change, -row.discount, row.next_phi)
    delta = row.reward - sum_of_products(changes, here, theta, 0, d)
    for j in range(d):
        gains[here + j] = row.rho * z[j]
        theta[j] += delta * row.alpha * gains[here + j]
    for k in range(rank):
        size = np.sqrt(sum_of_products(left, k * d, left, k * d, d))
        if size > 0.0 and row.alpha > 0.0:
            share = delta * sum_of_products(left, k * d, gains, here, d)
            share /= size * (size + 1.0 / row.alpha)
            for j in range(d):
                theta[j] += share * right[k * d + j]
    if place < rank - 1:
        return
    one, two, total = np.empty((2 * rank, d)), np.empty((2 * rank, d)), 0.0
    for k in range(rank):
        for j in range(d):
            rolled()
            one[k, j], one[rank + k, j] = left[k * d + j], gains[k * d + j]
            two[k, j], two[rank + k, j] = right[k * d + j], changes[k * d + j]
            total += abs(one[k, j]) + abs(one[rank + k, j]) + abs(two[k, j]) + abs(two[rank + k, j])
    if not total < HUGE:
        theta[0] = np.nan  # the products would overflow: diverged, at the row that was too large
        return
    cut(one, two, rank, left, right)


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

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
from o2td.kernels.weighted import FASTMATH, HUGE
from o2td.learners.step_learner import StepLearner, add, count, index, value
from o2td.learners.step_sizes import StepSize
from o2td.learners.traced import TraceAxes
from o2td.load_store import get_theta, get_w, get_z, put_theta, put_w, put_z, rolled

__all__ = ["ATD"]

MOST = 8  # the largest rank
ROOM = MOST + 4 * (2 * MOST) ** 2  # the sizes of the k rows, and four matrices to compute with
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
def orthogonal(rows, m, d, triangle, at):  # type: ignore[no-untyped-def]
    """Replace m rows X by orthonormal ones Q, with X = triangle Q; dependent ones become 0.

    All are flat; the triangle begins at `at`. One loop takes norms and products alike, because each
    loop that is compiled for long rows takes a tenth of a second at the first use.
    """
    for i in range(m):
        before = 0.0
        for k in range(m):
            rolled()
            triangle[at + i * m + k] = 0.0
        for n in range(2 * i + 2):  # each k < i twice: once leaves rounding along the first ones
            own = n == 0 or n > 2 * i
            k = i if own else (n - 1) % i
            along, scale = sum_of_products(rows, i * d, rows, k * d, d), 1.0
            if n == 0:
                before = np.sqrt(along)
                continue
            if own:
                size = np.sqrt(along)
                along, scale = 0.0, (1.0 / size if size > ROUNDING * before else 0.0)
                triangle[at + i * m + i] = size if scale > 0.0 else 0.0
            else:
                triangle[at + i * m + k] += along
            for j in range(d):
                x = scale * get_z(rows, i * d + j) - along * get_z(rows, k * d + j)
                put_z(rows, i * d + j, x)


@jitable
def rotated(m, room, left, right):  # type: ignore[no-untyped-def]
    """One-sided Jacobi: turn rows of `left` (m, m) until they are orthogonal, `right` with them.

    Rows of `left` then are singular values times left vectors, rows of `right` right vectors; both
    are flat in `room`, from `left` and `right` on.
    """
    for _ in range(SWEEPS):
        turned = False
        for i in range(left + m, left + m * m, m):
            for k in range(left, i, m):
                a = b = c = 0.0
                for j in range(m):
                    rolled()
                    x, y = get_w(room, i + j), get_w(room, k + j)
                    a, b, c = a + x * x, b + y * y, c + x * y
                if not abs(c) > ROUNDING * np.sqrt(a) * np.sqrt(b):
                    continue
                turned = True
                slope = (b - a) / (2.0 * c)
                t = 1.0 / (abs(slope) + np.sqrt(1.0 + slope * slope))
                t = t if slope >= 0.0 else -t
                cosine = 1.0 / np.sqrt(1.0 + t * t)
                for both in range(2 * m):
                    rolled()
                    j = both if both < m else both - m + right - left
                    x, y = get_w(room, i + j), get_w(room, k + j)
                    put_w(room, i + j, cosine * (x - t * y))
                    put_w(room, k + j, cosine * (t * x + y))
        if not turned:
            break


@jitable
def cut(lefts, rights, rank, d, room):  # type: ignore[no-untyped-def]
    """Truncate `lefts^T rights`, 2 k rows each, to rank k: the first k rows, and their sizes."""
    m = 2 * rank
    first, second, inner, turned = MOST, MOST + m * m, MOST + 2 * m * m, MOST + 3 * m * m
    for side in range(2):
        orthogonal(rights if side else lefts, m, d, room, second if side else first)
    top = 0.0
    for i in range(m):
        for k in range(m):
            total = 0.0
            for j in range(m):
                rolled()
                total += get_w(room, second + j * m + i) * get_w(room, first + j * m + k)
            room[inner + i * m + k], room[turned + i * m + k] = total, 1.0 if i == k else 0.0
            top = abs(total) if abs(total) > top else top
    for n in range(m * m):
        rolled()
        room[inner + n] = room[inner + n] / top if top > 0.0 else 0.0  # or squares may overflow
    rotated(m, room, inner, turned)
    largest = 0.0
    for i in range(m):
        total = 0.0
        for j in range(m):
            rolled()
            total += room[inner + i * m + j] * room[inner + i * m + j]
        room[first + i] = total
        largest = total if total > largest else largest
    for k in range(rank):
        i = 0
        for j in range(m):
            rolled()
            if room[first + j] > room[first + i]:
                i = j
        kept = room[first + i] > LEAST * LEAST * largest
        room[k] = top * np.sqrt(room[first + i]) if kept else 0.0
        room[second + k], room[first + i] = float(i), -1.0  # taken
    for j in range(d):
        for k in range(rank):
            x, y, i = 0.0, 0.0, np.int64(room[second + k]) * m
            for n in range(m):
                rolled()
                x += get_w(room, inner + i + n) * get_z(lefts, n * d + j)
                y += get_w(room, turned + i + n) * get_z(rights, n * d + j)
            put_w(room, first + k, top * x if get_w(room, k) > 0.0 else 0.0)
            put_w(room, first + rank + k, y)
        for k in range(rank):
            rolled()
            put_z(lefts, k * d + j, get_w(room, first + k))
            put_z(rights, k * d + j, get_w(room, first + rank + k))


@njit(cache=True, allocates=False)
def step(row, p, s, theta, z, lefts, rights, room):  # type: ignore[no-untyped-def]
    """One row: k rows of the estimate, then those since the last truncation, are stored flat."""
    rank, d = np.int64(p.rank), len(theta)
    place = np.int64(s.steps) % rank
    here = (rank + place) * d
    for j in range(d):
        z[j] *= row.decay
        put_z(rights, here + j, 0.0)
    add(z, row.emphasis, row.phi)
    for k in range(count(row.phi)):
        rights[here + index(row.phi, k)] += value(row.phi, k)
    for k in range(count(row.next_phi)):
        rights[here + index(row.next_phi, k)] -= row.discount * value(row.next_phi, k)
    delta = row.reward - sum_of_products(rights, here, theta, 0, d)
    for j in range(d):
        gain = row.rho * get_z(z, j)
        put_z(lefts, here + j, gain)
        put_theta(theta, j, get_theta(theta, j) + delta * row.alpha * gain)
    for k in range(rank):
        if room[k] > 0.0 and row.alpha > 0.0:
            share = delta * sum_of_products(lefts, k * d, lefts, here, d)
            share /= room[k] * (room[k] + 1.0 / row.alpha)
            for j in range(d):
                put_theta(theta, j, get_theta(theta, j) + share * get_z(rights, k * d + j))
    if place < rank - 1:
        return
    total = 0.0
    for j in range(2 * rank * d):
        rolled()
        total += abs(lefts[j]) + abs(rights[j])
    if total < HUGE:
        cut(lefts, rights, rank, d, room)
    else:
        theta[0] = np.nan  # the products would overflow: diverged, at the row that was too large


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

    vectors: ClassVar[tuple[str, ...]] = ("theta", "z", "lefts", "rights", "room")
    undefined: ClassVar[tuple[str, ...]] = ("second_step_size", "replicates")
    moves_all: ClassVar[bool] = True
    counts_rows: ClassVar[bool] = True
    set_once: ClassVar[tuple[str, ...]] = ("rank",)
    step = staticmethod(step)
    no_dynamics: ClassVar[str] = "its preconditioner grows with the rows and depends on them"

    def __init__(
        self, step_size: StepSize = "auto", *, rank: int = 4, **axes: Unpack[TraceAxes]
    ) -> None:
        self.rank = whole("rank", rank, 1, MOST)
        super().__init__(step_size, **axes)

    def _allocate(self, d: int) -> None:
        super()._allocate(d)
        for name, width in zip(self.vectors[2:], (2 * MOST * d, 2 * MOST * d, ROOM), strict=True):
            self._arrays[name] = np.zeros((self._width, width))

"""ATD(lambda), accelerated TD: TD whose step is preconditioned by a low-rank estimate of A^-1.

    theta += (A_k^+ + alpha I) rho delta z,    A_k ~ sum_i rho_i z_i dphi_i^T, of rank k

Between TD (rank 0) and LSTD (full rank), at O(k d) a row: rows are collected k at a time, and then the
sum is cut to its k largest singular values. Small ones are damped, `1 / (S + 1 / alpha)`, so that the
first rows move theta no farther than TD does. The limit is TD(lambda)'s; the fast directions get there
as LSTD does. The step runs in plain Python on NumPy.

Pan, White & White (2017), "Accelerated gradient temporal difference learning"; Gehring, Pan & White
(2016).
"""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import numpy as np

from o2td.arrays import Floats
from o2td.errors import InputError
from o2td.kernels.weighted import HUGE
from o2td.learners.step_learner import Row, StepLearner, add
from o2td.learners.step_sizes import StepSize
from o2td.learners.traced import TraceAxes

__all__ = ["ATD"]

MOST = 8  # the largest rank: vectors are declared for all of it
LEAST = 1e-9  # singular values below this share of the largest are none


def cut(left: list[Floats], right: list[Floats], rank: int) -> tuple[Floats, Floats]:
    """`sum_i left_i right_i^T` as `L V^T` of this rank: L is U S, and V is orthonormal."""
    one, two = np.linalg.qr(np.column_stack(left)), np.linalg.qr(np.column_stack(right))
    U, S, V = np.linalg.svd(one.R @ two.R.T)
    S = np.where(LEAST * S.max(initial=0.0) < S, S, 0.0)
    some = min(rank, len(S))
    return one.Q @ (U[:, :some] * S[:some]), two.Q @ V[:some].T


def step(row: Row, p: Any, s: Any, theta: Floats, z: Floats, *rest: Floats) -> None:
    """One `row` with parameters `p`, scalars `s` and trace `z`.

    `rest` holds L, V, and the rows since they were last cut.
    """
    rank = int(p.rank)
    left, right, gains, changes = (list(rest[k * MOST : k * MOST + rank]) for k in range(4))
    phi, dphi = np.zeros((2, len(theta)))
    add(phi, 1.0, row.phi)
    add(dphi, 1.0, row.phi)
    add(dphi, -row.discount, row.next_phi)
    z[:] = row.decay * z + row.emphasis * phi
    gain = row.rho * z
    delta = row.reward - dphi @ theta
    move = row.alpha * gain
    for u, v in zip(left, right, strict=True):
        size = np.sqrt(u @ u)
        if size > 0.0 and row.alpha > 0.0:
            move = move + v * (u @ gain) / (size * (size + 1.0 / row.alpha))
    theta += delta * move
    place = int(s.steps) % rank
    gains[place][:], changes[place][:] = gain, dphi
    if place < rank - 1:
        return
    if not np.abs([left, right, gains, changes]).sum() < HUGE:
        theta[:] = np.nan  # the products would overflow: diverged, at the row that was too large
        return
    L, V = cut(left + gains, right + changes, rank)
    for k in range(L.shape[1]):
        left[k][:], right[k][:] = L[:, k], V[:, k]


class ATD(StepLearner):
    """Accelerated TD.

    Parameters
    ----------
    rank : int
        k, from 1 to 8.

    Examples
    --------
    >>> import o2td
    >>> problem = o2td.domains.random_walk()
    >>> learner = o2td.ATD(0.1, rank=3).partial_fit(problem.sample(200, seed=0))
    >>> learner.status.kind
    'ok'
    """

    vectors: ClassVar[tuple[str, ...]] = (
        *("theta", "z"),
        *(f"{name}_{k}" for name in ("left", "right", "gain", "change") for k in range(MOST)),
    )
    undefined: ClassVar[tuple[str, ...]] = ("second_step_size", "replicates")
    moves_all: ClassVar[bool] = True
    counts_rows: ClassVar[bool] = True
    step = staticmethod(step)

    def __init__(
        self, step_size: StepSize = "auto", *, rank: int = 4, **axes: Unpack[TraceAxes]
    ) -> None:
        whole = isinstance(rank, (int, np.integer)) and not isinstance(rank, bool)
        if not whole or not 1 <= rank <= MOST:
            raise InputError(f"rank must be a whole number from 1 to {MOST}, got {rank!r}")
        self.rank = int(rank)
        super().__init__(step_size, **axes)

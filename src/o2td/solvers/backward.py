"""Sums over all rows of tables and sparse batches, from the last row to the first.

`sum_t e_t y_t^T` with a trace `e_{t+1} = keep_t e_t + phi_{t+1}` is `sum_s phi_s g_s^T` with
`g_s = y_s + keep_s g_{s+1}`: what follows a row is added to the few entries of its features, or to its
state, where a trace would be added to those of `phi`, `phi'` and the reward.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from o2td.arrays import Floats
from o2td.solvers import backward_loops
from o2td.transitions import SparseRows, Transitions

_TINY = 1e-290  # far below the last digit of anything that it multiplies


def decays(batch: Transitions, trace: float, clip: float = np.inf) -> Floats:
    """What is left of a trace after each row; nothing where the next row is a start."""
    keep = trace * batch.discount * np.minimum(batch.rho, clip)
    keep[:-1][batch.start[1:]] = 0.0
    return np.asarray(keep)


def totals(
    batch: Transitions,
    few: Sequence[SparseRows],
    keep: Floats,
    own: Floats,
    ahead: Floats | None = None,
    earned: Floats | None = None,
) -> Floats:
    """`sum_t e_t y_t^T` with `y = [own phi - ahead phi', earned]`, without what is None.

    The last row is g_0, by which the sums depend on an incoming trace. `few` has the rows and
    successors of a sparse batch, and nothing for a table.
    """
    d, none = batch.d, np.zeros(batch.n)
    columns = d if earned is None else d + 1
    y = (own, none if ahead is None else ahead, none if earned is None else earned)
    out = np.zeros((d + 1 if few else batch.table.shape[0] + 1, columns))
    if few:
        backward_loops.by_feature(*(row[:4] for row in few), *y, keep, out)
    else:
        ends = (np.asarray(batch.state), np.asarray(batch.next_state))
        backward_loops.by_state(batch.table, *ends, *y, keep, out)
        out = np.concatenate([batch.table.T @ out[:-1], out[-1:]])
    out[-1] *= not batch.start[:1].any()
    return out


def left_behind(batch: Transitions, keep: Floats) -> tuple[Floats, float]:
    """The trace after the last row, and the share of an incoming one that is left of it."""
    share = np.cumprod(keep[::-1])[::-1]
    share[np.abs(share) < _TINY] = 0.0
    through = 0.0 if batch.start[:1].any() else float(share[0]) if batch.n else 1.0
    low = batch.n - np.count_nonzero(share)
    if batch.layout == "table":
        states = np.bincount(
            np.asarray(batch.state)[low:], share[low:], minlength=batch.table.shape[0]
        )
        return np.asarray(states @ batch.table), through
    return np.asarray(batch.phi[low:].T @ share[low:]), through

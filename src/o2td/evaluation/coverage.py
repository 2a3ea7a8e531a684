"""How much of the target's path lies beyond the log: visits to states that no row leaves.

`u = (I - P_gamma^T)^-1 start` are the target's discounted visits to the log's states, or to cells
of observations. The equations silently give a state without rows the value 0. The target would
continue from such a state. If it continues for as long as the average in the log, `ahead = 1 / (1 -
gamma (1 - p))` visits with `p` the share of rows that terminate, then the log says nothing about
`arrivals · ahead / (visits elsewhere + arrivals · ahead)` of its visits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td.arrays import Floats, Ints
from o2td.evaluation.basis import Cells, States
from o2td.evaluation.candidates import farthest
from o2td.evaluation.episodes import Episodes

NEARLY = 1.0 - 1e-9  # instead of 1, so that visits stay finite where nothing terminates
_CELLS = 200
_EACH = 20  # rows per cell, on average
_POOL = 4000  # rows, and as many successors, from which centres are chosen
_PART = 1 << 13  # rows whose distances are held at a time


def unlogged(visits: Floats, known: Any, ahead: float) -> float:
    """Share of the visits that lie in states without rows, and beyond them.

    >>> unlogged(np.array([1.0, 0.5]), np.array([True, False]), 10.0)
    0.8333333333333334
    """
    visits = np.maximum(visits, 0.0)
    inside, arrivals = float(visits[known].sum()), float(visits[~known].sum())
    outside = arrivals * ahead
    return outside / (inside + outside) if outside > 0.0 else 0.0


def unlogged_regions(block: Episodes, basis: States | Cells, ahead: float) -> float:
    """The same where no state recurs: cells are the neighbourhoods of up to 200 inputs.

    Only the successor of a truncated episode's last row, or the start of an episode with no rows,
    can lie where no row is, so these are among the centres. Distances are between features for
    states, and between observations otherwise.
    """
    rows, last = block.rows, block.first[1:] - 1
    cut = last[~rows.terminated[last]]
    lone = rows.input[:0] if block.lone is None else block.lone.input
    if not len(cut) and not len(lone):
        return 0.0
    n = len(rows)
    all_of_them = _numbers(block, basis, np.concatenate([rows.input, rows.next_input, lone]))
    spread = all_of_them[:n].std(axis=0)
    inputs, after, alone = np.split(all_of_them / np.where(spread > 0.0, spread, 1.0), [n, 2 * n])
    centers = _centers(inputs, np.concatenate([after[cut], alone]))
    at, to = _nearest(inputs, centers), _nearest(after, centers)
    size = len(centers)
    weight = np.bincount(at, rows.rho, minlength=size)
    flow = np.zeros((size, size))
    np.add.at(flow, (at, to), rows.rho * rows.discount)
    chain = NEARLY * flow / np.where(weight > 0.0, weight, 1.0)[:, None]
    start = np.bincount(at[block.first[:-1]], block.opens, minlength=size)
    start += np.bincount(_nearest(alone, centers), minlength=size)
    visits = np.linalg.solve(np.eye(size) - chain.T, start / max(start.sum(), 1.0))
    return unlogged(visits, weight > 0.0, ahead)


def _numbers(block: Episodes, basis: States | Cells, inputs: Any) -> Floats:
    if block.rows.observation is None and isinstance(basis, States):
        return basis.phi(inputs)
    return np.asarray(inputs, dtype=np.float64).reshape(len(inputs), -1)


def _centers(inputs: Floats, ends: Floats) -> Floats:
    """Inputs far from each other, including successors of truncated episodes."""
    rng = np.random.default_rng(0)
    pool = [part[rng.permutation(len(part))[:_POOL]] for part in (inputs, ends)]
    both = np.concatenate(pool)
    return both[farthest(both, min(_CELLS, max(len(inputs) // _EACH, 1)))]


def _nearest(points: Floats, centers: Floats) -> Ints:
    """The number of the centre that is nearest to each point."""
    found = np.empty(len(points), dtype=np.int64)
    square = (centers**2).sum(axis=1)
    for low in range(0, len(points), _PART):
        part = points[low : low + _PART]
        found[low : low + _PART] = (square - 2.0 * part @ centers.T).argmin(axis=1)
    return found

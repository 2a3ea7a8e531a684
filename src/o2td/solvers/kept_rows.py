"""Rows kept in place of their sums by group, and what each group leaves of an equation.

A choice among directions asks for the sums by group only at its answers: group g leaves
`sum_t c_t e_t` of an equation, with one number `c_t` per row and answer. Rows tell this in O(d) per
row and answer, while sums by group and state, or by group and pair of features, are the larger part
of the work of a fit. They are needed in full only if other rows follow, or if they are saved. Rows
are kept only while they take less memory than these sums, so a solver's memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from o2td.arrays import Floats
from o2td.solvers import backward_loops
from o2td.solvers.system import few_entries
from o2td.transitions import Transitions


class Question(NamedTuple):
    """Of a direction with this lambda and clip: `sum_t (rho_t y_t.whole - (rho_t - 1) phi_t.drawn) e_t`.

    `y = [Delta, r]`; `whole` (m, d + 1) and `drawn` (m, d) have a row per answer.
    """

    trace: float
    clip: float
    whole: Floats
    drawn: Floats


def size(batch: Transitions) -> int:
    """Bytes that a copy of these rows takes."""
    vectors = sum(x.nbytes for x in (batch.rho, batch.discount, batch.reward, batch.start))
    if batch.layout != "table":
        return vectors + sum(_bytes(x) for x in (batch.phi, batch.next_phi))
    return vectors + 2 * np.asarray(batch.state).nbytes + _bytes(batch.table)


def _bytes(rows: Any) -> int:
    if isinstance(rows, np.ndarray):
        return rows.nbytes
    return int(rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes)


def copied(batch: Transitions) -> Transitions:
    """The rows in memory of their own: those who made the batch may reuse its arrays."""
    reward, discount, rho, start = (
        x.copy() for x in (batch.reward, batch.discount, batch.rho, batch.start)
    )
    if batch.layout != "table":
        phi, later = batch.phi.copy(), batch.next_phi.copy()
        return Transitions(phi, reward, later, discount, rho=rho, start=start)
    state, after = (np.array(x) for x in (batch.state, batch.next_state))
    table = batch.table.copy()
    return Transitions.from_table(table, state, reward, after, discount, rho=rho, start=start)


def answers(batch: Transitions, questions: Sequence[Question], groups: int) -> list[Floats]:
    """The sums of each question over the rows of each group: (groups, m, d)."""
    many = [len(x.whole) for x in questions]
    ends = np.cumsum([0, *many])
    whole, drawn = (
        np.concatenate(x).T.copy()
        for x in zip(*((x.whole, x.drawn) for x in questions), strict=True)
    )
    vectors = (batch.rho, batch.discount, batch.reward, batch.start)
    traces = np.array([(x.trace, x.clip) for x in questions])
    if isinstance(batch.table, np.ndarray):
        table, states = batch.table, (np.asarray(batch.state), np.asarray(batch.next_state))
        found = np.zeros((len(table), groups * ends[-1]))
        own = (table @ whole[:-1], table @ drawn, whole[-1])
        backward_loops.residuals_by_state(*states, vectors, traces, ends, *own, groups, found)
        found = table.T @ found
    else:
        rows = [row[:4] for row in few_entries(batch)]
        found = np.zeros((batch.d, groups * ends[-1]))
        given = (vectors, traces, ends, whole, drawn, groups, found)
        backward_loops.residuals_by_feature(*rows, *given)
    parts = np.split(found.T, groups * ends[1:-1])
    return [part.reshape(groups, m, -1) for part, m in zip(parts, many, strict=True)]

"""Rows that are kept in place of their sums by group: the same answers, and no more memory."""

from __future__ import annotations

import pickle
import time
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import o2td
from o2td import Transitions
from o2td.solvers.kept_rows import Question, answers, size


def stream(layout: str, n: int, d: int = 60, states: int = 90, seed: int = 4) -> Transitions:
    """Off-policy episodes in a table of states, or with three entries per row."""
    rng = np.random.default_rng(seed)
    state = rng.integers(states, size=n + 1)
    if layout == "csr":
        where = np.sort(np.argsort(rng.random((states, d)))[:, :3])
        table: Any = np.zeros((states, d))
        np.put_along_axis(table, where, rng.normal(size=where.shape), axis=1)
    else:
        table = rng.normal(size=(states, d))
    ends = rng.random(n) < 0.02
    given: dict[str, Any] = {
        "discount": np.where(ends, 0.0, 0.95),
        "rho": rng.choice([0.0, 0.4, 1.0, 1.8], size=n),
        "start": np.append(True, ends[:-1]),
    }
    reward = rng.normal(size=n) + state[:-1] / states
    if layout == "table":
        return Transitions.from_table(table, state[:-1], reward, state[1:], **given)
    phi = csr_array(table[state])
    return Transitions(phi[:-1], reward, phi[1:], **given)


def auto() -> o2td.LSTD:
    return o2td.LSTD(trace="auto", ridge=0.5)


@pytest.mark.parametrize("layout", ["table", "csr"])
def test_sums_by_group_choose_the_same(layout: str) -> None:
    batch = stream(layout, 1500)
    kept, summed = auto().fit(batch), auto().fit(batch)
    assert kept._sums.kept is not None
    summed._sums.arrays()
    assert summed.solve()._sums.kept is None
    one, two = (np.array([x[1:] for x in y.solution.candidates]) for y in (kept, summed))
    np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9 * one.max())
    np.testing.assert_allclose(kept.theta, summed.theta, rtol=1e-10)


@pytest.mark.parametrize("layout", ["table", "csr"])
def test_who_made_the_batch_may_reuse_its_arrays(layout: str) -> None:
    batch = stream(layout, 900)
    first = batch[:500]
    expected = auto().fit(batch).theta
    reward = batch.reward[:500].copy()
    given = {"rho": first.rho, "start": first.start}
    if layout == "table":
        table = batch.table.copy()
        ends = (first.state, reward, first.next_state)
        own = Transitions.from_table(table, *ends, first.discount, **given)
    else:
        table = first.phi.copy()
        own = Transitions(table, reward, first.next_phi, first.discount, **given)
    solver = auto().update(own)
    reward[:] = 1e6
    (table if layout == "table" else table.data)[:] = 1e6
    np.testing.assert_allclose(solver.update(batch[500:]).theta, expected, rtol=1e-9)


@pytest.mark.parametrize("layout", ["table", "csr"])
def test_memory_does_not_grow_with_the_rows(layout: str) -> None:
    most = 0
    for n in (400, 4000, 40_000):
        sums = auto().fit(stream(layout, n, d=12, states=15))._sums
        held = sum(x.nbytes for x in sums.held().values())
        held += size(sums.kept) if sums.kept is not None else 0
        most = most or 2 * sum(x.nbytes for x in sums.arrays().values())
        assert held < most
    assert sums.kept is None


def test_a_pickled_solver_goes_on() -> None:
    batch = stream("table", 900)
    solver = pickle.loads(pickle.dumps(auto().update(batch[:500])))  # noqa: S301
    expected = auto().fit(batch).theta
    np.testing.assert_allclose(solver.update(batch[500:]).theta, expected, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "n", "d", "states"), [("table", 20_000, 100, 1000), ("csr", 20_000, 300, 600)]
)
def test_a_choice_costs_a_few_times_one_fit(layout: str, n: int, d: int, states: int) -> None:
    """Measured: 10.6 times on this table and 8.6 times on these sparse rows."""
    from threadpoolctl import threadpool_limits

    batch = stream(layout, n, d, states)

    def seconds(solver: o2td.LSTD) -> float:
        solver.fit(batch)  # compiles
        times = []
        for _ in range(15):
            begun = time.process_time()
            solver.fit(batch)
            times.append(time.process_time() - begun)
        return min(times)

    with threadpool_limits(1):
        assert seconds(o2td.LSTD(trace="auto")) < 15.0 * seconds(o2td.LSTD())


def test_the_size_of_rows_is_that_of_all_their_arrays() -> None:
    table, rows = stream("table", 50), stream("csr", 50)
    vectors = 50 * (3 * 8 + 1)
    state = np.asarray(table.state)
    assert size(table) == vectors + 2 * 50 * state.itemsize + 90 * 60 * 8
    held = [(x.data, x.indices, x.indptr) for x in (rows.phi, rows.next_phi)]
    assert size(rows) == vectors + sum(part.nbytes for one in held for part in one)
    full = Transitions(rows.phi.toarray(), rows.reward, rows.next_phi.toarray(), rows.discount)
    assert size(full) == vectors + 2 * 50 * 60 * 8


@pytest.mark.parametrize("layout", ["table", "csr"])
def test_answers_are_what_each_group_leaves_of_its_equations(layout: str) -> None:
    batch, groups = stream(layout, 200), 3
    rng, rows = np.random.default_rng(1), (batch.phi, batch.next_phi)
    phi, later = (x if isinstance(x, np.ndarray) else x.toarray() for x in rows)
    asked = [
        Question(
            trace, clip, rng.normal(size=(many, batch.d + 1)), rng.normal(size=(many, batch.d))
        )
        for trace, clip, many in ((0.0, np.inf, 1), (0.5, np.inf, 3), (0.9, 1.0, 2))
    ]
    for one, found in zip(asked, answers(batch, asked, groups), strict=True):
        want, e = np.zeros((groups, len(one.whole), batch.d)), np.zeros(batch.d)
        for t in range(batch.n):
            rho, discount = batch.rho[t], batch.discount[t]
            e = (0.0 if batch.start[t] else e) + phi[t]
            y = np.append(phi[t] - discount * later[t], batch.reward[t])
            left = rho * one.whole @ y - (rho - 1.0) * one.drawn @ phi[t]
            want[t % groups] += np.outer(left, e)
            e = one.trace * discount * min(rho, one.clip) * e
        np.testing.assert_allclose(found, want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("layout", ["table", "csr"])
def test_rows_are_kept_while_they_are_no_larger_than_their_sums(layout: str) -> None:
    """17 groups have sums of five directions and three adjusted ones, by state or by feature."""
    rng, d = np.random.default_rng(0), 3 if layout == "table" else 16
    n, places = 6000, 4 + 1 if layout == "table" else d + 1
    state = rng.integers(4, size=n + 1)
    table: Any = rng.normal(size=(4, d)) if layout == "table" else csr_array(np.eye(4, d))
    if layout == "table":
        batch = Transitions.from_table(table, state[:-1], np.ones(n), state[1:], 0.9)
    else:
        batch = Transitions(table[state[:-1]], np.ones(n), table[state[1:]], 0.9)
    each = size(batch[:2]) - size(batch[:1])
    room = 8 * 17 * (5 + 3) * places * (d + 1) - size(batch[:0])
    most = room // each
    assert 200 < most < n
    assert auto().update(batch[:most])._sums.kept is not None
    assert auto().update(batch[: most + 1])._sums.kept is None

"""The weighted-TD loops on CSR rows, called as plain functions, against their formulas row by row."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.kernels import weighted_sparse

from .gradient_lane import csr
from .weighted_lane import BEYOND, Array, D, Lane, N, beyond, check


def run(lane: Lane) -> tuple[int, tuple[Array, ...]]:
    """The loop under test over copies of a lane's vectors."""
    theta, z, most = lane.theta.copy(), lane.z.copy(), np.array([lane.bound])
    active, size = np.arange(D, dtype=np.int32), np.array([D if lane.traced else 0])
    done = weighted_sparse.sparse_lane(
        csr(lane.table, lane.state), csr(lane.table, lane.after), lane.lo, N, lane.reward,
        lane.discount, lane.gain, lane.weight, lane.inner, 1, lane.decay,
        True if lane.traced else None, theta, z, active, size, most,
    )  # fmt: skip
    assert sorted(active[: size[0]]) == np.flatnonzero(z).tolist()
    return done, (theta, z, most)


@pytest.mark.parametrize("inner", [None, True, False])
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("lo", [0, 2])
def test_rows_move_theta_as_the_formulas_say(inner: bool | None, traced: bool, lo: int) -> None:
    check(run, Lane(traced, inner, lo=lo))


@pytest.mark.parametrize("inner", [None, True])
@pytest.mark.parametrize("traced", [False, True])
def test_rows_without_any_successor_read_none(inner: bool | None, traced: bool) -> None:
    lane = Lane(traced, inner)
    lane.discount[:] = 0.0
    lane.table, lane.after = np.vstack([lane.table, np.full(D, np.nan)]), np.full(N, 6)
    check(run, lane)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("part", BEYOND)
def test_a_part_of_a_step_beyond_the_bound_ends_a_lane(part: str, traced: bool) -> None:
    lane = beyond(part, traced)
    done, own = run(lane)
    assert done == (3 if traced or part not in ("trace", "what a trace keeps") else N)
    np.testing.assert_allclose(own[0], lane.theta)


@pytest.mark.parametrize("size", range(12))
def test_a_dot_product_has_every_entry_once(size: int) -> None:
    rng = np.random.default_rng(size)
    value, index, x = (
        rng.normal(size=size + 3),
        rng.permutation(20)[: size + 3],
        rng.normal(size=20),
    )
    some = slice(2, 2 + size)
    found = weighted_sparse.dot_entries(value, index, 2, 2 + size, x)
    assert found == pytest.approx(value[some] @ x[index[some]])
    into = x.copy()
    weighted_sparse.add_entries(value, index, 2, 2 + size, -0.3, into)
    x[index[some]] -= 0.3 * value[some]
    np.testing.assert_allclose(into, x)


def test_entries_of_a_trace_vanish_below_their_bound_and_may_come_back() -> None:
    rows = csr(np.array([[0.0, 2.0, 3.0, 0.0]]), np.zeros(1, dtype=int))
    z, active = np.array([3e-150, 1.9e-150, 0.0, 2e-150]), np.array([0, 1, 3, 0], dtype=np.int32)
    assert weighted_sparse.trace_sparse(rows, 0, 0.5, 0.5, z, active, 3) == 4
    np.testing.assert_allclose(z, [1.5e-150, 1.0, 1.5, 1e-150])
    assert active.tolist() == [0, 3, 1, 2]
    assert weighted_sparse.trace_sparse(rows, 0, 0.0, -0.5, z, active, 4) == 2
    assert active[:2].tolist() == [1, 2]
    np.testing.assert_array_equal(z, [0.0, -0.5, -0.75, 0.0])

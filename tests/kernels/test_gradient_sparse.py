"""Gradient learners on rows with few entries, against the same rows in full."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from o2td import Transitions
from o2td.kernels import gradient_sparse
from o2td.learners import GTD2, HTD, TDC, TDCMP, TDRC

from .gradient_lane import BEYOND, Array, D, Lane, N, beyond, csr, members

KINDS = {
    "GTD2": lambda trace: GTD2(0.1, second_step_size=0.2, trace=trace),
    "TDC": lambda trace: TDC(0.1, second_step_size=0.2, trace=trace),
    "TDCMP": lambda trace: TDCMP(0.1, second_step_size=0.2, trace=trace),
    "HTD": lambda trace: HTD(0.1, second_step_size=0.2, trace=trace),
    "TDRC": lambda trace: TDRC(0.1, regularizer=1.0, trace=trace),
    # w shrinks to a hundredth with each row, so that its scale is soon out of range.
    "shrinking": lambda trace: TDRC(0.05, second_step_size=0.99, regularizer=1.0, trace=trace),
    # And here it changes sign and grows, until the gradient of the rows that were seen stops it.
    "turning": lambda trace: TDRC(1e-6, second_step_size=0.5, regularizer=2.5, trace=trace),
}


def rows(n: int = 150, d: int = 8, seed: int = 0) -> dict[str, Transitions]:
    rng = np.random.default_rng(seed)
    phi = np.where(rng.random((n + 1, d)) < 0.25, rng.normal(size=(n + 1, d)), 0.0)
    ends = rng.random(n) < 0.1
    reward, rho = rng.normal(size=n), rng.random(n) * 2
    start = np.concatenate([[True], ends[:-1]])
    discount = np.where(ends, 0.0, 0.9)
    given = {"rho": rho, "start": start}
    return {
        "full": Transitions(phi[:-1], reward, phi[1:], discount, **given),
        "sparse": Transitions(csr_array(phi[:-1]), reward, csr_array(phi[1:]), discount, **given),
    }


@pytest.mark.parametrize("trace", [0.0, 0.7])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_with_few_entries_teach_what_full_rows_do(kind: str, trace: float) -> None:
    batch = rows()
    full = KINDS[kind](trace).partial_fit(batch["full"])
    assert np.abs(full.theta).max() > 0.0
    np.testing.assert_allclose(
        KINDS[kind](trace).partial_fit(batch["sparse"]).theta, full.theta, rtol=1e-9, atol=1e-12
    )
    parts = KINDS[kind](trace)
    for part in batch["sparse"].chunks(7):
        parts.partial_fit(part)
    np.testing.assert_allclose(parts.theta, full.theta, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(parts.w, full.w, rtol=1e-9, atol=1e-12)


def run(lane: Lane, mirror: bool = False) -> tuple[int, tuple[Array, ...]]:
    """The loop under test, called as a plain function over copies of a lane's vectors."""
    own = tuple(x.copy() for x in (lane.theta, lane.w, lane.z, lane.zb))
    most, size = np.array([lane.bound]), np.array([D, D] if lane.traced else [0, 0])
    active, active_b = np.arange(D, dtype=np.int32), np.arange(D, dtype=np.int32)
    done = gradient_sparse.sparse_lane(
        csr(lane.table, lane.state), csr(lane.table, lane.after), lane.lo, N, lane.reward,
        lane.discount, lane.gain, lane.second, lane.weight, lane.decay, lane.decay_b, lane.member,
        True if lane.traced else None, True if mirror else None, *own, active, active_b, size, most,
    )  # fmt: skip
    for z, listed, count in ((own[2], active, size[0]), (own[3], active_b, size[1])):
        assert lane.traced <= (sorted(listed[:count]) == np.flatnonzero(z).tolist())
    return done, (*own, most)


def check(lane: Lane, mirror: bool = False) -> tuple[Array, ...]:
    done, own = run(lane, mirror)
    for t in range(lane.lo, N):
        lane.step(t, mirror)
    assert done == N
    np.testing.assert_allclose(own[0], lane.theta, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(own[1], lane.w, rtol=1e-10, atol=1e-13)
    if lane.traced:
        np.testing.assert_allclose(own[2], lane.z, rtol=1e-12)
        assert own[4] == pytest.approx(lane.bound)
    return own


@pytest.mark.parametrize("member", members())
@pytest.mark.parametrize("traced", [False, True])
def test_rows_move_theta_and_w_as_the_formulas_say(member: str, traced: bool) -> None:
    lane = Lane(members()[member], traced, lo=2)
    own = check(lane)
    if traced and member in ("all", "only 4", "only 5", "only 8"):
        np.testing.assert_allclose(own[3], lane.zb, rtol=1e-12)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("keep", [1e-9, -1e-9, 1e-13, -1e9])
def test_a_scale_of_w_out_of_range_is_written_into_it(keep: float, traced: bool) -> None:
    member = np.array([0.3, *np.zeros(5), 0.2 if abs(keep) < 1.0 else 0.0, 0.0, 0.0, 1.0 - keep])
    lane = Lane(member, traced)
    lane.second[:] = 1.0
    check(lane)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("lo", [0, 1])
def test_mirror_prox_takes_the_step_from_where_it_leads(traced: bool, lo: int) -> None:
    """Its members have no second trace."""
    member = members()["all"]
    member[[4, 5, 8]] = 0.0
    check(Lane(member, traced, seed=2, lo=lo), mirror=True)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("mirror", [False, True])
def test_rows_without_a_successor_read_none(traced: bool, mirror: bool) -> None:
    member = members()["all"]
    member[[4, 5, 8]] = 0.0
    lane = Lane(member, traced)
    lane.discount[:] = 0.0
    lane.table, lane.after = np.vstack([lane.table, np.full(D, np.nan)]), np.full(N, 6)
    check(lane, mirror)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("part", BEYOND)
def test_a_part_of_a_step_beyond_the_bound_ends_a_lane(part: str, traced: bool) -> None:
    lane = beyond(part, traced)
    done, own = run(lane)
    assert done == 3
    np.testing.assert_allclose(own[0], lane.theta)
    np.testing.assert_allclose(own[1], lane.w)


@pytest.mark.parametrize("name", ["weight", "decay"])
def test_a_trace_beyond_the_bound_ends_a_lane(name: str) -> None:
    lane = Lane(np.zeros(10), True)
    getattr(lane, name)[5] = 1e151
    assert run(lane)[0] == 5

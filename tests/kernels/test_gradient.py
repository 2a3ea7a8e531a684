"""The gradient-TD loops on dense rows, called as plain functions, against their formulas row by row."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from o2td.kernels import gradient

from .gradient_lane import BEYOND, Array, D, Lane, N, beyond, members


def run(lane: Lane, mirror: bool = False) -> tuple[int, tuple[Array, ...]]:
    """The loop under test over copies of a lane's vectors."""
    own = tuple(x.copy() for x in (lane.theta, lane.w, lane.z, lane.zb))
    most = np.array([lane.bound])
    rows, following = (SimpleNamespace(matrix=lane.table, at=at) for at in (lane.state, lane.after))
    done = gradient.dense_lane(
        rows, following, lane.lo, N, lane.reward, lane.discount, lane.gain,
        lane.second, lane.weight, lane.decay, lane.decay_b, lane.member,
        True if lane.traced else None, True if mirror else None, *own, most,
    )  # fmt: skip
    return done, (*own, most)


@pytest.mark.parametrize("member", members())
@pytest.mark.parametrize("traced", [False, True])
def test_rows_move_theta_and_w_as_the_formulas_say(member: str, traced: bool) -> None:
    lane = Lane(members()[member], traced, lo=2)
    done, own = run(lane)
    for t in range(2, N):
        lane.step(t, mirror=False)
    assert done == N
    np.testing.assert_allclose(own[0], lane.theta, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(own[1], lane.w, rtol=1e-11, atol=1e-13)
    if traced:
        np.testing.assert_allclose(own[2], lane.z, rtol=1e-12)
        assert own[4] == pytest.approx(lane.bound)
        if member in ("all", "only 4", "only 5", "only 8"):
            np.testing.assert_allclose(own[3], lane.zb, rtol=1e-12)


@pytest.mark.parametrize("member", members())
def test_rows_that_come_from_memory_are_learned_alike(
    member: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = Lane(members()[member], False, lo=1)
    monkeypatch.setattr(gradient, "from_memory", lambda *_: True)
    done, own = run(lane)
    for t in range(1, N):
        lane.step(t, mirror=False)
    assert done == N
    np.testing.assert_allclose(own[0], lane.theta, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(own[1], lane.w, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("lo", [0, 1])
def test_mirror_prox_takes_the_step_from_where_it_leads(traced: bool, lo: int) -> None:
    """Its members have no second trace."""
    member = members()["all"]
    member[[4, 5, 8]] = 0.0
    lane = Lane(member, traced, seed=2, lo=lo)
    done, own = run(lane, True)
    for t in range(lo, N):
        lane.step(t, mirror=True)
    assert done == N
    np.testing.assert_allclose(own[0], lane.theta, rtol=1e-10)
    np.testing.assert_allclose(own[1], lane.w, rtol=1e-10)


@pytest.mark.parametrize("traced", [False, True])
def test_rows_without_any_successor_read_none(traced: bool) -> None:
    lane = Lane(members()["all"], traced)
    lane.discount[:] = 0.0
    lane.table, lane.after = np.vstack([lane.table, np.full(D, np.nan)]), np.full(N, 6)
    _, own = run(lane)
    for t in range(N):
        lane.step(t, mirror=False)
    np.testing.assert_allclose(own[0], lane.theta, rtol=1e-11)
    np.testing.assert_allclose(own[1], lane.w, rtol=1e-11)


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("part", BEYOND)
def test_a_part_of_a_step_beyond_the_bound_ends_a_lane(
    part: str, traced: bool, far: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = beyond(part, traced)
    if far:
        monkeypatch.setattr(gradient, "from_memory", lambda *_: True)
    done, own = run(lane)
    assert done == 3
    np.testing.assert_allclose(own[0], lane.theta)


@pytest.mark.parametrize("name", ["weight", "decay"])
def test_a_trace_beyond_the_bound_ends_a_lane(name: str) -> None:
    lane = Lane(np.zeros(10), True)
    getattr(lane, name)[5] = 1e151
    assert run(lane)[0] == 5
    lane.traced = False
    assert run(lane)[0] == N


def test_the_size_of_a_step_adds_up_all_its_parts() -> None:
    parts = (1.0, -2.0, 4.0, -8.0, 16.0, -32.0, 0.5)
    assert gradient.size_of(parts, -64.0, 100.0) == 127.0 + 9.0 * 100.0

"""The weighted-TD loops, called as plain functions, against their formulas row by row."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from o2td.kernels import weighted

from .weighted_lane import BEYOND, Array, D, Lane, N, beyond, check


def run(lane: Lane) -> tuple[int, tuple[Array, ...]]:
    """The loop under test over copies of a lane's vectors."""
    theta, z, most = lane.theta.copy(), lane.z.copy(), np.array([lane.bound])
    rows, following = (SimpleNamespace(matrix=lane.table, at=at) for at in (lane.state, lane.after))
    done = weighted.dense_lane(
        rows, following, lane.lo, N, lane.reward, lane.discount, lane.gain, lane.weight,
        lane.inner, 1, lane.decay, True if lane.traced else None, theta, z, most,
    )  # fmt: skip
    return done, (theta, z, most)


@pytest.mark.parametrize("inner", [None, True, False])
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("lo", [0, 2])
def test_rows_move_theta_as_the_formulas_say(inner: bool | None, traced: bool, lo: int) -> None:
    check(run, Lane(traced, inner, lo=lo))


@pytest.mark.parametrize("lo", [0, 2])
def test_rows_that_come_from_memory_are_learned_alike(
    lo: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weighted, "from_memory", lambda *_: True)
    check(run, Lane(False, None, lo=lo))


@pytest.mark.parametrize("inner", [None, True])
@pytest.mark.parametrize("traced", [False, True])
def test_rows_without_any_successor_read_none(inner: bool | None, traced: bool) -> None:
    lane = Lane(traced, inner)
    lane.discount[:] = 0.0
    lane.table, lane.after = np.vstack([lane.table, np.full(D, np.nan)]), np.full(N, 6)
    check(run, lane)


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("part", BEYOND)
def test_a_part_of_a_step_beyond_the_bound_ends_a_lane(
    part: str, traced: bool, far: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weighted, "from_memory", lambda *_: far)
    lane = beyond(part, traced)
    done, own = run(lane)
    assert done == (3 if traced or part not in ("trace", "what a trace keeps") else N)
    np.testing.assert_allclose(own[0], lane.theta)


@pytest.mark.parametrize(("more", "far"), [(0, False), (1, True)])
def test_matrices_that_exceed_half_of_the_cache_come_from_memory(more: int, far: bool) -> None:
    sizes = (weighted.FITS - 1000 + more, 1000)
    one, other = (SimpleNamespace(matrix=np.broadcast_to(0.0, n)) for n in sizes)
    assert weighted.from_memory(one, other) == far


@pytest.mark.parametrize(
    ("said", "numbers"),
    [("", 1 << 21), ("1024K", 1 << 21), ("32768K", 1 << 21), ("65536K", 1 << 22),
     ("491520K", 30 << 20), ("2097152K", 1 << 25), ("32M", 1 << 21), ("?K", 1 << 21)],
)  # fmt: skip
def test_what_a_cache_holds(said: str, numbers: int) -> None:
    """Eight bytes a number, half of the cache."""
    assert weighted.fitting(said) == numbers


def test_a_system_that_says_nothing_of_its_cache(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(weighted, "_CACHE", tmp_path / "size")
    assert weighted._cache() == ""
    (tmp_path / "size").write_text("491520K\n")
    assert weighted._cache() == "491520K"

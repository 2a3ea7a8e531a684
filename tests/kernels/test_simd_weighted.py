"""Sixteen weighted-TD lanes side by side, in plain Python, against each lane's formulas."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from o2td.kernels import simd_weighted

from .weighted_lane import BEYOND, Array, Lane, N, beyond


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loops as they are written, and blocks of five rows."""
    for name, value in list(vars(simd_weighted).items()):
        if hasattr(value, "py_func"):
            monkeypatch.setattr(simd_weighted, name, value.py_func)
    monkeypatch.setattr(simd_weighted, "CACHED_ROWS", 5)


def run(
    lanes: list[Lane], diverged: Array, first: int = 0, every: int = 0
) -> tuple[Array, Array, Array]:
    one = lanes[0]
    rows, following = (SimpleNamespace(matrix=one.table, at=at) for at in (one.state, one.after))
    names = ("gain", "weight", "decay", "theta", "z", "reward")
    arrays = {name: np.array([getattr(lane, name) for lane in lanes]) for name in names}
    source = np.roll(np.arange(len(lanes)), 1)
    arrays["reward"] = arrays["reward"][np.argsort(source)]
    inner = None if one.inner is None else np.array([lane.inner[1] for lane in lanes])  # type: ignore[index]
    given = SimpleNamespace(
        **arrays,
        source=source,
        discount=one.discount[None],
        inner=inner,
        traced=True if one.traced else None,
        bound=np.array([[lane.bound] for lane in lanes]),
    )
    simd_weighted.drive_side(rows, following, given, diverged, N, first, every, None)
    return given.theta, given.z, given.bound[:, 0]


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("count", [1, 18])
def test_each_lane_is_what_it_is_alone(inner: bool, traced: bool, count: int) -> None:
    rng = np.random.default_rng(4)
    lanes = [Lane(traced, k % 3 != 1 if inner else None) for k in range(count)]
    for lane in lanes:
        lane.theta, lane.z = rng.normal(size=(2, 3)) * [[1.0], [1.0 if traced else 0.0]]
        lane.gain, lane.reward = 0.2 * rng.normal(size=(2, N))
        lane.weight, lane.decay = rng.random((2, N))
        lane.bound = float(rng.random())
    diverged = np.full(count, -1)
    diverged[1:2] = 3
    theta, z, bound = run(lanes, diverged)
    assert diverged.tolist() == [-1, 3, *[-1] * 16][:count]
    for k, lane in enumerate(lanes):
        for t in range(N if k != 1 else 0):
            lane.step(t)
        np.testing.assert_allclose(theta[k], lane.theta, rtol=1e-11)
        if traced:
            np.testing.assert_allclose(z[k], lane.z, rtol=1e-11, atol=1e-15)
            assert bound[k] == pytest.approx(lane.bound)


@pytest.mark.parametrize("place", [0, 17])
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("part", BEYOND)
def test_a_lane_whose_step_is_too_large_is_taken_out_and_others_go_on(
    part: str, traced: bool, place: int
) -> None:
    lanes, rng = [beyond(part, traced) for _ in range(18)], np.random.default_rng(0)
    for k, lane in enumerate(lanes):
        if k != place:
            lane.gain, lane.reward = 1e-3 * rng.normal(size=(2, N))
            lane.weight, lane.decay = rng.random((2, N))
    diverged = np.full(18, -1)
    theta, z, _ = run(lanes, diverged, first=40)
    ends = traced or part not in ("trace", "what a trace keeps")
    assert diverged.tolist() == [43 if k == place and ends else -1 for k in range(18)]
    for k, lane in enumerate(lanes):
        for t in range(3 if k == place else N):
            lane.step(t)
        np.testing.assert_allclose(theta[k], lane.theta, rtol=1e-11)
        if traced:
            np.testing.assert_allclose(z[k], lane.z, rtol=1e-11)


@pytest.mark.parametrize("every", [1, 3, 7])
@pytest.mark.parametrize("first", [0, 5])
@pytest.mark.parametrize("traced", [False, True])
def test_records_are_taken_after_every_so_many_steps(
    every: int, first: int, traced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lanes, rng, found = [Lane(traced, None) for _ in range(18)], np.random.default_rng(1), []
    for lane in lanes:
        lane.gain = 0.1 * rng.normal(size=N)

    def append(theta: Array, grouped: bool, ring: None) -> None:
        assert grouped
        found.append(theta.reshape(2, -1, 16).swapaxes(1, 2).reshape(32, -1)[:18].copy())

    monkeypatch.setattr(simd_weighted, "append", append)
    run(lanes, np.full(18, -1), first, every)
    expected = []
    for t in range(N):
        for lane in lanes:
            lane.step(t)
        if (first + t + 1) % every == 0:
            expected.append([lane.theta for lane in lanes])
    np.testing.assert_allclose(found, expected, rtol=1e-11)

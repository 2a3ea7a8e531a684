"""Sixteen gradient-TD lanes side by side, in plain Python, against each lane's formulas."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from o2td.kernels import simd_gradient

from .gradient_lane import BEYOND, Array, Lane, N, beyond

LEAN = {  # which numbers of a member are 0, or follow from others
    "neither": lambda m: m,
    "straight": lambda m: np.array([0.0, m[1], m[2], m[2], m[4], m[1] + m[4], *m[6:]]),
    "steady": lambda m: np.array([*m[:8], 0.0, 0.0]),
    "both": lambda m: np.array([0.0, m[1], m[2], m[2], m[4], m[1] + m[4], m[6], m[7], 0.0, 0.0]),
    "w shrinks": lambda m: np.array([*m[:8], 0.0, m[9]]),
    "w along dphi": lambda m: np.array([*m[:9], 0.0]),
}


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loops as they are written, and blocks of five rows."""
    for name, value in list(vars(simd_gradient).items()):
        if hasattr(value, "py_func"):
            monkeypatch.setattr(simd_gradient, name, value.py_func)
    monkeypatch.setattr(simd_gradient, "CACHED_ROWS", 5)


def run(lanes: list[Lane], diverged: Array, first: int = 0, every: int = 0) -> tuple[Array, Array]:
    one = lanes[0]
    rows, following = (SimpleNamespace(matrix=one.table, at=at) for at in (one.state, one.after))
    names = {"gain": "gain", "second_gain": "second", "weight": "weight"}
    names |= {name: name for name in ("theta", "w", "member", "reward")}
    arrays = {name: np.array([getattr(lane, own) for lane in lanes]) for name, own in names.items()}
    source = np.roll(np.arange(len(lanes)), 1)
    arrays["reward"] = arrays["reward"][np.argsort(source)]
    given = SimpleNamespace(**arrays, source=source, discount=one.discount[None])
    simd_gradient.drive_side(rows, following, given, diverged, N, first, every, None)
    return given.theta, given.w


@pytest.mark.parametrize("lean", LEAN)
@pytest.mark.parametrize("count", [1, 18])
def test_each_lane_is_what_it_is_alone(lean: str, count: int) -> None:
    rng = np.random.default_rng(4)
    lanes = [Lane(LEAN[lean](0.4 * rng.normal(size=10)), False) for _ in range(count)]
    for lane in lanes:
        lane.theta, lane.w = rng.normal(size=(2, 3))
        lane.gain, lane.second, lane.reward = 0.1 * rng.normal(size=(3, N))
        lane.weight = rng.random(N)
    diverged = np.full(count, -1)
    diverged[1:2] = 3
    theta, w = run(lanes, diverged)
    assert diverged.tolist() == [-1, 3, *[-1] * 16][:count]
    for k, lane in enumerate(lanes):
        for t in range(N if k != 1 else 0):
            lane.step(t, mirror=False)
        np.testing.assert_allclose(theta[k], lane.theta, rtol=1e-11)
        np.testing.assert_allclose(w[k], lane.w, rtol=1e-11)


@pytest.mark.parametrize("place", [0, 17])
@pytest.mark.parametrize("part", BEYOND)
def test_a_lane_whose_step_is_too_large_is_taken_out_and_others_go_on(
    part: str, place: int
) -> None:
    lanes = [beyond(part, False) for _ in range(18)]
    rng = np.random.default_rng(0)
    for k, lane in enumerate(lanes):
        if k != place:
            lane.member, lane.second[:] = np.zeros(10), 0.0
            lane.member[0], lane.gain = 1.0, 1e-3 * rng.normal(size=N)
            lane.reward[:] = rng.normal(size=N)
    diverged = np.full(18, -1)
    theta, w = run(lanes, diverged, first=40)
    assert diverged.tolist() == [43 if k == place else -1 for k in range(18)]
    for k, lane in enumerate(lanes):
        for t in range(N if k != place else 0):
            lane.step(t, mirror=False)
        np.testing.assert_allclose(theta[k], lane.theta, rtol=1e-11)
        np.testing.assert_allclose(w[k], lane.w, rtol=1e-11)


@pytest.mark.parametrize("every", [1, 3, 7])
@pytest.mark.parametrize("first", [0, 5])
def test_records_are_taken_after_every_so_many_steps(
    every: int, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lanes, rng, found = (
        [Lane(np.linspace(0.1, 0.4, 10), False, seed=0) for _ in range(18)],
        np.random.default_rng(1),
        [],
    )
    for lane in lanes:
        lane.gain = 0.1 * rng.normal(size=N)

    def append(theta: Array, grouped: bool, ring: None) -> None:
        assert grouped
        found.append(theta.reshape(2, -1, 16).swapaxes(1, 2).reshape(32, -1)[:18].copy())

    monkeypatch.setattr(simd_gradient, "append", append)
    run(lanes, np.full(18, -1), first, every)
    expected = []
    for t in range(N):
        for lane in lanes:
            lane.step(t, mirror=False)
        if (first + t + 1) % every == 0:
            expected.append([lane.theta for lane in lanes])
    np.testing.assert_allclose(found, expected, rtol=1e-11)

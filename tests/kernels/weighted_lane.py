"""A lane of the weighted-TD family as its formulas say it, row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

D, N = 3, 14
Array = np.ndarray[Any, Any]


class Lane:
    """Table rows of which some have no successor; `inner`: whether omega is part of the weight."""

    def __init__(self, traced: bool, inner: bool | None, seed: int = 0, lo: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.table = np.where(rng.random((6, D)) < 0.6, rng.normal(size=(6, D)), 0.0)
        self.table[5] = 0.0
        self.state, self.after = rng.integers(6, size=(2, N))
        self.after[6] = self.state[6]
        self.phi, self.later = self.table[self.state], self.table[self.after]
        self.reward, self.gain = rng.normal(size=N), 0.3 * rng.normal(size=N)
        self.weight, self.decay = rng.random((2, N)) + 0.2
        self.discount = np.where(np.arange(N) % 5 == 0, 0.0, rng.random(N))
        self.discount[6] = 1.0  # dphi is 0 there
        self.theta, self.z = rng.normal(size=(2, D))
        self.traced, self.lo, self.bound = traced, lo, 3.0
        self.inner = None if inner is None else np.array([not inner, inner])
        if not traced:
            self.z = np.zeros(D)

    def step(self, t: int) -> None:
        phi, gamma, m = self.phi[t], self.discount[t], self.weight[t]
        dphi = phi - (gamma * self.later[t] if gamma else 0.0)
        if self.inner is not None and self.inner[1]:
            m *= dphi @ phi / (dphi @ dphi) if dphi.any() else 0.0
        self.bound = self.decay[t] * self.bound + abs(m)
        delta = self.reward[t] - dphi @ self.theta
        self.z = (self.decay[t] * self.z if self.traced else 0.0) + m * phi
        self.theta = self.theta + self.gain[t] * delta * self.z


Run = Callable[[Lane], tuple[int, tuple[Array, ...]]]


def check(run: Run, lane: Lane) -> None:
    done, own = run(lane)
    for t in range(lane.lo, N):
        lane.step(t)
    assert done == N
    np.testing.assert_allclose(own[0], lane.theta, rtol=1e-11)
    if lane.traced:
        np.testing.assert_allclose(own[1], lane.z, rtol=1e-12, atol=1e-15)
        assert own[2] == pytest.approx(lane.bound)


BEYOND = {  # one part of row 3 that alone is too large
    "error": {"reward": 1e151},
    "step": {"gain": 1e151},
    "trace": {"weight": 1e151},
    "what a trace keeps": {"decay": -1e151},
    "step along a trace": {"weight": 1e80, "gain": 1e80},
}


def beyond(part: str, traced: bool) -> Lane:
    """A lane of equal rows that move nothing before row 3, or afterwards."""
    lane = Lane(traced, None)
    lane.table[:] = np.abs(lane.table[0]) + 1.0
    lane.phi[:] = lane.later[:] = lane.table[0]
    lane.theta[:] = 0.0
    lane.reward[:], lane.gain[:], lane.weight[:], lane.discount[:] = 1.0, 0.0, 1.0, 0.5
    lane.decay[:] = 0.5
    for name, value in BEYOND[part].items():
        getattr(lane, name)[3] = value
    return lane

"""A lane of the gradient-TD family as its formulas say it, row by row, and members that ask for more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

D, N = 3, 14
Array = np.ndarray[Any, Any]


def csr(table: Array, at: Array) -> SimpleNamespace:
    """Rows `at` of a table as the kernels read them."""
    held = csr_array(table)
    return SimpleNamespace(data=held.data, indices=held.indices, indptr=held.indptr, at=at)


class Lane:
    """A lane with numbers of its own everywhere, over table rows of which some have no successor."""

    def __init__(self, member: Array, traced: bool, seed: int = 0, lo: int = 0) -> None:
        rng = np.random.default_rng(seed)
        table = np.where(rng.random((6, D)) < 0.6, rng.normal(size=(6, D)), 0.0)
        state, after = rng.integers(6, size=(2, N))
        self.phi, self.later = table[state], table[after]
        self.table, self.state, self.after = table, state, after
        self.reward, self.gain, self.second = rng.normal(size=(3, N))
        self.gain, self.second = 0.1 * self.gain, 0.1 * self.second
        self.weight, self.decay, self.decay_b = rng.random((3, N)) + 0.2
        self.discount = np.where(np.arange(N) % 5 == 0, 0.0, rng.random(N))
        self.theta, self.w, self.z, self.zb = rng.normal(size=(4, D))
        self.member, self.traced, self.lo, self.bound = member, traced, lo, 3.0
        if not traced:
            self.z, self.zb = np.zeros((2, D))

    def ahead(self, theta: Array, w: Array, t: int) -> tuple[Array, Array, float]:
        """What theta and w gain in row t, and a bound on all parts of the step."""
        m, phi, gamma = self.member, self.phi[t], self.discount[t]
        later = self.later[t] if gamma else np.zeros(D)
        z, b = self.z, self.zb
        delta = self.reward[t] + gamma * later @ theta - phi @ theta
        wphi, wz, wb = phi @ w, z @ w, b @ w
        up = m[0] * delta * z + (m[1] * wphi + m[2] * wz + m[4] * wb) * phi
        up -= gamma * (m[3] * wz + m[5] * wb) * later
        side = m[6] * delta * z + m[7] * wphi * phi + m[8] * wb * (phi - gamma * later) - m[9] * w
        return self.gain[t] * up, self.second[t] * side, delta

    def step(self, t: int, mirror: bool) -> None:
        m, phi = self.weight[t], self.phi[t]
        self.z = (self.decay[t] * self.z if self.traced else 0.0) + m * phi
        self.zb = (self.decay_b[t] * self.zb if self.traced else 0.0) + phi
        self.bound = self.decay[t] * self.bound + m
        up, side, _ = self.ahead(self.theta, self.w, t)
        if mirror:
            up, side, _ = self.ahead(self.theta + up, self.w + side, t)
        self.theta, self.w = self.theta + up, self.w + side


def members() -> dict[str, Array]:
    rng = np.random.default_rng(1)
    every = rng.normal(size=10)
    found = {"all": every, "none": np.zeros(10)}
    for k in range(10):
        one, rest = np.zeros(10), every.copy()
        one[k], rest[k] = every[k], 0.0
        found |= {f"only {k}": one, f"not {k}": rest}
    return found


BEYOND = {  # one part of the step in row 3 that alone is too large
    "error": {"reward": 1e151},
    "theta along phi": {"member": 1, "gain": 1e160},
    "theta along the successor": {"member": 3, "gain": 1e160},
    "w along phi": {"member": 7, "second": 1e160},
    "w along the successor": {"member": 8, "second": 3e149, "discount": 10.0},
}


def beyond(part: str, traced: bool) -> Lane:
    """A lane of equal rows that move nothing, but for one part of the step in row 3."""
    given = BEYOND[part]
    member = np.zeros(10)
    if "member" in given:
        member[int(given["member"])] = 1.0
    lane = Lane(member, traced)
    lane.w = np.abs(lane.w) + 1.0
    lane.table[:] = np.abs(lane.table[0]) + 1.0
    lane.phi[:] = lane.later[:] = lane.table[0]
    lane.gain[:], lane.second[:], lane.weight[:], lane.discount[:] = 0.0, 0.0, 1.0, 0.5
    lane.decay[:] = lane.decay_b[:] = 0.0
    for name, value in given.items():
        if name != "member":
            getattr(lane, name)[3] = value
    if "discount" in given:
        lane.w, lane.reward[3] = lane.w / (lane.phi[0] @ lane.w), 0.0
    return lane
